"""The tabular learners: on tables whose values are known by hand, and on the lake."""

from __future__ import annotations

import pickle
import re
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from drift_agents.errors import ArgumentError, UnknownNameError
from drift_agents.learner.base import make_learner
from drift_agents.registry import LEARNERS

import drift_envs  # noqa: F401 - registers the worlds

NAMES = LEARNERS.names()


class Chain(gym.Env[str, Any]):
    """start -go-> middle -go-> the end with a score; every other way stays. `pays` may drift."""

    action_space = gym.spaces.Text(8)
    observation_space = gym.spaces.Text(16)

    def __init__(self, pays: dict[str, float], limit: int = 20) -> None:
        self.pays, self.limit = pays, limit

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        self.state, self.score, self.steps = "start", 0.0, 0
        return self.state, self._info()

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        ended = self.state == "middle" and action in self.pays
        if ended:
            self.state, self.score = "end", self.pays[action]
        elif action == "go":
            self.state = "middle"
        return self.state, -1.0, ended, self.steps >= self.limit and not ended, self._info()

    def _info(self) -> dict[str, Any]:
        return {"task": "Get far.", "actions": ["go", "wait"], "score": self.score}


@pytest.mark.parametrize("name", NAMES)
def test_values_are_discounted_scores_not_rewards(name: str) -> None:
    learner = make_learner(name, seed=1, discount=0.9, **({"bonus": 0.0} if name == "dyna_q_plus" else {}))
    world = Chain({"go": 0.5, "wait": 1.0})
    for _ in range(60):
        episode = learner.run_episode(world)
    assert (episode.score, episode.steps, episode.terminated, episode.task) == (1.0, 2, True, "Get far.")
    assert learner.value("middle", "wait") == pytest.approx(1.0, abs=1e-3)
    assert learner.value("middle", "go") == pytest.approx(0.5, abs=1e-3)
    assert learner.value("start", "go") == pytest.approx(0.9, abs=1e-3)
    assert learner.value("start", "wait") == pytest.approx(0.81, abs=0.02)


@pytest.mark.parametrize("name", NAMES)
def test_it_follows_a_drift(name: str) -> None:
    options: dict[str, Any] = {"windowed_q": {"window": 60}, "dyna_q_plus": {"bonus": 0.01}}[name]
    learner = make_learner(name, seed=2, **options)
    world = Chain({"go": 0.5, "wait": 1.0})
    before = [learner.run_episode(world).score for _ in range(40)]
    world.pays = {"go": 1.0, "wait": 0.5}
    after = [learner.run_episode(world).score for _ in range(60)]
    assert np.mean(before[-10:]) > 0.9
    assert after[0] == 0.5
    assert np.mean(after[-20:]) > 0.85


def test_the_bonus_brings_it_back_to_what_was_not_tried_for_long() -> None:
    """Without it and without random actions, Dyna-Q stays with what it has found."""
    returns = {}
    for bonus in (0.0, 0.02):
        learner = make_learner("dyna_q_plus", seed=0, explore=0.0, bonus=bonus)
        world = Chain({"go": 0.5, "wait": 0.5})
        for _ in range(30):
            learner.run_episode(world)
        settled = max(("go", "wait"), key=lambda action: learner.value("middle", action))
        world.pays = {settled: 0.5, {"go": "wait", "wait": "go"}[settled]: 1.0}
        returns[bonus] = np.mean([learner.run_episode(world).score for _ in range(200)])
    assert returns[0.0] == 0.5
    assert returns[0.02] > 0.7


def test_what_has_left_the_window_is_forgotten() -> None:
    learner = make_learner("windowed_q", seed=0, window=5, initial=0.25, explore=0.0, replays=1)
    world = Chain({"go": 1.0})
    learner.run_episode(world)
    assert learner.value("middle", "go") != 0.25
    stuck = Chain({}, limit=6)
    learner.run_episode(stuck)
    assert learner.value("start", "go") == 0.25, "six steps later none of the first are left"
    assert sum(learner._held.values()) == len(learner._steps) == 5


def test_running_out_of_time_is_no_end() -> None:
    """The last state before the limit has a future: its value is what comes after it."""
    learner = make_learner("windowed_q", seed=0, discount=0.9, initial=1.0, explore=0.0, rate=1.0, replays=1)
    learner.run_episode(Chain({}, limit=1))
    assert {learner.value("start", action) for action in ("go", "wait")} == {0.9, 1.0}


@pytest.mark.parametrize("name", NAMES)
def test_equal_seeds_equal_runs(name: str) -> None:
    runs = []
    for seed in (3, 3, 4):
        world = gym.make("DriftFrozenLake-v0", schedule="frozen_lake/explicit:family", text=True)
        learner = make_learner(name, seed=seed)
        episodes = [learner.run_episode(world, seed=0 if round_ == 0 else None) for round_ in range(15)]
        runs.append([(episode.score, episode.steps) for episode in episodes])
        assert pickle.loads(pickle.dumps(learner)).steps == learner.steps == sum(e.steps for e in episodes)
    assert runs[0] == runs[1] != runs[2]


def test_it_learns_a_lake() -> None:
    steady = {"version": 1, "name": "steady", "base": {"map": ["SFFF", "FHFH", "FFFH", "HFFG"]}}
    world = gym.make("DriftFrozenLake-v0", schedule=steady, text=True)
    learner = make_learner("dyna_q_plus", seed=0)
    scores = [learner.run_episode(world, seed=0 if round_ == 0 else None).score for round_ in range(100)]
    assert np.mean(scores[-30:]) > 0.7


@pytest.mark.parametrize("name", NAMES)
def test_it_needs_text(name: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape("the world should show text")):
        make_learner(name).run_episode(gym.make("FrozenLake-v1"))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("dyna_q_plus", {"rate": 0}, "`rate` should be in the interval (0, 1]. Received 0"),
        ("dyna_q_plus", {"discount": 1}, "`discount` should be in the interval (0, 1). Received 1"),
        ("dyna_q_plus", {"explore": 1}, "`explore` should be in the interval [0, 1). Received 1"),
        ("dyna_q_plus", {"bonus": -0.1}, "`bonus` should be in the interval [0, inf). Received -0.1"),
        ("dyna_q_plus", {"planning": 0}, "`planning` should be a whole number, at least 1. Received 0"),
        ("windowed_q", {"initial": True}, "`initial` should be in the interval [0, inf). Received True"),
        ("windowed_q", {"window": 0}, "`window` should be a whole number, at least 1. Received 0"),
        ("windowed_q", {"replays": 0}, "`replays` should be a whole number, at least 1. Received 0"),
        ("windowed_q", {"bonus": 1}, "the learner 'windowed_q' does not take these options"),
    ],
)
def test_refusals(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        make_learner(name, **options)


def test_unknown_names() -> None:
    with pytest.raises(UnknownNameError, match="no learner is called 'dyna_q', did you mean 'dyna_q_plus'"):
        make_learner("dyna_q")
