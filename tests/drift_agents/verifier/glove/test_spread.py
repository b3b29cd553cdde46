"""Doubt that spreads: what is checked, when, what it costs, and what the policy then sees."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from drift_agents.agent.agent import Agent
from drift_agents.envs.matching import Exact
from drift_agents.errors import ArgumentError
from drift_agents.memory.vanilla import VanillaMemory
from drift_agents.policy.base import Reply
from drift_agents.prompt.view import PromptView
from drift_agents.types import AgentClock, ProbeCost, Removed, Verdict
from drift_agents.verifier.base import make_verifier
from drift_agents.verifier.prober import ReplayProber

from tests.drift_agents.verifier.feeding import feed


def bound(prober: Any, name: str = "glove_spread", **options: Any) -> Any:
    verifier = make_verifier(name, prober=prober, **options)
    verifier.bind(Exact(), np.random.default_rng(0))
    return verifier


def held(memory: VanillaMemory, state: str = '"t"') -> list[tuple[str, int, bool]]:
    return [(r.outcome.state.strip('"'), r.n, r.verified) for r in memory.records() if r.state == state]


@pytest.fixture
def doubting(lived, outcome, ScriptedProber):
    """A verifier that has found a drift at step 20; memory knows t and u from before it."""
    memory, prober = VanillaMemory(), ScriptedProber([outcome("H")])
    verifier = bound(prober)
    feed(verifier, memory, lived(0, "F"), lived(1, "F", state='"t"'), lived(2, "F", state='"u"'))
    assert verifier.consider('"t"', "1", memory, ("0",), AgentClock(1, 10)) is None, "nothing is in doubt yet"
    assert feed(verifier, memory, lived(20, "H")).contradicted
    prober.asked.clear()
    return verifier, memory, prober


def test_an_old_record_is_checked_before_it_is_used(doubting) -> None:
    verifier, memory, prober = doubting
    verdict = verifier.consider('"t"', "1", memory, ("0", "2"), AgentClock(2, 30))
    assert prober.asked == [('"t"', "1", ("0", "2"), 1)]
    assert (verdict.about, verdict.surprise, verdict.realigned, verdict.contradicted) == (
        ('"t"', "1"),
        True,
        True,
        True,
    )
    assert verdict.removed == Removed((1,))
    assert verdict.cost == ProbeCost(steps=7, resets=1)
    assert held(memory) == [("H", 1, True)]
    assert [record.now.step for record in memory.records() if record.state == '"t"'] == [30]


def test_what_is_still_true_is_confirmed_by_a_summary(doubting, outcome) -> None:
    verifier, memory, prober = doubting
    prober.outcomes = [outcome("F")]
    verdict = verifier.consider('"t"', "1", memory, (), AgentClock(2, 30))
    assert (verdict.realigned, verdict.contradicted, verdict.removed) == (False, False, Removed())
    assert verdict.inserted is not None
    assert held(memory) == [("F", 1, False), ("F", 1, True)]


@pytest.mark.parametrize("brings", ["H", "F", None])
def test_a_pair_is_checked_once_for_a_drift(brings: str | None, doubting, outcome) -> None:
    verifier, memory, prober = doubting
    prober.outcomes = [] if brings is None else [outcome(brings)]
    first = verifier.consider('"t"', "1", memory, (), AgentClock(2, 30))
    assert first.cost.steps == 7, "charged also when the prober gives up"
    assert verifier.consider('"t"', "1", memory, (), AgentClock(2, 31)) is None
    if brings is None:
        assert first == Verdict(cost=first.cost, about=('"t"', "1"))
        assert held(memory) == [("F", 1, False)]
    assert verifier.consider('"u"', "1", memory, (), AgentClock(2, 32)) is not None, "another state"


def test_what_is_new_or_unknown_is_not_in_doubt(doubting, lived) -> None:
    verifier, memory, prober = doubting
    feed(verifier, memory, lived(25, "F", state='"t"'))
    now = AgentClock(3, 30)
    assert verifier.consider('"t"', "1", memory, (), now) is None, "seen since"
    assert verifier.consider('"u"', "0", memory, (), now) is None, "never tried"
    assert verifier.consider('"s"', "1", memory, (), now) is None, "realigned"
    assert not prober.asked


def test_another_drift_puts_everything_in_doubt_again(doubting, lived, outcome) -> None:
    verifier, memory, prober = doubting
    prober.outcomes = [outcome("F")]
    assert verifier.consider('"t"', "1", memory, (), AgentClock(2, 30)) is not None
    feed(verifier, memory, lived(40, "F"))
    assert verifier.consider('"t"', "1", memory, (), AgentClock(5, 50)) is not None, (
        "what step 20 wrote was wrong at 40"
    )


def test_a_probe_that_only_confirms_memory_spreads_no_doubt(lived, outcome, ScriptedProber) -> None:
    memory, verifier = VanillaMemory(), bound(ScriptedProber([outcome("F")]))
    feed(verifier, memory, lived(0, "F"), lived(1, "F", state='"t"'), lived(20, "H"))
    assert verifier.consider('"t"', "1", memory, (), AgentClock(2, 30)) is None


def test_plain_glove_never_checks(lived, outcome, ScriptedProber) -> None:
    memory, verifier = VanillaMemory(), bound(ScriptedProber([outcome("H")]), "glove")
    feed(verifier, memory, lived(0, "F"), lived(1, "F", state='"t"'), lived(20, "H"))
    assert verifier.consider('"t"', "1", memory, (), AgentClock(2, 30)) is None
    with pytest.raises(ArgumentError, match=re.escape("`spread` should be true or false. Received 1")):
        bound(ScriptedProber(), spread=1)


class Trusting:
    """Takes the action that is remembered to pay most, and says what it read."""

    name = "trusting"

    def __init__(self) -> None:
        self.read: list[tuple[str, dict[str, float]]] = []

    def decide(self, view: PromptView, rng: np.random.Generator) -> Reply:
        worth = {item.action: item.outcome.score for item in view.here}
        self.read.append((view.state, worth))
        return Reply(max(view.actions, key=lambda action: (worth.get(action, 0.0), action == "0")))


def test_the_policy_is_asked_again_when_it_relied_on_what_is_no_longer_true(Rules, TableEnv, outcome) -> None:
    """The environment drifts at the start and behind it: the first is met, the second is checked before it is used."""
    good, bad = outcome("goal", 1.0, ended=True), outcome("hole", ended=True)
    rules = Rules({('"start"', "0"): [(outcome("a"), 1.0)], ('"a"', "1"): [(good, 1.0)]})
    env, twin, policy, memory = TableEnv(rules), TableEnv(rules), Trusting(), VanillaMemory()
    for pair, answer in ((('"start"', "0"), outcome("b")), (('"a"', "1"), good)):
        memory.insert_summary(*pair, [(answer, 1.0)], 1, AgentClock())
    rules.table['"a"', "1"] = [(bad, 1.0)]
    rules.table['"a"', "0"] = [(outcome("goal", 0.5, ended=True), 1.0)]
    agent = Agent(policy, memory, make_verifier("glove_spread", prober=ReplayProber(twin)))
    agent.clock = AgentClock(1, 5)
    episode = agent.run_episode(env)
    assert episode.score == 0.5, "it did not fall"
    assert [step.experience.action for step in episode.trace] == ["0", "0"]
    assert policy.read == [('"start"', {"0": 0.0}), ('"a"', {"1": 1.0}), ('"a"', {"1": 0.0})]
    (check,) = episode.trace[1].checks
    assert (check.about, check.cost) == (('"a"', "1"), ProbeCost(steps=1, falls=1)), "the twin stands there already"
    assert episode.probes == ProbeCost(steps=2, resets=1, falls=1)
    assert (episode.surprises, episode.realignments) == (1, 2)
    assert agent.doubt_since == 5
