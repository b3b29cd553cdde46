"""Each control by a trace, and how it differs from GLOVE."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from drift_agents.errors import ArgumentError
from drift_agents.matching.base import Exact
from drift_agents.memory.vanilla import VanillaMemory
from drift_agents.types import AgentClock, Episode, ProbeCost, Removed, Verdict
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


def test_probe_keep_removes_nothing(lived, outcome, ScriptedProber) -> None:
    memory, prober = VanillaMemory(), ScriptedProber([outcome("H")] * 2)
    verifier = bound("probe_keep", prober=prober, budget=2)
    verdict = feed(verifier, memory, lived(0, "F"), lived(1, "F"), lived(2, "H"), prefix=("0",))
    assert prober.asked == [('"s"', "1", ("0",), 2)]
    assert (verdict.removed, verdict.realigned, verdict.contradicted) == (Removed(), True, True)
    assert held(memory) == [("F", 1, False), ("F", 1, False), ("H", 2, True)]


def test_probe_keep_writes_when_the_prober_gives_up(lived, ScriptedProber) -> None:
    memory = VanillaMemory()
    verifier = bound("probe_keep", prober=ScriptedProber())
    verdict = feed(verifier, memory, lived(0, "F"), lived(1, "H"))
    assert (verdict.realigned, verdict.observed, verdict.cost.steps) == (False, 1, 7)
    assert held(memory) == [("F", 1, False), ("H", 1, False)]


def test_random_probe_spends_the_budget_on_any_known_pair(lived, outcome, ScriptedProber) -> None:
    """It goes by the way on which the agent last came there, and keeps the surprising pair as it is."""
    drawn = set()
    for seed in range(20):
        memory, prober = VanillaMemory(), ScriptedProber([outcome("X")] * 3)
        verifier = make_verifier("random_probe", prober=prober, budget=3)
        verifier.bind(Exact(), np.random.default_rng(seed))
        feed(verifier, memory, lived(0, "F", state='"t"'), prefix=("9",))
        feed(verifier, memory, lived(1, "F", state='"t"'), prefix=("2", "3"))
        feed(verifier, memory, lived(2, "F"), prefix=("0",))
        verdict = feed(verifier, memory, lived(3, "H"), prefix=("0", "0"))
        (asked,) = prober.asked
        assert asked in {('"t"', "1", ("2", "3"), 3), ('"s"', "1", ("0", "0"), 3)}
        drawn.add(asked)
        assert verdict.observed == 3, "the surprising experience is written"
        assert (verdict.surprise, verdict.realigned, verdict.contradicted) == (True, True, True)
        if asked[0] == '"t"':
            assert held(memory) == [("F", 1, False), ("H", 1, False), ("X", 3, True)]
            assert verdict.removed == Removed((0, 1))
    assert len(drawn) == 2


def test_random_probe_passes_over_pairs_that_memory_forgot(lived, outcome, ScriptedProber) -> None:
    for seed in range(10):
        memory, prober = VanillaMemory(), ScriptedProber([outcome("X")])
        verifier = make_verifier("random_probe", prober=prober)
        verifier.bind(Exact(), np.random.default_rng(seed))
        feed(verifier, memory, lived(0, "F", state='"t"'))
        memory.remove([0])
        feed(verifier, memory, lived(1, "F"), lived(2, "H"))
        assert prober.asked == [('"s"', "1", (), 1)]


def test_random_probe_gives_up_cleanly(lived, ScriptedProber) -> None:
    memory = VanillaMemory()
    verifier = bound("random_probe", prober=ScriptedProber())
    verdict = feed(verifier, memory, lived(0, "F"), lived(1, "H"))
    assert verdict == Verdict(surprise=True, statistic=0.0, cost=ProbeCost(steps=7, resets=1), observed=1)
    assert held(memory) == [("F", 1, False), ("H", 1, False)]


def test_periodic_wipe(lived) -> None:
    memory, verifier = VanillaMemory(), bound("periodic_wipe", every=2)
    result = Episode("task", 0.0, 1, True)
    feed(verifier, memory, lived(0, "F"))
    assert feed(verifier, memory, lived(1, "H")) == Verdict(surprise=True, contradicted=True, observed=1)
    assert verifier.end_episode(result, memory, AgentClock(0, 2)) == ()
    assert verifier.end_episode(result, memory, AgentClock(1, 2)) == (Verdict(removed=Removed((0, 1))),)
    assert held(memory) == []
    assert verifier.end_episode(result, memory, AgentClock(2, 2)) == ()


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("periodic_wipe", {"every": 0}, "`every` should be a whole number, at least 1. Received 0"),
        ("forget", {"epsilon": 2}, "`epsilon` should be in the interval (0, 1]. Received 2"),
        ("forget", {"budget": 1}, "the verifier 'forget' does not take these options"),
        ("overwrite", {"epsilon": 0.5}, "the verifier 'overwrite' does not take these options"),
    ],
)
def test_refusals(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        make_verifier(name, **options)


@pytest.mark.parametrize("name", ["probe_keep", "random_probe"])
def test_refusals_of_those_that_probe(name: str, ScriptedProber) -> None:
    with pytest.raises(ArgumentError, match=re.escape("`budget` should be a whole number, at least 1. Received 0")):
        make_verifier(name, prober=ScriptedProber(), budget=0)


def test_random_probe_refuses_a_prober_that_only_goes_back(ScriptedProber) -> None:
    with pytest.raises(ArgumentError, match=re.escape("`prober` should be one that can reach any state")):
        make_verifier("random_probe", prober=ScriptedProber(privileged=True))
