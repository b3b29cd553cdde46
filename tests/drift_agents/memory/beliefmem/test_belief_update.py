"""The update of one attribute, by hand and by properties: Add, Merge, contradiction, archive."""

from __future__ import annotations

import re
from typing import Any

import pytest
from drift_agents.errors import ArgumentError
from drift_agents.memory.belief import (
    Belief,
    BeliefAttribute,
    BeliefRule,
    Event,
    Version,
    noisy_or,
    says_the_same,
    supports,
)
from drift_agents.types import AgentClock, Outcome, Record, Transition
from hypothesis import given
from hypothesis import strategies as st


def same(one: Transition, other: Transition) -> bool:
    return one.outcome == other.outcome


def written(number: int, after: str) -> Record:
    return Record(number, "s", "1", ((Outcome(after, 0.0, False), 1.0),), 1, AgentClock(0, number))


def verified(number: int, n: int, **shares: float) -> Record:
    outcomes = tuple((Outcome(after, 0.0, False), share) for after, share in shares.items())
    return Record(number, "s", "1", outcomes, n, AgentClock(0, number), True)


def learn(*records: Record, rule: BeliefRule | None = None, strength: float = 0.8) -> BeliefAttribute:
    attribute = BeliefAttribute(99)
    for record in records:
        attribute.learn(Event(record, strength), rule or BeliefRule(), same)
    return attribute


def held(attribute: BeliefAttribute) -> dict[str, Any]:
    """Outcomes in one text -> probability."""
    return {"+".join(o.state for o, _ in c.record.outcomes): pytest.approx(c.p) for c in attribute.candidates}


def test_equation_8_clips_what_is_new() -> None:
    rule = BeliefRule()
    assert [rule.add(strength) for strength in (0.0, 0.69, 0.75, 0.9, 1.0)] == [0.7, 0.7, 0.75, 0.9, 0.9]


def test_equation_9_is_a_noisy_or_with_a_bound() -> None:
    rule = BeliefRule()
    assert noisy_or(0.7, 0.5) == pytest.approx(0.85)
    assert rule.merge(0.7, 0.5) == pytest.approx(0.85)
    assert rule.merge(0.25, 0.8) == pytest.approx(0.85)
    assert rule.merge(0.96, 0.8) == 0.99
    assert rule.merge(0.5, 0.0) == 0.5


def test_a_contradiction_lowers_and_never_raises() -> None:
    assert [BeliefRule().contradict(p) for p in (0.99, 0.25, 0.1)] == [0.25, 0.25, 0.1]
    attribute = learn(written(0, "a"), written(1, "b"), rule=BeliefRule(initial=(0.1, 0.2), one_off=0), strength=0.0)
    assert held(attribute) == {"a": 0.1, "b": 0.1}
    assert attribute.archive == [], "what did not change is not archived"


def test_a_trace_by_hand() -> None:
    """Strength .8, one-off .2: a, a; b contradicts once; a again; b and c contradict in a row; a."""
    rows = []
    attribute = BeliefAttribute(99)
    for number, after in enumerate("aabacba"):
        attribute.learn(Event(written(number, after), 0.8), BeliefRule(), same)
        rows.append({c.record.outcome.state: round(c.p, 4) for c in attribute.candidates})
    assert rows == [
        {"a": 0.8},
        {"a": 0.96},
        {"a": 0.968, "b": 0.8},  # "it has changed" and "this response was false": both stay
        {"a": 0.99, "b": 0.25},
        {"a": 0.99, "b": 0.25, "c": 0.8},
        {"a": 0.25, "b": 0.85, "c": 0.25},  # a second contradiction in a row is not called false
        {"a": 0.85, "b": 0.88, "c": 0.25},
    ]
    assert [candidate.evidence for candidate in attribute.candidates] == [[0, 1, 3, 6], [2, 5], [4]]
    assert [(v.record.id, round(v.p, 4), v.since.step, v.until.step) for v in attribute.archive[:3]] == [
        (0, 0.8, 0, 1),
        (1, 0.96, 1, 2),
        (1, 0.968, 2, 3),
    ]
    assert [candidate.record.id for candidate in attribute.ranked()] == [5, 6, 4]
    assert (attribute.state, attribute.action, attribute.updated) == ("s", "1", AgentClock(0, 6))


