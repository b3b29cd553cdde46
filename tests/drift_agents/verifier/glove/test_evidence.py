"""Shares, summaries and contradictions."""

from __future__ import annotations

from collections.abc import Hashable

import pytest
from drift_agents.envs.matching import Exact
from drift_agents.types import AgentClock, Experience, Outcome, Record, Transition
from drift_agents.verifier.evidence import contradicts, share, summarise


class Cells:
    """States are numbers that match within ten; outcomes match when they change the number alike."""

    name = "cells"

    def state_key(self, state: str) -> Hashable:
        return int(state) // 10

    def same_outcome(self, a: Transition, b: Transition) -> bool:
        return int(a.outcome.state) - int(a.state) == int(b.outcome.state) - int(b.state)

    def learn(self, experience: Experience) -> None:
        pass


def record(id_: int, outcomes: list[tuple[Outcome, float]], n: int = 1, state: str = '"s"') -> Record:
    return Record(id_, state, "1", tuple(outcomes), n, AgentClock())


def test_share_counts_responses_not_records(outcome) -> None:
    """A summary of 8 probes weighs eight times as much as one lived transition."""
    known = [
        record(0, [(outcome("F"), 0.75), (outcome("H"), 0.25)], n=8),
        record(1, [(outcome("H"), 1.0)]),
        record(2, [(outcome("H"), 1.0)]),
    ]
    assert share(Transition('"s"', "1", outcome("H")), known, Exact()) == (pytest.approx(0.4), 10)
    assert share(Transition('"s"', "1", outcome("G")), known, Exact()) == (0.0, 10)
    assert share(Transition('"s"', "1", outcome("G")), [], Exact()) == (0.0, 0)


def test_score_and_end_are_part_of_the_outcome(outcome) -> None:
    known = [record(0, [(outcome("G", 1.0, ended=True), 1.0)])]
    assert share(Transition('"s"', "1", outcome("G", 0.5, ended=True)), known, Exact())[0] == 0.0
    assert share(Transition('"s"', "1", outcome("G", 1.0)), known, Exact())[0] == 0.0
    assert share(Transition('"s"', "1", outcome("G", 1.0, ended=True)), known, Exact())[0] == 1.0


def test_probes_from_two_places_of_a_cell_stay_with_their_places() -> None:
    probes = [Transition(s, "1", Outcome(t, 0.0, False)) for s, t in (("11", "13"), ("14", "16"), ("11", "13"))]
    first, second = summarise(probes, Cells())
    assert first == ("11", "1", ((Outcome("13", 0.0, False), 1.0),), 2)
    assert second == ("14", "1", ((Outcome("16", 0.0, False), 1.0),), 1)


def test_an_old_lie_does_not_hide_a_change(outcome) -> None:
    """Ten true responses and a false one that happens to be the truth of tomorrow."""
    known = [record(i, [(outcome("F"), 1.0)]) for i in range(10)] + [record(10, [(outcome("H"), 1.0)])]
    assert contradicts([Transition('"s"', "1", outcome("H"))], known, Exact())


def test_one_third_of_a_slippery_answer_that_changed(outcome) -> None:
    """On ice one of three tiles became a hole: most probes still say what memory says."""
    known = [record(0, [(outcome("a"), 0.34), (outcome("b"), 0.33), (outcome("c"), 0.33)], n=100)]
    changed = [Transition('"s"', "1", outcome(tile)) for tile in "abH" * 20]
    equal = [Transition('"s"', "1", outcome(tile)) for tile in "abc" * 20]
    assert contradicts(changed, known, Exact())
    assert not contradicts(equal, known, Exact())


def test_cells_compare_changes() -> None:
    known = [record(0, [(Outcome("13", 0.0, False), 1.0)], state="11")]
    assert not contradicts([Transition("15", "1", Outcome("17", 0.0, False))], known, Cells())
    assert contradicts([Transition("15", "1", Outcome("13", 0.0, False))], known, Cells())
