"""`VerifierWithProber`: a verifier of a few lines inherits what a prober has to hear."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from drift_agents import Agent, ReplayProber, make_memory, make_policy, make_verifier
from drift_agents.envs.matching import Exact
from drift_agents.errors import ArgumentError
from drift_agents.memory.base import Memory
from drift_agents.memory.vanilla import VanillaMemory
from drift_agents.types import AgentClock, Experience, Verdict
from drift_agents.verifier.base import Verifier, VerifierWithProber

import drift_envs


class AskAgain(VerifierWithProber):
    """What contradicts memory is tried again, and the second response is believed."""

    name = "ask_again"

    def judge(self, experience: Experience, memory: Memory, prefix: Sequence[str], now: AgentClock) -> Verdict:
        known = memory.same_transitions(experience.state, experience.action)
        if not known or self._matching.same_outcome(experience.transition, known[-1].transitions()[0][0]):
            return Verdict(observed=memory.observe(experience, now))
        probed = self.probe(experience.state, experience.action, prefix)
        if experience.outcome not in probed.outcomes:
            return Verdict(surprise=True, probed=probed.outcomes, cost=probed.cost)
        removed = memory.remove([record.id for record in known])
        return Verdict(
            surprise=True, probed=probed.outcomes, cost=probed.cost, removed=removed, realigned=True, contradicted=True,
            observed=memory.observe(experience, now),
        )  # fmt: skip


def test_the_prober_hears_of_everything(ScriptedProber, lived, outcome) -> None:
    class Following(ScriptedProber):
        def follow(self, experience: Experience) -> None:
            self.calls.append("follow")

    prober = Following([outcome("H")])
    verifier, memory, matching = AskAgain(prober=prober), VanillaMemory(), Exact()
    assert isinstance(verifier, Verifier)
    verifier.bind(matching, np.random.default_rng(0))
    assert prober.matching is matching
    verifier.begin_episode()
    for step, tile in enumerate("FH"):
        verifier.verify(lived(step, tile), memory, ("0",), AgentClock(0, step))
    assert prober.calls == ["begin_episode", "follow", "moved", "follow", "probe", "moved"]
    assert [record.outcome for record in memory.records()] == [outcome("H")]


def test_the_limits_hold() -> None:
    env = gym.make("DriftFrozenLake-v0", text=True)
    verifier = AskAgain(prober=ReplayProber(drift_envs.twin(env)), probes_total=1)
    verifier.bind(Exact(), np.random.default_rng(0))
    state, _ = env.reset(seed=0)
    verifier.begin_episode()
    tried = [verifier.probe(state, "1", ()) for _ in range(2)]
    assert [len(one.transitions) for one in tried] == [1, 0]
    env.close()


def test_what_cannot_probe_in_an_episode_is_refused(ScriptedProber) -> None:
    with pytest.raises(ArgumentError, match="can probe in the middle of an episode"):
        AskAgain(prober=ScriptedProber(live=True))
    with pytest.raises(ArgumentError, match="`prober` should have bind, begin_episode, moved"):
        AskAgain(prober=object())


@pytest.mark.integration
def test_it_costs_what_glove_costs() -> None:
    """Without chance both probe the same pairs; a prober that hears of no step needs longer ways back."""

    def play(make: Any) -> tuple[int, list[float]]:
        env = gym.make("DriftFrozenLake-v0", schedule="frozen_lake/explicit:family", text=True)
        agent = Agent(make_policy("planner"), make_memory("vanilla"), make(ReplayProber(drift_envs.twin(env))))
        episodes = [agent.run_episode(env, seed=0 if round_ == 0 else None) for round_ in range(45)]
        env.close()
        return sum(episode.probes.steps for episode in episodes), [episode.score for episode in episodes]

    own = play(lambda prober: AskAgain(prober=prober))
    assert own == play(lambda prober: make_verifier("glove", prober=prober))
    assert own[0] > 0
