"""Models of Stable-Baselines3 on the lifetimes of the board.

* `LaneVecEnv` - a lifetime as a `VecEnv`
* `ppo`, `dqn`, `dqn_copied`, `recurrent_ppo` - models with the options of this project's own learners, for comparison:
  `python -m baselines.evaluate baselines.sb3:ppo --environment cart_pole --regime none`
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from drift_envs.errors import needs_extra

with needs_extra("stable_baselines3", "rl"):
    from stable_baselines3 import DQN, PPO
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.vec_env import VecEnv


class LaneVecEnv(VecEnv):  # type: ignore[misc]
    """The lanes of a lifetime. It begins once: `reset` returns the present observations, and the drift goes on.

    Args:
        lifetime: a `host.HostLifetime`.
        observation_space: of one lane.
        action_space: of one lane.
    """

    render_mode = None

    def __init__(self, lifetime: Any, observation_space: gym.Space[Any], action_space: gym.Space[Any]) -> None:
        self._lifetime, self._last = lifetime, lifetime.start()
        super().__init__(len(self._last.reward), observation_space, action_space)

    def reset(self) -> np.ndarray:
        """The present observations."""
        observation: np.ndarray = self._last.observation
        return observation

    def step_async(self, actions: np.ndarray) -> None:
        """Take actions."""
        self._actions = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Step in all lanes."""
        last = self._last = self._lifetime.step(self._actions)
        done = last.terminated | last.truncated
        infos = [
            {"terminal_observation": last.final_observation[lane], "TimeLimit.truncated": bool(last.truncated[lane])}
            if done[lane]
            else {}
            for lane in range(self.num_envs)
        ]
        return last.observation, last.reward, done, infos

    def close(self) -> None:
        """Nothing is open."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """The attribute of this object, for each lane; lanes have none of their own."""
        return [getattr(self, attr_name)] * len(self._indices_of(indices))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Lanes have no attributes."""
        raise AttributeError(attr_name)

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        """Lanes have no methods."""
        raise AttributeError(method_name)

    def env_is_wrapped(self, wrapper_class: type[Any], indices: Any = None) -> list[bool]:
        """Lanes are not wrapped."""
        return [False] * len(self._indices_of(indices))

    def _indices_of(self, indices: Any) -> Sequence[int]:
        return list(self._get_indices(indices))


def learn(model: Any, params: Any) -> None:
    """Let a model learn for a lifetime.

    Args:
        model: made with `EnvParams.vec_env`, or with spaces that fit it.
        params: a `host.EnvParams`.
    """
    if model.env is None or not isinstance(model.env.unwrapped, LaneVecEnv):
        model.set_env(params.vec_env)
    model.learn(params.steps * params.lanes)


def is_model_class(found: Any) -> bool:
    """Whether an object is a class of models, such as `stable_baselines3.PPO`."""
    return isinstance(found, type) and issubclass(found, BaseAlgorithm)


def is_model(found: Any) -> bool:
    """Whether an object is a model."""
    return isinstance(found, BaseAlgorithm)


def ppo(params: Any, key: int) -> Any:
    """PPO with the network, rollout and epochs of `baselines.ppo`."""
    return PPO("MlpPolicy", **_ppo_options(params, key), policy_kwargs={"net_arch": [32, 32]})


def dqn(params: Any, key: int) -> Any:
    """DQN with the network, gradient steps and running mean of the target network of `baselines.dqn`."""
    ticks = _ticks_of(params)
    return _make_dqn(params, key, ticks, tau=16 * 0.01 / ticks, target_update_interval=params.lanes)


def dqn_copied(params: Any, key: int) -> Any:
    """The same with a target network that is copied every four rounds, as in Mnih et al. 2015."""
    ticks = _ticks_of(params)
    return _make_dqn(params, key, ticks, target_update_interval=4 * ticks * params.lanes)


def _make_dqn(params: Any, key: int, ticks: int, **options: Any) -> Any:
    return DQN(
        "MlpPolicy",
        params.vec_env,
        learning_rate=1e-3,
        buffer_size=200 * ticks * params.lanes,
        learning_starts=ticks * params.lanes,
        batch_size=64,
        train_freq=ticks,
        gradient_steps=16,
        exploration_fraction=0.05,
        exploration_final_eps=0.05,
        policy_kwargs={"net_arch": [32, 32]},
        seed=key,
        device="cpu",
        **options,
    )


def recurrent_ppo(params: Any, key: int) -> Any:
    """PPO with an LSTM, of sb3-contrib, with the width, rollout and epochs of `baselines.recurrent_ppo`."""
    with needs_extra("sb3_contrib", "baselines"):
        from sb3_contrib import RecurrentPPO
    network = {"net_arch": [], "lstm_hidden_size": 32, "shared_lstm": True, "enable_critic_lstm": False}
    return RecurrentPPO("MlpLstmPolicy", **_ppo_options(params, key), policy_kwargs=network)


def _ppo_options(params: Any, key: int) -> dict[str, Any]:
    ticks = _ticks_of(params)
    return {
        "env": params.vec_env,
        "learning_rate": 1e-3,
        "n_steps": ticks,
        "batch_size": ticks * params.lanes // 4,
        "n_epochs": 4,
        "ent_coef": 0.01,
        "seed": key,
        "device": "cpu",
    }


def _ticks_of(params: Any) -> int:
    """The steps of a rollout, as in `baselines.environments`."""
    return 32 if params.environment in ("corners", "holes") else 64
