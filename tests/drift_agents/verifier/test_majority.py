"""The majority of a window, against a count of the whole history."""

from __future__ import annotations

import re

import numpy as np
import pytest
from drift_agents.envs.matching import Exact
from drift_agents.errors import ArgumentError
from drift_agents.memory.vanilla import VanillaMemory
from drift_agents.types import AgentClock, Experience, Outcome
from drift_agents.verifier.base import make_verifier
from hypothesis import given
from hypothesis import strategies as st


def believed(outcomes: str) -> tuple[str, int]:
    """The most frequent outcome, ties to the newest, and where it was seen last."""
    return max(
        ((tile, outcomes.rindex(tile)) for tile in set(outcomes)), key=lambda one: (outcomes.count(one[0]), one[1])
    )


@given(st.lists(st.tuples(st.sampled_from("st"), st.sampled_from("ABC")), max_size=30), st.integers(1, 6))
def test_memory_holds_the_majority_of_the_newest_responses(responses: list[tuple[str, str]], window: int) -> None:
    memory, verifier = VanillaMemory(), make_verifier("majority", window=window)
    verifier.bind(Exact(), np.random.default_rng(0))
    seen: dict[str, list[tuple[int, str]]] = {}
    held: dict[str, tuple[int, str]] = {}
    for step, (state, tile) in enumerate(responses):
        now = AgentClock(0, step)
        verdict = verifier.verify(Experience(state, "1", Outcome(tile, 0.0, False), 0.0, now), memory, [], now)
        before = held.get(state)
        newest = seen.setdefault(state, [])
        newest.append((step, tile))
        outcome, last = believed("".join(tile for _, tile in newest[-window:]))
        held[state] = (newest[-window:][last][0], outcome)
        assert {record.state: (record.now.step, record.outcome.state) for record in memory.records()} == held
        assert len(list(memory.records())) == len(held)
        assert verdict.surprise == (before is not None and before[1] != tile)
        assert verdict.contradicted == verdict.realigned == (before is not None and before[1] != outcome)


def test_records_of_a_memory_that_forgot_are_written_again() -> None:
    memory, verifier = VanillaMemory(), make_verifier("majority", window=3)
    verifier.bind(Exact(), np.random.default_rng(0))
    for step, tile in enumerate("AAB"):
        if step == 2:
            memory.remove([record.id for record in memory.records()])
        now = AgentClock(0, step)
        verdict = verifier.verify(Experience("s", "1", Outcome(tile, 0.0, False), 0.0, now), memory, [], now)
    assert [(record.outcome.state, record.now.step) for record in memory.records()] == [("A", 1)]
    assert not verdict.contradicted, "memory said nothing"


@pytest.mark.parametrize("window", [0, 2.5, True])
def test_a_window_that_is_refused(window: object) -> None:
    with pytest.raises(ArgumentError, match=re.escape(f"Received {window!r}")):
        make_verifier("majority", window=window)