def test_one_conclusion_an_observation_by_hand() -> None:
    """`one_off` 0: a is added, merged, contradicted by b, merged, and contradicted once more by c."""
    attribute = learn(*(written(number, after) for number, after in enumerate("aabac")), rule=BeliefRule(one_off=0))
    assert held(attribute) == {"a": 0.25, "b": 0.25, "c": 0.8}
    times = [AgentClock(0, step) for step in range(5)]
    a, again, b, last, _ = (event.record for event in attribute.events)
    assert attribute.archive == [
        Version(a, pytest.approx(0.8), times[0], times[1]),
        Version(again, pytest.approx(0.96), times[1], times[2]),
        Version(again, pytest.approx(0.25), times[2], times[3]),
        Version(b, pytest.approx(0.8), times[2], times[3]),
        Version(last, pytest.approx(0.85), times[3], times[4]),
    ]
    assert [candidate.record for candidate in attribute.ranked()][1:] == [last, b], "equals by the newer evidence"


def test_what_a_model_extracts_is_merged_by_its_words() -> None:
    a, b = (f'In s action "1" led to {after} (score 0)' for after in "ab")

    def event(number: int, after: str, *extracted: tuple[str, float]) -> Event:
        return Event(written(number, after), 0.8, extracted=extracted)

    attribute = BeliefAttribute(99)
    attribute.learn(event(0, "a", (a, 0.9)), BeliefRule(), same)
    attribute.learn(event(1, "b", (b, 0.5), (a, 0.4), ("The rate is limited.", 0.75)), BeliefRule(), same)
    assert [(c.text, c.evidence) for c in attribute.candidates] == [(a, [0]), (b, [1]), ("The rate is limited.", [1])]
    assert [c.p for c in attribute.candidates] == pytest.approx([0.94, 0.7, 0.75])
    attribute.learn(event(2, "b", ("the RATE is limited", 0.6), (b, 0.3)), BeliefRule(), same)
    assert [c.p for c in attribute.candidates] == pytest.approx([0.25, 0.79, 0.9]), "a was not named"
    assert attribute.candidates[2].evidence == [1, 2]
    attribute.learn(Event(written(3, "a"), 0.8), BeliefRule(), same)
    assert [c.p for c in attribute.candidates] == pytest.approx([0.85, 0.25, 0.92]), "by rule: the leader may be right"
    again = BeliefAttribute(99)
    again.relearn(attribute.events, BeliefRule(), same)
    assert again == attribute


def test_a_model_that_names_a_former_conclusion_alone_keeps_it() -> None:
    attribute = learn(written(0, "a"))
    attribute.learn(
        Event(written(1, "b"), 0.8, extracted=(('In s action "1" led to a (score 0)', 0.5),)), BeliefRule(), same
    )
    assert held(attribute) == {"a": 0.9}
    assert attribute.candidates[0].evidence == [0], "a response that is called false is no evidence"


def test_a_verified_distribution_is_one_conclusion() -> None:
    summary = verified(0, 5, a=0.6, b=0.4)
    assert supports(written(1, "a"), summary, same)
    assert not supports(written(1, "c"), summary, same)
    assert not supports(verified(1, 5, a=1.0), summary, same), "that a alone follows is another conclusion"
    assert not supports(summary, written(1, "a"), same)
    assert supports(verified(1, 9, b=0.9, a=0.1), summary, same)
    assert says_the_same(verified(1, 1, a=1.0), written(2, "a"), same)

    attribute = learn(summary, written(1, "a"), written(2, "b"))
    assert held(attribute) == {"a+b": 0.99}, "chance does not contradict what allows for it"
    assert attribute.candidates[0].record == summary, "one outcome does not say what the distribution says"
    newer = verified(3, 5, a=0.2, b=0.8)
    assert learn(summary, written(1, "a"), newer).candidates[0].record == newer
    assert held(learn(summary, written(1, "c"))) == {"a+b": 0.84, "c": 0.8}
    assert held(learn(summary, written(1, "c"), written(2, "c"))) == {"a+b": 0.25, "c": 0.96}
    assert held(learn(summary, verified(1, 1, c=1.0))) == {"a+b": 0.25, "c": 0.8}, "what was verified is not doubted"


def test_a_record_states_one_conclusion_where_equality_is_not_transitive() -> None:
    def near(one: Transition, other: Transition) -> bool:
        return abs(float(one.outcome.state) - float(other.outcome.state)) <= 1

    attribute = BeliefAttribute(99)
    for number, after in enumerate(["0", "2", "1"]):
        attribute.learn(Event(written(number, after), 0.8), BeliefRule(), near)
    assert [(c.record.id, c.evidence) for c in attribute.candidates] == [(2, [0, 2]), (1, [1, 2])]
    assert [c.p for c in attribute.candidates] == pytest.approx([0.968, 0.96])


def test_without_belief_one_conclusion_remains() -> None:
    rule = BeliefRule(collapse=True)
    assert held(learn(*(written(n, after) for n, after in enumerate("aab")), rule=rule)) == {"a": 0.968}
    assert held(learn(*(written(n, after) for n, after in enumerate("aabb")), rule=rule)) == {"b": 0.8}, (
        "b is new again"
    )


