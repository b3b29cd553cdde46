"""Probes in the agent's own environment: put off to the end of the episode, charged, and time goes on."""

from __future__ import annotations

import re
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from drift_agents.agent.agent import Agent
from drift_agents.envs.matching import Exact
from drift_agents.errors import ArgumentError
from drift_agents.memory.vanilla import VanillaMemory
from drift_agents.policy.base import Reply
from drift_agents.prompt.view import PromptView
from drift_agents.types import AgentClock, Episode, ProbeCost, Removed, Verdict
from drift_agents.verifier.base import make_verifier
from drift_agents.verifier.prober import ReplayLiveProber

import drift_envs  # noqa: F401 - registers the environments
from tests.drift_agents.verifier.feeding import feed, held

RESULT = Episode("task", 0.0, 1, True)


def bound(prober: Any, name: str = "glove", **options: Any) -> Any:
    verifier = make_verifier(name, prober=prober, **options)
    verifier.bind(Exact(), np.random.default_rng(0))
    return verifier


def test_nothing_is_probed_before_the_episode_is_over(lived, outcome, ScriptedProber) -> None:
    memory, prober = VanillaMemory(), ScriptedProber([outcome("H")], live=True)
    verifier = bound(prober)
    feed(verifier, memory, lived(0, "F"))
    surprising = lived(5, "H")
    assert feed(verifier, memory, surprising, prefix=("0",)) == Verdict(surprise=True, statistic=0.0)
    assert not prober.asked
    assert held(memory) == [("F", 1, False)]
    assert verifier.quarantined == (surprising,)
    (verdict,) = verifier.end_episode(RESULT, memory, AgentClock(0, 9))
    assert prober.asked == [('"s"', "1", ("0",), 1)]
    assert (verdict.about, verdict.newest, verdict.removed) == (('"s"', "1"), 0, Removed((0,)))
    assert (verdict.realigned, verdict.contradicted, verdict.cost.steps) == (True, True, 7)
    assert held(memory) == [("H", 1, True)]
    assert verifier.quarantined == ()
    assert verifier.end_episode(RESULT, memory, AgentClock(1, 12)) == []


def test_surprises_of_one_pair_wait_together_and_those_of_others_apart(lived, outcome, ScriptedProber) -> None:
    memory, prober = VanillaMemory(), ScriptedProber([outcome("H")], live=True)
    verifier = bound(prober)
    feed(verifier, memory, lived(0, "F"), lived(1, "F", state='"t"'))
    feed(verifier, memory, lived(2, "H"), prefix=("0",))
    feed(verifier, memory, lived(3, "H", state='"t"'), prefix=("2",))
    feed(verifier, memory, lived(4, "H"), prefix=("3", "3"))
    feed(verifier, memory, lived(5, "F"))
    assert [experience.now.step for experience in verifier.quarantined] == [2, 3, 4]
    verdicts = verifier.end_episode(RESULT, memory, AgentClock(0, 9))
    assert prober.asked == [('"s"', "1", ("3", "3"), 1), ('"t"', "1", ("2",), 1)]
    assert [verdict.newest for verdict in verdicts] == [5, 1], (
        "what was written meanwhile is one of the same transitions too"
    )
    assert held(memory) == [("H", 1, True), ("H", 1, True)]


@pytest.mark.parametrize("name", ["glove", "glove_active"])
def test_all_that_probe_can_wait(name: str, lived, outcome, ScriptedProber) -> None:
    memory, prober = VanillaMemory(), ScriptedProber([outcome("H")], live=True)
    verifier = bound(prober, name, **({"minimum": 1} if name == "glove_active" else {}))
    feed(verifier, memory, lived(0, "F"))
    assert feed(verifier, memory, lived(5, "H"), prefix=("0",)).cost == ProbeCost()
    (verdict,) = verifier.end_episode(RESULT, memory, AgentClock(0, 9))
    assert verdict.probed
    assert verdict.cost.steps


def test_doubt_cannot_spread_where_probes_must_wait(ScriptedProber) -> None:
    message = "`spread` should go with a prober that can probe in the middle of an episode. Received ScriptedProber"
    with pytest.raises(ArgumentError, match=re.escape(message)):
        bound(ScriptedProber(live=True), "glove_spread")


class Ahead:
    """Goes ahead."""

    name = "ahead"

    def decide(self, view: PromptView, rng: np.random.Generator) -> Reply:
        return Reply("0")


def test_the_agent_is_charged_and_learns_when_it_was_wrong(Rules, TableEnv, outcome) -> None:
    rules = Rules({('"start"', "0"): [(outcome("a"), 1.0)], ('"a"', "0"): [(outcome("hole", ended=True), 1.0)]})
    env, memory = TableEnv(rules), VanillaMemory()
    memory.insert_summary('"start"', "0", [(outcome("b"), 1.0)], 1, AgentClock())
    agent = Agent(Ahead(), memory, make_verifier("glove", prober=ReplayLiveProber(env)))
    agent.clock = AgentClock(1, 10)
    episode = agent.run_episode(env)
    assert env.log == ["reset", "0", "0", "reset", "0"], "the probe comes behind the episode, in the same environment"
    assert (episode.steps, episode.probes, episode.surprises, episode.realignments) == (
        2,
        ProbeCost(steps=1, resets=1),
        1,
        1,
    )
    assert len(episode.closing) == 1
    assert agent.doubt_since == 12, "when it was found out, not when it was met"
    assert agent.clock == AgentClock(2, 12), "probes are no interactions of the agent's own"


def test_time_goes_on_while_it_probes() -> None:
    """Every probe is an episode of the drift's clock, and what it finds is of its own time."""
    schedule = {
        "version": 1,
        "name": "soon",
        "env": "DriftFrozenLake-v0",
        "base": {"map": ["SFF", "FFF", "FFG"]},
        "drifts": [{"at": 3, "set": {"map": ["SHF", "FFF", "FFG"]}}],
    }
    env = gym.make("DriftFrozenLake-v0", schedule=schedule, text=True)
    prober = ReplayLiveProber(env)
    start, _ = env.reset(seed=0)
    drift = env.get_wrapper_attr
    assert drift("drift_state").tick == 0
    probed = prober.probe(str(start), "2", (), 4)
    assert drift("drift_state").tick == 4
    assert [outcome.ended for outcome in probed.outcomes] == [False, False, True, True]
    assert (probed.cost.resets, probed.cost.falls) == (4, 2)
    env.close()
