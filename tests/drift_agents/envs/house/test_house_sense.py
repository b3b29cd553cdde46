"""A rule-based message policy in the house: what it does with the messages, and that it wins with them."""

from __future__ import annotations

import gymnasium as gym
from drift_agents.agent import Agent
from drift_agents.envs.house import HOUSE
from drift_agents.memory.vanilla import VanillaMemory
from drift_agents.policy.base import make_policy
from drift_agents.policy.llm import LanguageModelPolicy
from drift_agents.policy.message_reader.reader import MessageModel
from drift_agents.prompt.builder import Recall
from drift_agents.prompt.view import parse_prompt

import drift_envs  # noqa: F401 - registers the environments

EPISODES = 12
"""Each of the six tasks comes twice, so that its own way is known the second time."""


def test_a_reader_wins_every_task_and_is_shown_scores_of_its_own_task_alone() -> None:
    env = gym.make("DriftHouse-v0", text=True)
    rule = HOUSE.make("matching")
    memory = VanillaMemory(matching=rule)
    policy = make_policy("message_reader")
    agent = Agent(policy, memory, matching=rule, recall=Recall(**HOUSE.recall), seed=1)
    episodes = [agent.run_episode(env, seed=0 if number == 0 else None) for number in range(EPISODES)]
    env.close()
    assert [episode.score for episode in episodes] == [1.0] * EPISODES
    renderer, won = LanguageModelPolicy(MessageModel()), set[str]()
    for episode in episodes:
        first = renderer.messages(parse_prompt(episode.trace[0].prompt))[1].content
        assert ("Score 1, in " in first) == (episode.task in won), episode.task
        won.add(episode.task)
    again = [episode for number, episode in enumerate(episodes) if episode.task in {e.task for e in episodes[:number]}]
    assert again
    assert all(episode.steps < 20 for episode in again)
