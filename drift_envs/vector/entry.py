"""The entry point of `gymnasium.make_vec`.

* `make_vector` - builds a native vector environment, or `SyncVectorEnv` if the arguments need single environments
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.wrappers import TimeLimit

from drift_envs.vector.base import DriftVectorEnv
from drift_envs.wrappers.drift import DriftWrapper


def make_vector(
    build: Callable[..., gym.Env[Any, Any]],
    native: type[DriftVectorEnv],
    num_envs: int = 1,
    max_episode_steps: int | None = None,
    autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
    share_timeline: bool = False,
    **arguments: Any,
) -> VectorEnv[Any, Any, Any]:
    """Build a vector environment.

    Text observations, frames with an overlay or a window, and knobs of the wrapper (such as
    `action_delay`) have no vectorized form: with these the result is a `SyncVectorEnv`.

    Args:
        build: builds a single environment.
        native: the class of the native vector environment.
        num_envs: the number of sub-environments, at least 1.
        max_episode_steps: the step limit of an episode, `None` for no limit.
        autoreset_mode: `NextStep`, `SameStep` or `Disabled`.
        share_timeline: whether all native sub-environments follow the timeline of the first.
        **arguments: the arguments of the single environment.
    """
    single_env = build(**arguments)
    draws_no_window = single_env.render_mode in (None, "rgb_array")
    if isinstance(single_env, DriftWrapper) and single_env.env is single_env.unwrapped and draws_no_window:
        return native(
            single_env, num_envs, max_episode_steps, autoreset_mode, share_timeline, arguments.get("notify", "none")
        )
    single_env.close()

    def build_with_limit() -> gym.Env[Any, Any]:
        env = build(**arguments)
        return env if max_episode_steps is None else TimeLimit(env, max_episode_steps)

    return SyncVectorEnv([build_with_limit] * num_envs, autoreset_mode=autoreset_mode)
