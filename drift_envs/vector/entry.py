"""What stands behind `gymnasium.make_vec`.

* `make_vector` - a native vector environment, or single ones side by side where only these can do what is asked
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
    build: Callable[..., gym.Env],
    native: type[DriftVectorEnv],
    num_envs: int = 1,
    max_episode_steps: int | None = None,
    autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
    share_timeline: bool = False,
    **arguments: Any,
) -> VectorEnv:
    """Build a vector environment from what builds a single one.

    Text worlds, pictures with an overlay or a window, and knobs that need no attribute (such as
    `action_delay`) are nothing for NumPy: with these the single environments stand side by side
    in a `SyncVectorEnv`.

    Args:
        build: builds a single environment.
        native: the class of the native vector environment.
        num_envs: how many sub-environments.
        max_episode_steps: the steps of an episode, `None` for no limit.
        autoreset_mode: `NextStep`, `SameStep` or `Disabled`.
        share_timeline: whether all native sub-environments follow the timeline of the first.
        **arguments: those of the single environment.
    """
    world = build(**arguments)
    if isinstance(world, DriftWrapper) and world.env is world.unwrapped and world.render_mode in (None, "rgb_array"):
        return native(
            world, num_envs, max_episode_steps, autoreset_mode, share_timeline, arguments.get("notify", "none")
        )
    world.close()

    def single() -> gym.Env:
        env = build(**arguments)
        return env if max_episode_steps is None else TimeLimit(env, max_episode_steps)

    return SyncVectorEnv([single] * num_envs, autoreset_mode=autoreset_mode)
