"""Policies of addition and deletion: each one's own rule, its judges, its bounds, and what is refused."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import pytest
from drift_agents.errors import ArgumentError, UnknownNameError
from drift_agents.llm.base import RuleModel
from drift_agents.memory.base import Memory, make_memory
from drift_agents.memory.executions import JUDGEMENT, ExecutionStore, judge_by_end, noisy_oracle, render_execution
from drift_agents.memory.management import Managed
from drift_agents.types import AgentClock, Episode, Experience, Outcome, StepTrace, Verdict
from hypothesis import given


def step(state: str, after: str = "x", extra: str = "") -> tuple[str, str, Outcome, str]:
    return state, "1", Outcome(after, 0.0, False), extra


def states_of(memory: Memory) -> list[str]:
    return [record.state for record in memory.records()]


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({"addition": "all"}, ["a", "b", "c"]),
        ({"addition": "fixed"}, []),
        ({"addition": "strict"}, ["c"]),
        ({"addition": "strict", "threshold": 0.4}, ["b", "c"]),
        ({"addition": "coarse"}, ["c"]),
        ({"addition": "coarse", "error_rate": 1.0}, ["a", "b"]),
        ({"addition": "coarse", "judge": "model"}, ["a", "c"]),
    ],
    ids=str,
)
def test_an_execution_is_added_as_a_whole_or_not_at_all(live, options: dict[str, Any], kept: list[str]) -> None:
    memory = Managed(**options)
    for number, (state, score, ended) in enumerate((("a", 0.0, True), ("b", 0.4, False), ("c", 1.0, True))):
        live(memory, number, [step(state), step(state)], score, ended)
        assert not set(states_of(memory)) - set(kept)
    assert states_of(memory) == [state for state in kept for _ in range(2)]


def test_the_present_episode_is_in_memory() -> None:
    memory = Managed(addition="fixed")
    memory.observe(Experience("a", "1", Outcome("x", 0.0, False), 0.0, AgentClock()), AgentClock())
    assert states_of(memory) == ["a"]
    assert len(memory.retrieve("a", None, AgentClock()).records) == len(memory.same_transitions("a", "1")) == 1


def test_quarantined_records_follow_their_own_execution(live) -> None:
    """A verifier may write in a later episode what was lived in an earlier one, which is decided by then."""
    memory = Managed(addition="strict")
    live(memory, 0, [step("a")], 0.0)
    live(memory, 1, [step("b", extra="late")], 1.0)
    assert states_of(memory) == ["b"]
    live(memory, 2, [step("c", extra="late")], 0.0)
    assert states_of(memory) == ["b", "c"]
    assert [list(entry.ids) for entry in memory.executions] == [[1, 2]]


def test_a_verified_summary_is_independent_of_the_execution(live) -> None:
    memory = Managed(addition="strict", deletion="history", uses=1, period=3)
    live(memory, 0, [step("a", extra="summary")], 0.0)
    live(memory, 1, [step("a")], 0.0)
    assert [record.verified for record in memory.records()] == [True], "in its grace period"
    live(memory, 2, [step("a")], 0.0)
    assert states_of(memory) == []


def test_periodical_deletion_removes_what_was_not_retrieved(live) -> None:
    memory = Managed(deletion="periodical", period=2)
    live(memory, 0, [step("a")])
    live(memory, 1, [step("b")])
    live(memory, 2, [step("b")])
    assert states_of(memory) == ["b", "b"], "a was in memory for two executions, and in none was it retrieved"
    live(memory, 3, [step("c")])
    assert states_of(memory) == ["b", "b", "c"]
    live(memory, 4, [step("c")])
    assert states_of(memory) == ["c", "c"]


def test_history_deletion_removes_executions_of_low_utility(live) -> None:
    memory = Managed(deletion="history", uses=2, beta=0.5)
    live(memory, 0, [step("a")], 1.0)
    live(memory, 1, [step("b")], 0.0)
    for number, (state, score) in enumerate((("a", 0.0), ("b", 1.0), ("b", 1.0)), 2):
        live(memory, number, [step(state)], score)
    assert "a" in states_of(memory), "one retrieval is too few to tell"
    live(memory, 5, [step("a")], 1.0)
    assert memory.dropped == (0,), "retrieved twice, with a mean of .5"
    assert states_of(memory)[0] == "b"


def test_either_is_enough_for_combined_deletion(live) -> None:
    options = {"period": 3, "uses": 1, "beta": 0.5}
    sizes = {}
    for deletion in ("none", "periodical", "history", "combined"):
        memory = Managed(deletion=deletion, **options)
        for number, (state, score) in enumerate([("a", 1.0), ("b", 0.0), ("b", 0.0), ("c", 1.0), ("c", 1.0)]):
            live(memory, number, [step(state)], score)
        sizes[deletion] = states_of(memory)
    assert "a" in sizes["history"]
    assert "a" not in sizes["periodical"]
    assert set(sizes["combined"]) == set(sizes["periodical"]) & set(sizes["history"])
    assert len(sizes["combined"]) < min(len(sizes["periodical"]), len(sizes["history"]))


@pytest.mark.parametrize(("counts", "left"), [("here", ["b", "b"]), ("shown", ["a", "b", "b"])])
def test_which_retrievals_count(live, counts: str, left: list[str]) -> None:
    memory = Managed(deletion="periodical", period=2, counts=counts)
    live(memory, 0, [step("a")])
    for number in (1, 2):
        result = live(Managed(), number, [step("b")])
        experience = result.trace[0].experience
        memory.observe(experience, experience.now)
        # The prompt also showed what memory says about another state.
        shown = replace(result, trace=(replace(result.trace[0], retrieved=(0, 1)),))
        memory.end_episode(shown, AgentClock(number, 10 * number + 1))
    assert states_of(memory) == left


def test_the_lowest_utility_is_deleted_at_capacity(live) -> None:
    memory = Managed(capacity=2)
    live(memory, 0, [step("a")], 1.0)
    live(memory, 1, [step("b")], 0.0)
    assert states_of(memory) == ["a", "b"]
    live(memory, 2, [step("c")], 0.5)
    assert states_of(memory) == ["a", "c"], "b was not used yet, and had no value itself"
    live(memory, 3, [step("d"), step("d"), step("d")], 1.0)
    assert states_of(memory) == ["a", "c"], "what does not fit by itself pushes nothing out"


def episode_of(task: str, steps: list[Experience]) -> Episode:
    """A success with these steps."""
    return Episode(task, 1.0, len(steps), True, trace=tuple(StepTrace(s, "", s.action, (), Verdict()) for s in steps))


class Teacher:
    """A teacher with two executions."""

    def __repr__(self) -> str:
        return "Teacher()"  # it stands in the names of tests, which are the same in every process

    def show(self, count: int) -> list[Episode]:
        way = [Experience(s, "1", Outcome(t, 0.0, False), 0.0, AgentClock()) for s, t in ("ab", "bc", "cd")]
        return [episode_of("Reach the goal.", way)] * count

    def correct(self, result: Episode) -> Episode:
        now = result.trace[0].experience.now
        return episode_of(result.task, [Experience("right", "2", Outcome("goal", 1.0, True), 1.0, now)])


def test_a_memory_may_begin_with_correct_executions_and_with_wrong_ones(live) -> None:
    memory = Managed(addition="fixed", initial=5, noise=0.4, teacher=Teacher(), seed=3)
    sequences = ["".join(r.outcome.state for r in memory.records() if r.id // 3 == execution) for execution in range(5)]
    assert sorted(sequences) == ["bcd", "bcd", "bcd", "cdb", "cdb"]
    assert memory.supervision == "privileged"
    live(memory, 0, [step("z")], 1.0)
    assert len(states_of(memory)) == 15
    others = {str(list(Managed(initial=5, noise=0.4, teacher=Teacher(), seed=seed).records())) for seed in range(8)}
    assert len(others) > 1, "which are wrong depends on the seed"


def test_error_free_replaces_what_was_added_and_wrong(live) -> None:
    twin = Managed(addition="all", error_free=True, teacher=Teacher())
    live(twin, 0, [step("a")], 1.0)
    live(twin, 1, [step("b"), step("b")], 0.0)
    assert states_of(twin) == ["a", "right"]
    strict_twin = Managed(addition="strict", error_free=True, teacher=Teacher())
    live(strict_twin, 0, [step("b")], 0.0)
    assert states_of(strict_twin) == [], "what was not added is not replaced either"


@pytest.mark.parametrize(
    ("options", "supervision"),
    [
        ({}, "none"),
        ({"deletion": "periodical"}, "none"),
        ({"deletion": "history"}, "own reward"),
        ({"capacity": 5}, "own reward"),
        ({"addition": "strict"}, "own reward"),
        ({"addition": "coarse"}, "judge"),
        ({"store": "voyager"}, "own reward"),
        ({"error_free": True, "teacher": Teacher()}, "privileged"),
    ],
    ids=str,
)
def test_its_supervision(options: dict[str, Any], supervision: str) -> None:
    assert Managed(**options).supervision == supervision


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"addition": "some"}, "`addition` should be one of fixed, all, coarse, strict. Received 'some'"),
        ({"deletion": "and"}, "`deletion` should be one of none, periodical, history, combined. Received 'and'"),
        ({"counts": 3}, "`counts` should be one of here, shown. Received 3"),
        ({"judge": "me"}, "`judge` should be one of noisy_oracle, model. Received 'me'"),
        ({"ties": "young"}, "`ties` should be one of"),
        ({"capacity": 0}, "`capacity` should be a whole number, at least 1, or None. Received 0"),
        ({"period": True}, "`period` should be a whole number, at least 1. Received True"),
        ({"alpha": -1}, "`alpha` should be a whole number, at least 0. Received -1"),
        ({"uses": 0}, "`uses` should be a whole number, at least 1. Received 0"),
        ({"beta": 1.5}, "`beta` should be in the interval [0, 1]. Received 1.5"),
        ({"threshold": -0.1}, "`threshold` should be in the interval [0, 1]. Received -0.1"),
        ({"noise": 1.2}, "`noise` should be in the interval [0, 1]. Received 1.2"),
        ({"error_rate": "much"}, "`error_rate` should be in the interval [0, 1]. Received 'much'"),
        ({"error_free": 1}, "`error_free` should be true or false. Received 1"),
        ({"initial": 2}, "`initial` requires a `teacher`"),
        ({"initial": 1, "store": "none", "teacher": Teacher()}, "`initial` requires a store that writes executions"),
        ({"error_free": True}, "`error_free` requires a `teacher`"),
        ({"store": 3}, "`store` should be a memory's name, or one name with its options. Received 3"),
        ({"store": {"vanilla": {5: 1}}}, "or one name with its options. Received {'vanilla': {5: 1}}"),
        ({"teacher": "me"}, "`teacher` should be a source of demonstrations. Received 'me'"),
        ({"store": {"voyager": {"model": "gpt"}}}, "the option `model` of a store should be 'rules'"),
    ],
    ids=str,
)
def test_options_that_break_a_rule(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        make_memory("managed", **options)


def test_an_unknown_store_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'vanilla'"):
        Managed(store="vanila")


def test_a_model_judges_and_serves_the_store(live) -> None:
    asked = []

    def judge(text: str) -> dict[str, Any]:
        asked.append(text)
        return {"reasoning": "", "good": "bad" not in text}

    model = RuleModel({**make_memory("voyager").model.rules, JUDGEMENT["title"]: judge})  # type: ignore[attr-defined]
    memory = Managed(store="voyager", addition="coarse", judge="model", model=model)
    assert memory.store.model is model  # type: ignore[attr-defined]
    assert Managed(store={"voyager": {"model": "rules"}}, model=model).store.model is not model  # type: ignore[attr-defined]
    live(memory, 0, [step("bad")], 1.0)
    live(memory, 1, [step("fine")], 0.0)
    assert states_of(memory) == ["fine"]
    assert len(asked) == 2
    assert all("score" not in text.lower() for text in asked)


def test_without_a_model_declared_rules_answer_for_judge_and_store() -> None:
    rules = Managed(store="voyager").model.rules  # type: ignore[attr-defined]
    assert JUDGEMENT["title"] in rules
    assert len(rules) > 1


def test_the_rule_of_the_judge_reads_how_it_ended() -> None:
    assert judge_by_end(render_execution(Episode("t", 0.0, 1, True)))["good"] is True
    assert judge_by_end(render_execution(Episode("t", 1.0, 1, False)))["good"] is False


def test_the_noisy_oracle_is_wrong_at_its_rate() -> None:
    good = [noisy_oracle(Episode("t", 1.0, 1, True), 1.0, 0.2, 7, number).good for number in range(2000)]
    assert 0.17 < good.count(False) / len(good) < 0.23
    bad = [noisy_oracle(Episode("t", 0.0, 1, True), 1.0, 0.2, 7, number).good for number in range(2000)]
    assert bad == [not verdict for verdict in good], "its errors do not depend on what happened"


@given(
    st.integers(1, 6),
    st.integers(0, 2),
    st.integers(0, 8),
    st.lists(st.tuples(st.integers(0, 2), st.lists(st.integers(0, 40), max_size=3)), max_size=40),
)
def test_periodical_deletion_bounds_the_size(
    period: int, alpha: int, grace: int, history: list[tuple[int, list[int]]]
) -> None:
    """M <= (t - t') K / (alpha + 1), and what is in its grace period.

    Every older execution was retrieved at least alpha + 1 times in the period, in at most (t - t') K retrievals.
    """
    executions = ExecutionStore(period=period, alpha=alpha, uses=5, beta=0.5, grace=grace)
    written = 0
    for number, (new, wanted) in enumerate(history):
        executions.record_uses(wanted, 1.0)
        for _ in range(new):
            executions.write([written], episode=written, own=1.0)
            written += 1
        executions.remove([i for entry in executions.seldom_used() for i in entry.ids])
        young = sum(executions.time - entry.written < grace for entry in executions)
        assert len(executions) <= period * 3 / (alpha + 1) + young
        assert all(
            entry.recent and len(entry.recent) > alpha for entry in executions if number + 1 - entry.written >= grace
        )


@pytest.mark.parametrize(("ties", "gone"), [("oldest", [4, 0]), ("newest", [4, 3])])
def test_which_of_equals_goes_first_at_a_capacity_is_an_option(ties: str, gone: list[int]) -> None:
    executions = ExecutionStore(period=5, alpha=0, uses=5, beta=0.5, grace=5)
    for record in range(5):
        executions.write([record], episode=record, own=float(record < 4))
    assert [entry.key for entry in executions.worst(3, ties)] == gone


@given(st.lists(st.tuples(st.integers(1, 4), st.sampled_from([0.0, 0.5, 1.0])), max_size=30), st.integers(1, 12))
def test_a_capacity_deletes_the_lowest_utilities(history: list[tuple[int, float]], capacity: int) -> None:
    executions = ExecutionStore(period=5, alpha=0, uses=5, beta=0.5, grace=5)
    written = 0
    for episode, (size, own) in enumerate(history):
        executions.write(range(written, written + size), episode=episode, own=own)
        written += size
        gone = executions.worst(capacity)
        left = [entry for entry in executions if entry not in gone]
        fitting = [entry for entry in gone if len(entry.ids) <= capacity]
        assert not fitting or not left or max(e.utility for e in fitting) <= min(e.utility for e in left)
        executions.remove([i for entry in gone for i in entry.ids])
        assert executions.size <= capacity
