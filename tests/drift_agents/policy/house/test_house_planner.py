"""The planner of the house, with prompts as text and in the world."""

import gymnasium as gym
import numpy as np
import pytest
from drift_agents import Agent, make_memory, make_policy
from drift_agents.matching.house import HouseMatching

import drift_envs  # noqa: F401  registers the ids


def agent(memory="vanilla", **options):
    matching = HouseMatching()
    made = make_memory(memory) if memory == "none" else make_memory(memory, matching=matching)
    return Agent(policy=make_policy("planner", **options), memory=made, matching=matching, seed=0)


def world(base, **arguments):
    schedule = {"version": 1, "name": "one", "base": {"house": 7, **base}, "tasks": {"pool": 4, "order": "fixed"}}
    return gym.make("DriftHouse-v0", schedule=schedule, text=True, **arguments)


@pytest.mark.parametrize("base", [{}, {"tidy": 3}, {"effects": {"microwave": "cool", "fridge": "heat"}}])
def test_it_completes_tasks_and_needs_fewer_steps_when_it_remembers(base):
    env, player = world(base), agent()
    rounds = []
    for number in range(3):
        rounds.append([player.run_episode(env, seed=5 if number == 0 and not one else None) for one in range(4)])
    assert np.mean([episode.score for episode in rounds[2]]) >= 0.9
    assert sum(episode.steps for episode in rounds[2]) < sum(episode.steps for episode in rounds[0])
