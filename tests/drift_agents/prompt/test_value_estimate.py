"""Outlooks, against the case study of GLOVE's appendix B.6."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from drift_agents.prompt.value_estimate import ValueEstimate
from drift_agents.prompt.view import CONFLICTS
from drift_agents.types import AgentClock, Outcome, Record


def chain(*cells: str, score: float, start: int = 0, actions: str = "2") -> list[Record]:
    """Records from cell to cell, the last one an end with that score."""
    records = []
    for offset, (before, after) in enumerate(pairwise(cells)):
        ended = offset == len(cells) - 2
        outcome = Outcome(after, score if ended else 0.0, ended)
        now = AgentClock(0, start + offset)
        records.append(Record(start + offset, before, actions, ((outcome, 1.0),), 1, now))
    return records


def value_of(record: Record, records: Sequence[Record], conflict: str = "majority", **key: Any) -> float:
    return ValueEstimate(records, conflict, **key)(record.outcome)


# (3, 2) -> right along the row to (3, 5); or down and along the lower row to (5, 5).
TO_NEAR = ("3,2", "3,3", "3,4", "3,5")
TO_FAR = ("3,2", "4,2", "5,2", "5,3", "5,4", "5,5")


@pytest.mark.parametrize("conflict", CONFLICTS)
def test_before_the_reversal_is_noticed(conflict: str) -> None:
    near, far = chain(*TO_NEAR, score=0.5), chain(*TO_FAR, score=1.0, start=10, actions="1")
    assert value_of(near[0], near + far, conflict) == 0.5
    assert value_of(far[0], near + far, conflict) == 1.0


@pytest.mark.parametrize("conflict", CONFLICTS)
def test_after_realignment_neither_way_leads_to_a_full_score(conflict: str) -> None:
    near, far = chain(*TO_NEAR, score=0.5), chain(*TO_FAR, score=0.5, start=10, actions="1")
    assert value_of(near[0], near + far, conflict) == 0.5
    assert value_of(far[0], near + far, conflict) == 0.5


@pytest.mark.parametrize(
    ("conflict", "expected"), [("majority", 1.0), ("newest", 0.5), ("frequency", 0.875), ("max", 1.0)]
)
def test_without_realignment_the_rule_decides(conflict: str, expected: float) -> None:
    old = [chain(*TO_FAR, score=1.0, start=10 * i, actions="1") for i in range(3)]
    new = chain(*TO_FAR, score=0.5, start=90, actions="1")
    assert value_of(new[0], [*old[0], *old[1], *old[2], *new], conflict) == pytest.approx(expected)


def test_a_circle_promises_nothing_by_itself() -> None:
    there = Record(0, "a", "0", ((Outcome("b", 0.0, False), 1.0),), 1, AgentClock())
    back = Record(1, "b", "0", ((Outcome("a", 0.0, False), 1.0),), 1, AgentClock())
    out = Record(2, "b", "1", ((Outcome("goal", 0.5, True), 1.0),), 1, AgentClock())
    assert value_of(there, [there, back]) == 0.0
    assert value_of(there, [there, back, out]) == value_of(back, [there, back, out]) == 0.5


def test_a_slippery_way_is_worth_its_mean() -> None:
    both = ((Outcome("goal", 1.0, True), 0.6), (Outcome("start", 0.0, False), 0.2), (Outcome("hole", 0.0, True), 0.2))
    slip = Record(0, "start", "0", both, 10, AgentClock())
    # v = .6 + .2 v, so v = .75
    assert ValueEstimate([slip], "frequency")(Outcome("start", 0.0, False)) == pytest.approx(0.75, abs=1e-6)


def test_states_are_joined_by_the_matching_rule() -> None:
    first = Record(0, "x1", "0", ((Outcome("y1", 0.0, False), 1.0),), 1, AgentClock())
    second = Record(1, "y2", "0", ((Outcome("z", 1.0, True), 1.0),), 1, AgentClock())
    assert value_of(first, [first, second]) == 0.0
    assert value_of(first, [first, second], key=lambda state: state[0]) == 1.0
