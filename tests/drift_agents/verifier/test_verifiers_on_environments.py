"""Verifiers on the real environments: the example of the README, probers on lake and car, GLOVE against its control."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from drift_agents import Agent, Glove, ReplayProber, SnapshotProber, make_memory, make_policy, make_verifier
from drift_agents.envs.matching import make_matching
from drift_agents.memory.base import Memory
from drift_agents.types import AgentClock, Episode, Experience, ProbeCost, Verdict
from drift_agents.verifier.base import BaseVerifier

import drift_envs

pytestmark = pytest.mark.integration


def played(env: Any, agent: Agent, rounds: int = 60, seed: int = 0) -> list[Episode]:
    return [agent.run_episode(env, seed=seed if round_ == 0 else None) for round_ in range(rounds)]


def test_the_example() -> None:
    """A memory of one's own in ten lines: this is how the documentation does it."""
    env = gym.make("DriftFrozenLake-v0", text=True)
    prober = ReplayProber(drift_envs.twin(env))
    agent = Agent(
        policy=make_policy("planner"), memory=make_memory("vanilla", k=5), verifier=Glove(epsilon=0.5, prober=prober)
    )
    scores, probes = [], ProbeCost()
    for round_ in range(60):
        episode = agent.run_episode(env, seed=0 if round_ == 0 else None)
        assert len(episode.trace) == episode.steps
        scores.append(episode.score)
        probes += episode.probes
    env.close()
    assert np.mean(scores[10:20]) > 0.8, "learned the lake"
    assert min(np.mean(scores[30:40]), np.mean(scores[50:60])) > 0.8, "and learned it again after each drift"
    assert probes.steps > 0


@pytest.mark.parametrize("schedule", ["frozen_lake/explicit:family", "frozen_lake/implicit:family"])
@pytest.mark.parametrize("seed", range(2))
def test_glove_and_overwrite_agree_on_ice_without_chance(schedule: str, seed: int) -> None:
    runs = []
    for name in ("glove", "overwrite"):
        env = gym.make("DriftFrozenLake-v0", schedule=schedule, text=True)
        options = {"prober": ReplayProber(drift_envs.twin(env))} if name == "glove" else {}
        agent = Agent(make_policy("planner"), make_memory("vanilla"), make_verifier(name, **options), seed=seed)
        episodes = played(env, agent, rounds=45, seed=seed)
        runs.append([(step.experience, step.verdict.realigned) for episode in episodes for step in episode.trace])
        if name == "glove":
            given_up = [s for e in episodes for s in e.trace if s.verdict.cost.resets and not s.verdict.probed]
            assert not given_up, "a way without chance leads back"
        env.close()
    assert runs[0] == runs[1]
    assert any(realigned for _, realigned in runs[0])


class WritesAll(BaseVerifier):
    """Writes every experience; memory is never in doubt."""

    name = "writes all"

    def verify(self, experience: Experience, memory: Memory, prefix: Sequence[str], now: AgentClock) -> Verdict:
        return Verdict(observed=memory.observe(experience, now))


@pytest.mark.parametrize("conflict", ["majority", "newest"])
def test_doubt_alone_changes_episodes(conflict: str) -> None:
    """`announce_only` writes no verified record; its memory is that of a verifier that never doubts."""
    runs = []
    for verifier in (WritesAll(), make_verifier("announce_only")):
        env = gym.make("DriftFrozenLake-v0", schedule="frozen_lake/explicit:family", text=True)
        policy = make_policy("planner", conflict=conflict)
        agent = Agent(policy, make_memory("vanilla", k=5, order="newest"), verifier, seed=1)
        runs.append([[step.experience for step in episode.trace] for episode in played(env, agent, rounds=40)])
        env.close()
    assert runs[0][:20] == runs[1][:20], "before the drift nothing contradicts memory"
    assert runs[0] != runs[1]


def test_probing_helps_where_responses_lie() -> None:
    """One response in ten is false: an agent that believes the newest one forgets true ones."""
    means = {}
    for name in ("glove", "overwrite"):
        scores = []
        for seed in range(2):
            env = gym.make("DriftFrozenLake-v0", schedule="frozen_lake/explicit:transient", text=True)
            options = {"prober": ReplayProber(drift_envs.twin(env))} if name == "glove" else {}
            agent = Agent(make_policy("planner"), make_memory("vanilla"), make_verifier(name, **options), seed=seed)
            scores += [episode.score for episode in played(env, agent, seed=seed)]
            env.close()
        means[name] = np.mean(scores)
    assert means["glove"] > means["overwrite"] + 0.2


def test_a_snapshot_of_the_lake_costs_one_step_a_probe() -> None:
    env = gym.make("DriftFrozenLake-v0", schedule="frozen_lake/slippery", text=True)
    prober = SnapshotProber(drift_envs.twin(env), partial(drift_envs.snapshot, env))
    _, info = env.reset(seed=0)
    prober.begin_episode()
    state, *_ = env.step(1)
    prober.moved()
    after, *_ = env.step(1)
    probed = prober.probe(str(state), "1", ("1",), 200)
    assert probed.cost.steps == probed.cost.resets == 200
    assert len({outcome.state for outcome in probed.outcomes}) > 1, "the twin has random numbers of its own"
    again = [outcome.state for outcome in probed.outcomes].count(after)
    assert again > 0
    assert info["score"] == 0.0
    env.close()


def test_a_replay_of_the_car_meets_the_cell_and_tells_where() -> None:
    """The twin's car starts elsewhere: what is met is the cell, and the outcome belongs to the place where it was."""
    env = gym.make("DriftMountainCar-v0", schedule="mountain_car/reversed", text=True)
    matching = make_matching("mountain_car")
    prober = ReplayProber(drift_envs.twin(env))
    prober.bind(matching)
    state, _ = env.reset(seed=3)
    prefix: list[str] = []
    met = 0
    for step in range(60):
        action = "2" if step % 40 < 20 else "0"
        if step % 6 == 5:
            probed = prober.probe(str(state), action, prefix, 1)
            for transition in probed.transitions:
                met += 1
                assert matching.state_key(transition.state) == matching.state_key(str(state))
                assert transition.state != state
        state, *_ = env.step(int(action))
        prefix.append(action)
    assert met >= 8, "of ten"
    env.close()