def test_evidence_without_add_still_contradicts() -> None:
    attribute = learn(written(0, "a"))
    attribute.learn(Event(written(1, "b"), 0.8, adds=False), BeliefRule(), same)
    assert held(attribute) == {"a": 0.84}
    attribute.learn(Event(written(2, "b"), 0.8, adds=False), BeliefRule(), same)
    assert held(attribute) == {"a": 0.25}


histories = st.lists(st.sampled_from("abc"), max_size=25)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0.001, 1)), max_size=25))
def test_with_one_conclusion_an_observation_the_newest_leads(history: list[tuple[str, float]]) -> None:
    """Whatever came before."""
    attribute = BeliefAttribute(99)
    for number, (after, strength) in enumerate(history):
        attribute.learn(Event(written(number, after), strength), BeliefRule(one_off=0), same)
        assert all(0 < candidate.p <= 0.99 for candidate in attribute.candidates)
        assert [c.record.outcome.state for c in attribute.candidates if c.p > 0.25] == [after]
        assert attribute.best.evidence[-1] == number
    assert sorted(held(attribute)) == sorted({after for after, _ in history})
    assert sorted(i for c in attribute.candidates for i in c.evidence) == list(range(len(history)))


@given(histories, st.sampled_from("abc"), st.sampled_from("abc"), st.sampled_from("abc"))
def test_a_conclusion_seen_twice_in_a_row_outlasts_one_contradiction(
    history: list[str], leader: str, other: str, last: str
) -> None:
    """Whatever came before; a second contradiction in a row takes the lead, and it is not that of the leader."""
    attribute = learn(*(written(number, after) for number, after in enumerate([*history, leader, leader, other])))
    assert attribute.best.record.outcome.state == leader
    if leader not in (other, last):
        attribute.learn(Event(written(99, last), 0.8), BeliefRule(), same)
        assert attribute.best.record.outcome.state == last
        assert held(attribute)[leader] == 0.25


@given(histories, st.sets(st.integers(0, 24)))
def test_removed_evidence_has_no_effect(history: list[str], removed: set[int]) -> None:
    records = [written(number, after) for number, after in enumerate(history)]
    left = [record for record in records if record.id not in removed]
    attribute = learn(*records)
    attribute.relearn([Event(record, 0.8) for record in left], BeliefRule(), same)
    assert attribute == learn(*left)


@given(histories)
def test_the_archive_holds_the_beliefs_at_any_time(history: list[str]) -> None:
    attribute, snapshots = BeliefAttribute(99), []
    for number, after in enumerate(history):
        attribute.learn(Event(written(number, after), 0.8), BeliefRule(), same)
        snapshots.append(sorted(attribute.beliefs()))
    for step, beliefs in enumerate(snapshots):
        assert sorted(attribute.beliefs(AgentClock(0, step))) == beliefs
        assert all(isinstance(belief, Belief) for belief in beliefs)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"initial": 0.7}, "`initial` should be two probabilities. Received 0.7"),
        ({"initial": (0.0, 0.9)}, "`initial` should be in the interval (0, 1]. Received 0.0"),
        ({"initial": (0.9, 0.7)}, "`initial` should be in order and not above `cap` (0.99). Received (0.9, 0.7)"),
        ({"cap": 0.8}, "`initial` should be in order and not above `cap` (0.8). Received (0.7, 0.9)"),
        ({"cap": 1.01}, "`cap` should be in the interval (0, 1]. Received 1.01"),
        ({"contradicted": 0}, "`contradicted` should be in the interval (0, 1]. Received 0"),
        ({"one_off": 1.2}, "`one_off` should be in the interval [0, 1]. Received 1.2"),
        ({"one_off": -0.1}, "`one_off` should be in the interval [0, 1]. Received -0.1"),
        ({"contradicted": True}, "`contradicted` should be in the interval (0, 1]. Received True"),
        ({"cap": float("nan")}, "`cap` should be in the interval (0, 1]. Received nan"),
    ],
)
def test_other_values_than_probabilities_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        BeliefRule(**options)


def test_a_conclusion_in_words_has_the_newest_record_that_supports_it() -> None:
    attribute = BeliefAttribute(99)
    for number, after in enumerate(("a", "b")):
        attribute.learn(Event(written(number, after), 0.8, extracted=(("It leads on.", 0.8),)), BeliefRule(), same)
    (conclusion,) = attribute.candidates
    assert (conclusion.words, conclusion.record.id, conclusion.evidence) == ("It leads on.", 1, [0, 1])
