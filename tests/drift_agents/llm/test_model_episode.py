"""A language model plays the lake: from the prompt over a socket to the action."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any

import gymnasium as gym
import pytest
from drift_agents.agent.agent import Agent
from drift_agents.llm.service import Service
from drift_agents.memory.base import make_memory
from drift_agents.policy.llm import LanguageModelPolicy

import drift_envs  # noqa: F401 - registers the environments

LAKE = {
    "version": 1,
    "name": "line",
    "env": "DriftFrozenLake-v0",
    "clock": "episode",
    "base": {"map": ["SFG", "FFF"]},
    "drifts": [],
}


def go_right(chat: ModuleType) -> Any:
    def answer(request: dict[str, Any]) -> Any:
        position = re.search(r"Current Position: \[(\d), (\d)\]", request["messages"][-1]["content"])
        assert position is not None
        return chat.said('{"action": "2"}', tokens=(100 + int(position[2]), 5))

    return answer


def test_a_model_reaches_the_goal_and_its_cost_is_in_the_episode(chat: ModuleType) -> None:
    pytest.importorskip("openai")
    env = gym.make("DriftFrozenLake-v0", schedule=LAKE, text=True)
    with chat.serve(go_right(chat)) as server:
        policy = LanguageModelPolicy(Service().model("tiny", server.url, price=(1.0, 10.0)), format="paper")
        episode = Agent(policy, make_memory("vanilla")).run_episode(env, seed=0)
    assert (episode.score, episode.steps, episode.invalid_actions) == (1.0, 2, 0)
    assert (episode.model_calls, episode.tokens_in, episode.tokens_out) == (2, 201, 10)
    assert episode.cost == pytest.approx((201 * 1 + 10 * 10) / 1e6)
    assert server.requests[0]["model"] == "tiny"
    assert server.requests[0]["temperature"] == 0
    assert server.requests[0]["response_format"]["json_schema"]["schema"]["properties"]["action"]["enum"] == list(
        "0123"
    )
