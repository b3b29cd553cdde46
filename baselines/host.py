"""The lifetimes of the board, stepped from Python: for learners that are not written in JAX.

* `EnvParams` - what a learner may know before it starts
* `StepResult` - what it sees at each step
* `HostLifetime` - a lifetime that is stepped from Python and records the scores of its rounds
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, NamedTuple

import gymnasium as gym
import jax
import numpy as np

from baselines.common import act, begin
from baselines.environments import LANES, BoardEnv, Regime, make_course, make_env
from drift_envs.errors import ArgumentError


class StepResult(NamedTuple):
    """What a learner sees; each has one element for each lane.

    Args:
        observation: of the next step; the first of a new episode where one has ended.
        reward: of the last step, `(lanes,)`.
        terminated: whether the episode terminated, `(lanes,)`.
        truncated: whether it was truncated, `(lanes,)`.
        final_observation: the observation after the last step, of the old episode where it has ended.
    """

    observation: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    final_observation: np.ndarray


@lru_cache(maxsize=8)
def _compiled(name: str) -> tuple[BoardEnv, Any, Any]:
    env = make_env(name)
    return env, jax.jit(partial(begin, env)), jax.jit(partial(act, env))


class HostLifetime:
    """A lifetime that is stepped from Python.

    Args:
        name: of the environment.
        regime: the regime.
        seed: of the lifetime, as on the board.

    Attributes:
        env: the environment.
        steps: how many steps were taken in each lane.
        length: steps of the lifetime; more may be taken, but do not count.
    """

    def __init__(self, name: str, regime: Regime, seed: int) -> None:
        self.env, begins, self._act = _compiled(name)
        course = make_course(self.env, regime, [seed])
        self._params = jax.tree.map(lambda part: part[0], course.params)
        first, self._key = jax.random.split(course.keys[0])
        self._lanes = begins(first, self._params)
        self.steps, self.length = 0, regime.length * self.env.ticks
        self._seen: list[Any] = []

    def start(self) -> StepResult:
        """The first observations; nothing has been paid."""
        observation = np.array(self._lanes.observation)
        no = np.zeros(LANES, bool)
        return StepResult(observation, np.zeros(LANES, np.float32), no, no, observation)

    def step(self, actions: np.ndarray) -> StepResult:
        """Step in all lanes.

        Args:
            actions: one for each lane.

        Raises:
            ArgumentError: if they are not.
        """
        actions = np.asarray(actions)
        if actions.shape != (LANES,) or not ((actions >= 0) & (actions < self.env.actions)).all():
            raise ArgumentError(
                f"`actions` should be {LANES} integers from 0 to {self.env.actions - 1}. Received {actions.tolist()}"
            )
        key = jax.random.fold_in(self._key, self.steps)
        self._lanes, seen = self._act(self._params, self._lanes, key, actions.astype(np.int32))
        seen = jax.tree.map(np.array, seen)  # writable copies
        if self.steps < self.length:
            self._seen.append((seen.done, seen.ended))
        self.steps += 1
        terminated = seen.terminated > 0
        truncated = (seen.done > 0) & ~terminated
        return StepResult(np.array(self._lanes.observation), seen.reward, terminated, truncated, seen.following)

    @property
    def scores(self) -> np.ndarray:
        """The mean score of the episodes that ended in each round, `(rounds,)`; NaN where none has."""
        done, ended = (np.array(each).reshape(-1, self.env.ticks * LANES) for each in zip(*self._seen, strict=True))
        scores = done * np.asarray(self.env.score(ended))
        count = done.sum(1)
        return np.where(count > 0, scores.sum(1) / np.maximum(count, 1), np.nan)


@dataclass(frozen=True)
class EnvParams:
    """What a learner may know before it starts.

    Args:
        environment: the name.
        lanes: copies of the environment that are stepped together.
        observation_space: of one lane.
        action_space: of one lane.
        limit: steps of an episode.
        steps: steps of the lifetime in each lane.
        make_vec_env: for `vec_env`; nothing here leads to the schedule.
    """

    environment: str
    lanes: int
    observation_space: gym.Space[Any]
    action_space: gym.Space[Any]
    limit: int
    steps: int
    make_vec_env: Callable[[], Any] = field(repr=False)

    @property
    def vec_env(self) -> Any:
        """The lanes as a `VecEnv` of Stable-Baselines3, for models that are made with one."""
        return self.make_vec_env()


def make_params(lifetime: HostLifetime) -> EnvParams:
    """What a learner may know of a lifetime."""
    env = lifetime.env
    seen: gym.Space[Any]
    seen = gym.spaces.Discrete(env.size) if env.tabular else gym.spaces.Box(-np.inf, np.inf, (env.size,))
    actions = gym.spaces.Discrete(env.actions)

    def make_vec_env() -> Any:
        from baselines.sb3 import LaneVecEnv

        return LaneVecEnv(lifetime, seen, actions)

    return EnvParams(env.name, LANES, seen, actions, env.limit, lifetime.length, make_vec_env)
