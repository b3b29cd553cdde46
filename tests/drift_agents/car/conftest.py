"""Gymnasium's own mountain car as a text world, and what can be lived through in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from drift_agents.prompt.view import Recollection
from drift_agents.types import AgentClock, Experience, Outcome
from gymnasium.envs.classic_control.mountain_car import MountainCarEnv


class TextCar(gym.Wrapper):
    """States as JSON texts with six decimals, as `text=True` shows them."""

    def __init__(self, limit: int = 300, **physics: float) -> None:
        super().__init__(gym.wrappers.TimeLimit(MountainCarEnv(), limit))
        self.observation_space = gym.spaces.Text(128)
        self.turn(**physics)

    def turn(self, **physics: float) -> None:
        for name, value in physics.items():
            setattr(self.unwrapped, name, value)

    def put(self, x: float, v: float) -> None:
        self.unwrapped.state = (x, v)

    def reset(self, **kwargs: Any) -> tuple[str, dict[str, Any]]:
        observation, _ = self.env.reset(**kwargs)
        return self._text(observation), self._info(0.0)

    def step(self, action: Any) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        observation, reward, ended, cut, _ = self.env.step(int(action))
        return self._text(observation), reward, ended, cut, self._info(float(ended))

    @staticmethod
    def _text(observation: np.ndarray) -> str:
        return f'{{"position": {observation[0]:.6f}, "velocity": {observation[1]:.6f}}}'

    @staticmethod
    def _info(score: float) -> dict[str, Any]:
        return {"task": "Reach the flag.", "actions": ["0", "1", "2"], "score": score}


def live(world: TextCar, steps: int, seed: int = 0, hold: int = 1) -> Iterator[Experience]:
    """Random driving; an action is held for `hold` steps."""
    rng = np.random.default_rng(seed)
    state, _ = world.reset(seed=seed)
    episode = 0
    for step in range(steps):
        if step % hold == 0:
            action = str(rng.integers(3))
        after, reward, ended, cut, info = world.step(action)
        now = AgentClock(episode, step)
        yield Experience(state, action, Outcome(after, info["score"], ended), float(reward), now)
        state = after
        if ended or cut:
            state, _ = world.reset()
            episode += 1


def answer(world: TextCar, x: float, v: float, action: str) -> Experience:
    """One step from a given state."""
    world.reset(seed=0)
    world.put(x, v)
    after, reward, ended, _, info = world.step(action)
    state = f'{{"position": {x:.6f}, "velocity": {v:.6f}}}'
    return Experience(state, action, Outcome(after, info["score"], ended), float(reward), AgentClock())


def recall(experience: Experience, last: int = 0, n: float = 1.0) -> Recollection:
    """What a prompt says about it."""
    return Recollection(experience.state, experience.action, experience.outcome, n, last)


@pytest.fixture
def car() -> Callable[..., TextCar]:
    return TextCar


@pytest.fixture
def lived() -> Callable[..., Iterator[Experience]]:
    return live


@pytest.fixture
def answered() -> Callable[..., Experience]:
    return answer


@pytest.fixture
def recalled() -> Callable[..., Recollection]:
    return recall
