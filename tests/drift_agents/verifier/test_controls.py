"""Each control by a trace, and how it differs from GLOVE."""

from __future__ import annotations

import re
from typing import Any

import pytest
from drift_agents.errors import ArgumentError
from drift_agents.memory.vanilla import VanillaMemory
from drift_agents.types import AgentClock, ProbeCost, Removed, Verdict
from drift_agents.verifier.base import make_verifier

from tests.drift_agents.verifier.feeding import bound, feed, held


def test_overwrite_keeps_what_agrees(lived, outcome) -> None:
    memory = VanillaMemory()
    memory.insert_summary('"s"', "1", [(outcome("F"), 0.75), (outcome("H"), 0.25)], 4, AgentClock())
    verifier = bound("overwrite")
    assert feed(verifier, memory, lived(0, "F")) == Verdict(statistic=0.75, observed=1)
    verdict = feed(verifier, memory, lived(1, "H"))
    assert verdict.removed == Removed((0, 1))
    assert (verdict.surprise, verdict.realigned, verdict.contradicted, verdict.observed) == (True, True, True, 2)
    assert held(memory) == [("H", 1, False)]


def test_announce_only_writes_and_casts_doubt(lived) -> None:
    memory, verifier = VanillaMemory(), bound("announce_only")
    feed(verifier, memory, lived(0, "F"), lived(1, "F"))
    verdict = feed(verifier, memory, lived(2, "H"))
    assert (verdict.surprise, verdict.contradicted, verdict.realigned) == (True, True, False)
    assert (verdict.removed, verdict.cost) == (Removed(), ProbeCost())
    assert held(memory) == [("F", 1, False), ("F", 1, False), ("H", 1, False)]


def test_forget_removes_all_same_transitions_and_writes(lived) -> None:
    memory, verifier = VanillaMemory(), bound("forget", persistence=2)
    feed(verifier, memory, lived(0, "F"), lived(1, "F"), lived(2, "H"))
    assert held(memory) == [("F", 1, False)] * 2
    verdict = feed(verifier, memory, lived(3, "G"))
    assert verdict.removed == Removed((0, 1))
    assert verdict.cost == ProbeCost()
    assert held(memory) == [("H", 1, False), ("G", 1, False)]
    assert [record.now.step for record in memory.records()] == [2, 3]


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("forget", {"epsilon": 2}, "`epsilon` should be in the interval (0, 1]. Received 2"),
        ("forget", {"budget": 1}, "the verifier 'forget' does not take the option"),
        ("overwrite", {"epsilon": 0.5}, "the verifier 'overwrite' does not take the option"),
    ],
)
def test_refusals(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        make_verifier(name, **options)
