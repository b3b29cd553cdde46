"""Readers of messages at the service desk: all three tempers play it, in formats with and without scores."""

from __future__ import annotations

import gymnasium as gym
import pytest
from drift_agents.agent.agent import Agent
from drift_agents.envs.tools import TOOLS
from drift_agents.memory.vanilla import VanillaMemory
from drift_agents.prompt.builder import Recall

import drift_envs  # noqa: F401 - registers the environments
from research.experiments.readers import EAGER, TEMPERS, MessageReader

EPISODES = 24


@pytest.mark.integration
@pytest.mark.parametrize(
    ("temper", "form"),
    [
        *((temper, "ranked") for temper in TEMPERS),
        *(pytest.param(temper, "react", marks=[] if temper == EAGER else [pytest.mark.slow]) for temper in TEMPERS),
    ],
)
def test_a_reader_meets_requests_and_finds_new_names(temper: str, form: str) -> None:
    """The tools are renamed after 20 episodes: what is known by old names cannot be called any more."""
    env = gym.make("DriftTools-v0", schedule="tools/names", text=True)
    rule = TOOLS.make("matching")
    policy = MessageReader(temper=temper, format=form)
    agent = Agent(policy, VanillaMemory(matching=rule), matching=rule, recall=Recall(**TOOLS.recall), seed=1)
    episodes = [agent.run_episode(env, seed=0 if number == 0 else None) for number in range(EPISODES)]
    env.close()
    assert [episode.score for episode in episodes] == [1.0] * EPISODES
    assert not sum(episode.invalid_actions + episode.loop_steps for episode in episodes)
