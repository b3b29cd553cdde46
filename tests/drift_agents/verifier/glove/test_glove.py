"""GLOVE against traces computed by hand, one for each phase of algorithm 1."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from drift_agents.envs.matching import Exact
from drift_agents.errors import ArgumentError
from drift_agents.memory.vanilla import VanillaMemory
from drift_agents.types import AgentClock, Experience, ProbeCost, Verdict
from drift_agents.verifier.base import make_verifier
from drift_agents.verifier.glove import Glove


def bound(prober: Any, **options: Any) -> Glove:
    glove = Glove(prober=prober, **options)
    glove.bind(Exact(), np.random.default_rng(0))
    return glove


def meet(glove: Any, memory: VanillaMemory, experience: Experience, prefix: tuple[str, ...] = ()) -> Verdict:
    return glove.verify(experience, memory, prefix, experience.now)


def held(memory: VanillaMemory) -> list[tuple[str, int, int, bool]]:
    """Most probable tile, responses, time and mark of every record."""
    return [(r.outcome.state.strip('"'), r.n, r.now.step, r.verified) for r in memory.records()]


def test_what_memory_does_not_know_is_exploration(ScriptedProber, lived) -> None:
    memory, prober = VanillaMemory(), ScriptedProber()
    glove = bound(prober)
    assert meet(glove, memory, lived(0, "F")) == Verdict(observed=0)
    assert meet(glove, memory, lived(1, "H", action="2")) == Verdict(observed=1)
    assert meet(glove, memory, lived(2, "H", state='"t"')) == Verdict(observed=2)
    assert prober.asked == []


def test_the_same_transitions_do_not_contain_the_new_transition(ScriptedProber, lived, outcome) -> None:
    """With the new one among them Q_hist of the second would be 1/2, and nothing would ever surprise."""
    memory, prober = VanillaMemory(), ScriptedProber([outcome("H")])
    glove = bound(prober)
    meet(glove, memory, lived(0, "F"))
    assert meet(glove, memory, lived(1, "H")).statistic == 0.0
    assert len(prober.asked) == 1


def test_a_surprise_is_probed_and_memory_realigned(ScriptedProber, lived, outcome) -> None:
    memory, prober = VanillaMemory(), ScriptedProber([outcome("H")])
    glove = bound(prober)
    for step in range(3):
        meet(glove, memory, lived(step, "F"))
    meet(glove, memory, lived(3, "G", state='"elsewhere"'))
    verdict = meet(glove, memory, lived(14, "H"), prefix=("0", "2"))
    assert prober.asked == [('"s"', "1", ("0", "2"), 1)]
    assert verdict == Verdict(
        surprise=True,
        statistic=0.0,
        probed=(outcome("H"),),
        cost=ProbeCost(steps=7, resets=1),
        removed=verdict.removed._replace(records=(0, 1, 2)),
        realigned=True,
        contradicted=True,
        observed=None,
        inserted=4,
    )
    assert held(memory) == [("G", 1, 3, False), ("H", 1, 14, True)]
    assert [record.now for record in memory.records()][-1] == AgentClock(1, 14)


def test_a_false_response_is_found_out(ScriptedProber, lived, outcome) -> None:
    """The probe answers as memory says: the old records become one verified record, the lie is dropped."""
    memory = VanillaMemory()
    glove = bound(ScriptedProber([outcome("F")]))
    for step in range(3):
        meet(glove, memory, lived(step, "F"))
    verdict = meet(glove, memory, lived(3, "H"))
    assert (verdict.realigned, verdict.contradicted, verdict.inserted) == (True, False, 3)
    assert held(memory) == [("F", 1, 3, True)]


def test_persistence_quarantine_and_realignment(ScriptedProber, lived, outcome) -> None:
    memory, prober = VanillaMemory(), ScriptedProber([outcome("H")])
    glove = bound(prober, persistence=3)
    for step in range(4):
        meet(glove, memory, lived(step, "F"))
    assert meet(glove, memory, lived(4, "H")) == Verdict(surprise=True, statistic=0.0)
    assert meet(glove, memory, lived(5, "G")) == Verdict(surprise=True, statistic=0.0)
    assert glove.quarantined == (lived(4, "H"), lived(5, "G"))
    assert held(memory) == [("F", 1, step, False) for step in range(4)], "quarantined, not written"
    assert prober.asked == []
    verdict = meet(glove, memory, lived(6, "H"))
    assert verdict.statistic == 0.0, "the quarantined ones do not raise Q_hist"
    assert verdict.realigned
    assert glove.quarantined == ()
    assert held(memory) == [("H", 1, 6, True)]


def test_the_expected_outcome_breaks_the_row_and_releases_the_quarantine(ScriptedProber, lived, outcome) -> None:
    memory, prober = VanillaMemory(), ScriptedProber([outcome("H")])
    glove = bound(prober, epsilon=0.2, persistence=2)
    for step in range(4):
        meet(glove, memory, lived(step, "F"))
    meet(glove, memory, lived(4, "H"))
    assert meet(glove, memory, lived(15, "F")) == Verdict(statistic=1.0, observed=5)
    assert glove.quarantined == ()
    assert held(memory)[-2:] == [("H", 1, 4, False), ("F", 1, 15, False)], "with its own time, before the new one"
    assert [record.now.episode for record in memory.records()][-2:] == [0, 1]
    # Of six responses one is H now: 1/6 < .2 is a surprise again, and the row starts from one.
    assert meet(glove, memory, lived(16, "H")) == Verdict(surprise=True, statistic=pytest.approx(1 / 6))
    assert prober.asked == []


def test_rows_of_different_pairs_do_not_mix(ScriptedProber, lived, outcome) -> None:
    memory, prober = VanillaMemory(), ScriptedProber([outcome("H")])
    glove = bound(prober, persistence=2)
    for step, (state, action) in enumerate((('"s"', "1"), ('"s"', "2"), ('"t"', "1"))):
        meet(glove, memory, lived(step, "F", state=state, action=action))
    meet(glove, memory, lived(3, "H"))
    assert not meet(glove, memory, lived(4, "H", action="2")).realigned
    assert not meet(glove, memory, lived(5, "H", state='"t"')).realigned
    assert prober.asked == []
    # Expected outcomes elsewhere do not break the row of this pair.
    meet(glove, memory, lived(6, "G", state='"u"'))
    glove.begin_episode()
    assert meet(glove, memory, lived(7, "H")).realigned
    assert glove.quarantined == (lived(4, "H", action="2"), lived(5, "H", state='"t"'))


def test_no_test_below_the_minimum(ScriptedProber, lived, outcome) -> None:
    memory, prober = VanillaMemory(), ScriptedProber([outcome("H")])
    glove = bound(prober, minimum=3)
    for step, tile in enumerate("FHG"):
        assert meet(glove, memory, lived(step, tile)) == Verdict(observed=step)
    assert meet(glove, memory, lived(3, "X")).realigned


def test_a_quarantine_whose_same_transitions_were_forgotten_is_released(ScriptedProber, lived) -> None:
    """A memory may forget by its own rule: then nothing is contradicted any more."""
    memory = VanillaMemory()
    glove = bound(ScriptedProber(), persistence=2)
    meet(glove, memory, lived(0, "F"))
    meet(glove, memory, lived(1, "H"))
    memory.remove([0])
    assert meet(glove, memory, lived(2, "H")) == Verdict(observed=2)
    assert held(memory) == [("H", 1, 1, False), ("H", 1, 2, False)]


def test_the_summary_is_the_distribution_of_the_probes(ScriptedProber, lived, outcome) -> None:
    memory = VanillaMemory()
    glove = bound(ScriptedProber([outcome("H"), outcome("F"), outcome("H"), outcome("H")]), budget=4)
    meet(glove, memory, lived(0, "F"))
    meet(glove, memory, lived(1, "G"))
    (record,) = memory.records()
    assert record.outcomes == ((outcome("H"), 0.75), (outcome("F"), 0.25))
    assert (record.n, record.verified) == (4, True)
    # Q_hist of F is .25 now: below .5, so F surprises; H does not.
    assert meet(glove, memory, lived(2, "H")).statistic == 0.75


def test_epsilon_is_a_strict_bound(ScriptedProber, lived, outcome) -> None:
    memory = VanillaMemory()
    glove = bound(ScriptedProber([outcome("F")]), epsilon=0.5, minimum=2)
    meet(glove, memory, lived(0, "F"))
    meet(glove, memory, lived(1, "H"))
    assert meet(glove, memory, lived(2, "H")) == Verdict(statistic=0.5, observed=2)


def test_a_prober_that_gives_up_leaves_memory_alone(ScriptedProber, lived) -> None:
    memory, prober = VanillaMemory(), ScriptedProber([])
    glove = bound(prober, persistence=2)
    meet(glove, memory, lived(0, "F"))
    meet(glove, memory, lived(1, "H"))
    verdict = meet(glove, memory, lived(2, "G"))
    assert verdict == Verdict(surprise=True, statistic=0.0, cost=ProbeCost(steps=7, resets=1), observed=2)
    assert held(memory) == [("F", 1, 0, False), ("H", 1, 1, False), ("G", 1, 2, False)]
    assert glove.quarantined == ()


def test_the_prober_hears_of_every_step(ScriptedProber, lived, outcome) -> None:
    memory, prober = VanillaMemory(), ScriptedProber([outcome("H")])
    glove = bound(prober)
    glove.begin_episode()
    for step, tile in enumerate("FFH"):
        meet(glove, memory, lived(step, tile))
    assert prober.calls == ["begin_episode", "moved", "moved", "probe", "moved"]
    assert isinstance(prober.matching, Exact)


def test_supervision_is_that_of_the_prober(ScriptedProber) -> None:
    assert make_verifier("glove", prober=ScriptedProber()).supervision == "none"
    assert make_verifier("glove", prober=ScriptedProber(privileged=True)).supervision == "privileged"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 0.0}, "`epsilon` should be in the interval (0, 1]. Received 0.0"),
        ({"epsilon": True}, "`epsilon` should be in the interval (0, 1]. Received True"),
        ({"epsilon": 1.2}, "`epsilon` should be in the interval (0, 1]. Received 1.2"),
        ({"epsilon": float("nan")}, "`epsilon` should be in the interval (0, 1]. Received nan"),
        ({"persistence": 2.5}, "`persistence` should be a whole number, at least 1. Received 2.5"),
        (
            {"budget": {"outcomes": 3, "accuracy": 0.2, "confidence": 1.5}},
            "`confidence` should be in the interval (0, 1). Received 1.5",
        ),
        ({"alpha": 5}, "Known: prober, budget, spread, epsilon, persistence, minimum,"),
        ({"persistence": 0}, "`persistence` should be a whole number, at least 1. Received 0"),
        ({"minimum": 1.5}, "`minimum` should be a whole number, at least 1. Received 1.5"),
        ({"budget": -1}, "`budget` should be a whole number, at least 1. Received -1"),
        ({"budget": {"outcomes": 3}}, "`budget` should be a whole number, at least 1 or a mapping with accuracy,"),
        (
            {"budget": {"outcomes": 3, "accuracy": 0, "confidence": 0.05}},
            "`accuracy` should be in the interval (0, 2]. Received 0",
        ),
        ({"prober": None}, "`prober` should have bind, begin_episode, moved, probe, privileged and live"),
        ({"epsilom": 0.1}, "the verifier 'glove' does not take the option"),
    ],
)
def test_refusals(ScriptedProber, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        make_verifier("glove", **{"prober": ScriptedProber(), **options})


def test_a_prober_is_needed() -> None:
    with pytest.raises(ArgumentError, match="needs the option 'prober'"):
        make_verifier("glove")
