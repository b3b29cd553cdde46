"""An agent for an environment, in one call."""

from __future__ import annotations

import re
from typing import Any

import gymnasium as gym
import pytest
from drift_agents import Glove, make_agent, make_memory
from drift_agents.envs.matching import Exact
from drift_agents.errors import ArgumentError, DriftAgentsError
from drift_agents.policy.base import RandomPolicy
from drift_agents.prompt.builder import Recall

import drift_envs  # noqa: F401 - registers the environments


def make_env(env_id: str) -> gym.Env[str, Any]:
    return gym.make(env_id, schedule=None, text=True)


@pytest.mark.parametrize(
    ("env_id", "rule", "states"),
    [
        ("DriftFrozenLake-v0", "exact", 256),
        ("DriftMountainCar-v0", "mountain_car", 256),
        ("DriftHouse-v0", "house", 160),
    ],
)
def test_memory_verifier_and_prompts_have_what_the_environment_declares(env_id: str, rule: str, states: int) -> None:
    agent = make_agent(make_env(env_id), verifier="glove")
    assert agent.matching.name == rule
    assert agent.recall.states == states
    assert isinstance(agent.verifier, Glove)


def test_an_id_is_no_environment() -> None:
    agent = make_agent(make_env("DriftFrozenLake-v0"))
    for call in (make_agent, agent.run_episode):
        with pytest.raises(ArgumentError, match=r"`env` should be a single .*; make it first: `gym\.make\('"):
            call("DriftFrozenLake-v0")


def test_memory_compares_as_the_environment_says() -> None:
    env = make_env("DriftMountainCar-v0")
    agent = make_agent(env)
    first = agent.run_episode(env, seed=0).trace[0].experience
    nearby = first.state.replace('"velocity": ', '"velocity": 0.0, "unread": ')
    assert agent.matching.state_key(nearby) == agent.matching.state_key(first.state)
    assert agent.memory.same_transitions(nearby, first.action)


def test_parts_are_names_names_with_options_or_objects() -> None:
    env = make_env("DriftMountainCar-v0")
    rule, memory = Exact(), make_memory("vanilla", k=2)
    agent = make_agent(env, RandomPolicy(), memory, {"glove": {"epsilon": 0.25, "prober": "snapshot"}}, matching=rule)
    assert (agent.policy.name, agent.memory, agent.matching) == ("random", memory, rule)
    assert agent.run_episode(env, seed=0).steps > 0
    assert make_agent(env, memory={"vanilla": {"k": 3}}, recall=Recall(states=2)).recall.states == 2
    assert make_agent(env, controller={"adamem": None}).controller.name == "adamem"


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            {"memory": {"vanilla": {}, "none": {}}},
            "`memory` should be a name, a mapping of one name to its options",
        ),
        ({"memory": "vanila"}, "no memory is called 'vanila', did you mean 'vanilla'?"),
        ({"policy": {"planner": {"wind": 1}}}, "the policy 'planner' does not take the option 'wind'"),
        ({"verifier": {"glove": {"prober": "guess"}}}, "no prober is called 'guess'"),
        ({"matching": "near"}, "no matching is called 'near'"),
    ],
)
def test_wrong_parts_are_refused(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(DriftAgentsError, match=re.escape(message)):
        make_agent(make_env("DriftFrozenLake-v0"), **parts)
