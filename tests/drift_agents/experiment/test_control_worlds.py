"""Agents in classic control: surprises, probes and corrections, as in any other world."""

from __future__ import annotations

import gymnasium as gym
import pytest
from drift_agents.agent import Agent
from drift_agents.experiment.config import PartSpec
from drift_agents.experiment.evaluation_wrapper import EvaluationWrapper
from drift_agents.experiment.evaluator import EpisodeEvaluator
from drift_agents.experiment.worlds import agent_side, make_prober
from drift_agents.matching.base import make_matching
from drift_agents.memory.base import make_memory
from drift_agents.policy.base import make_policy
from drift_agents.verifier.base import make_verifier


@pytest.mark.parametrize("verifier", ["none", "glove"])
def test_reversed_controls_are_noticed_and_memory_is_corrected_by_glove_alone(verifier: str) -> None:
    side = agent_side("DriftPendulum-v0")
    world = EvaluationWrapper(
        gym.make("DriftPendulum-v0", schedule="pendulum/explicit", text=True, max_episode_steps=60)
    )
    world.env.reset(seed=7)
    rule = make_matching(side.matching.name, **side.matching.options)
    given = {} if verifier == "none" else {"prober": make_prober(PartSpec(name="replay"), world)}
    memory = make_memory("vanilla", matching=rule)
    agent = Agent(
        make_policy("planner"),
        memory,
        make_verifier(verifier, **given),
        matching=rule,
        recall=side.recall,
        seed=3,
    )
    evaluator, rows = EpisodeEvaluator(world, rule), []
    for number in range(6):
        options = {"drift_clock": "continue", "drift_tick": 0 if number < 4 else 20}
        episode = agent.run_episode(world, seed=1 + number, options=options)
        rows.append((episode, evaluator.evaluate(episode, memory)))
    assert sum(episode.surprises for episode, _ in rows[:4]) <= 3
    assert rows[4][0].surprises >= 3
    assert all(found.truth.memory_truth_rate == pytest.approx(1.0, abs=0.02) for _, found in rows[:4])
    assert rows[4][1].truth.memory_truth_rate < 0.6
    assert all(found.truth.regret is not None for _, found in rows)
    repaired = rows[4][0].realignments + rows[5][0].realignments
    assert repaired >= 6 if verifier == "glove" else repaired == 0
