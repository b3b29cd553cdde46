"""Distilling and voting by rule: what is proposed, and what passes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from drift_agents.errors import ModelError
from drift_agents.llm.base import RuleModel
from drift_agents.memory.citations import swap_outcomes
from drift_agents.memory.distillation import (
    DISTIL,
    ProposedItem,
    describe_claims,
    distil,
    propose,
    quote_ends,
    read_claims,
    read_trajectories,
    render_trajectories,
)
from drift_agents.team.judge import RULES, vote
from drift_agents.types import AgentClock, Episode, Outcome, Record, Transition

from drift_envs.utils.json_schema import violations
from tests.drift_agents.llm.scripted import ScriptedModel

MODEL = RuleModel(RULES)
Steps = Sequence[tuple[str, str, str, float, bool]]


def attempts_of(*trajectories: Steps) -> list[tuple[Episode, list[Record]]]:
    """Trajectories out of (state, action, after, score, ended); records are numbered through."""
    made, number = [], 0
    for steps in trajectories:
        records = []
        for state, action, after, score, ended in steps:
            outcome = Outcome(after, score, ended)
            records.append(Record(number, state, action, ((outcome, 1.0),), 1, AgentClock(0, number)))
            number += 1
        made.append((Episode("Cross the lake.", steps[-1][3], len(steps), steps[-1][4]), records))
    return made


SHORT = [("s", "r", "m", 0.0, False), ("m", "r", "g", 1.0, True)]
LONG = [("s", "d", "x", 0.0, False), ("x", "u", "s", 0.0, False), *SHORT]
FALL = [("s", "d", "x", 0.0, False), ("x", "d", "h", 0.0, True)]
POOR = [("s", "l", "p", 0.5, True)]


def titles(candidates: Sequence[ProposedItem]) -> list[str]:
    return [candidate.title for candidate in candidates]


def test_trajectories_are_read_back_as_they_were_told() -> None:
    attempts = attempts_of(LONG, FALL)
    read = read_trajectories(render_trajectories(attempts))
    assert [(attempt.number, attempt.score, len(attempt.lines)) for attempt in read] == [(1, 1.0, 4), (2, 0.0, 2)]
    assert [line.ref for line in read[1].lines] == ["2.1", "2.2"]
    assert read[1].lines[1].outcome == ("h", 0.0, True)


def test_the_rule_proposes_the_shortest_way_without_its_detours_and_every_trap() -> None:
    found = propose(MODEL, attempts_of(LONG, FALL, POOR))
    assert titles(found) == ["Way to score 1 in 2 steps", "Way to score 0.5 in 1 steps", 'Avoid "d"', 'Avoid "l"']
    assert found[0].evidence == (2, 3), "the detour over x is left out"
    assert found[0].ordered
    assert not found[2].ordered
    assert 'From s do "r" 2 times.' in found[0].content
    assert not violations(distil(render_trajectories(attempts_of(LONG, FALL))), DISTIL)


@pytest.mark.parametrize("steps", [2, 400])
def test_what_the_rule_writes_fits_the_schema_however_long_the_way(steps: int) -> None:
    way = [(f"s{i}", f"[{i / 7:.8f}]", f"s{i + 1}", 0.0, False) for i in range(steps - 1)]
    attempts = attempts_of([*way, (f"s{steps - 1}", "[0.5]", "g", 1.0, True)])
    assert not violations(distil(render_trajectories(attempts)), DISTIL)
    (found,) = propose(MODEL, attempts)
    assert len(found.evidence) == steps, "every step is cited, also those that the text leaves out"
    assert ("more steps. At the end: " in found.content) == (steps == 400)
    assert len(read_claims(found.content)) == 1
    assert vote(MODEL, attempts, [found], [1], []) == {0}


def test_no_more_than_so_many_items() -> None:
    falls = [[(f"s{i}", "d", f"h{i}", 0.0, True)] for i in range(8)]
    assert len(propose(MODEL, attempts_of(*falls))) == 5
    assert len(propose(MODEL, attempts_of(*falls), most=2)) == 2


def test_what_another_trajectory_contradicts_is_not_proposed() -> None:
    lie = [("m", "r", "h", 0.0, True)]
    assert "Way to score 1 in 2 steps" not in titles(propose(MODEL, attempts_of(SHORT, lie)))
    assert "Way to score 1 in 2 steps" in titles(propose(MODEL, attempts_of(SHORT, SHORT, lie)))
    assert 'Avoid "r"' not in titles(propose(MODEL, attempts_of(SHORT, SHORT, lie)))


def test_an_item_without_a_line_is_dropped_and_unknown_lines_are_passed_over() -> None:
    item: dict[str, Any] = {"title": "t", "description": "d", "content": "c", "evidence": ["[1.2]", "9.9"]}
    model = ScriptedModel(
        [
            f'{{"items": [{{"title": "t", "description": "d", "content": "c", "evidence": {evidence}}}]}}'
            for evidence in ('["[1.2]", "9.9"]', '["9.9"]', "[]")
        ]
    )
    assert item["evidence"]
    assert [[c.evidence for c in propose(model, attempts_of(SHORT))] for _ in range(3)] == [[(1,)], [], []]


def test_a_distiller_that_does_not_answer_by_the_form_is_an_error() -> None:
    with pytest.raises(ModelError, match="edv_distil"):
        propose(ScriptedModel(["Nothing comes to mind."]), attempts_of(SHORT))


def test_sound_candidates_pass_for_everybody() -> None:
    attempts = attempts_of(SHORT, FALL)
    candidates = propose(MODEL, attempts)
    assert vote(MODEL, attempts, candidates, [1], []) == vote(MODEL, attempts, candidates, [2], []) == {0, 1}


def test_a_way_is_of_no_use_to_who_did_better() -> None:
    attempts = attempts_of([("s", "a", "n", 0.0, False), ("n", "a", "p", 0.5, True)], SHORT)
    candidates = propose(MODEL, attempts)
    poor = titles(candidates).index("Way to score 0.5 in 2 steps")
    assert poor in vote(MODEL, attempts, candidates, [1], [])
    assert poor not in vote(MODEL, attempts, candidates, [2], [])


def test_what_a_voter_holds_already_is_rejected() -> None:
    attempts = attempts_of(SHORT, FALL)
    candidates = propose(MODEL, attempts)
    assert vote(MODEL, attempts, candidates, [1], [candidates[0].content]) == {1}
    assert vote(MODEL, attempts, [candidates[1], candidates[1]], [1], []) == {0}, "nor is anything accepted twice"


def test_a_wrong_candidate_is_rejected_because_no_line_says_it() -> None:
    attempts = attempts_of([("s", "r", "m", 0.0, False)], [("s", "l", "h", 0.0, True)])
    claims = (Transition("s", "r", Outcome("h", 0.0, True)), Transition("s", "l", Outcome("m", 0.0, False)))
    wrong = describe_claims(claims)._replace(refs=("1.1", "2.1"))
    true = describe_claims([Transition(c.state, a, c.outcome) for c, a in zip(claims, "lr", strict=True)])
    assert len(read_claims(wrong.text())) == 2
    assert vote(MODEL, attempts, [wrong, true._replace(refs=("1.1", "2.1"))], [1], []) == {1}
    assert vote(MODEL, attempts, [true], [1], []) == set(), "what cites nothing is rejected too"


def known(*steps: tuple[str, str, str, float, bool]) -> list[Record]:
    return attempts_of(steps)[0][1]


def test_false_claims_are_possible_outcomes_of_the_same_state_where_it_matters() -> None:
    import numpy as np

    records = known(("a", "1", "b", 0.0, False), ("a", "2", "c", 0.0, False), ("a", "3", "h", 0.0, True))
    for seed in range(10):
        claims = swap_outcomes(records, str, np.random.default_rng(seed))
        assert {claim.state for claim in claims} == {"a"}
        assert any(claim.outcome.ended for claim in claims), "a pair that differs in its end comes first"
        lived = {(record.action, record.outcome) for record in records}
        assert not lived & {(claim.action, claim.outcome) for claim in claims}
    assert (
        swap_outcomes(known(("a", "1", "b", 0.0, False), ("c", "1", "d", 0.0, False)), str, np.random.default_rng(0))
        == ()
    )


def test_a_candidate_that_cites_a_line_which_does_not_exist_is_rejected() -> None:
    attempts = attempts_of(SHORT, FALL)
    sound = propose(MODEL, attempts)[0]
    assert vote(MODEL, attempts, [sound._replace(refs=(*sound.refs, "3.1"))], [1], []) == set()


def test_a_state_is_cut_only_where_that_makes_it_shorter() -> None:
    whole = "a" * 60 + "b" * 5 + "c" * 130
    assert quote_ends(whole) == whole
    assert quote_ends(whole + "c") == f"{'a' * 60} ... {'c' * 130}"
