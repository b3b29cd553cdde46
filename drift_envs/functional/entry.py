"""The entry point of `gym.make_vec(id, ..., backend="jax")`.

* `make_functional_vector` - builds the vector environment
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import gymnasium as gym
from gymnasium.vector import AutoresetMode

from drift_envs.errors import ArgumentError
from drift_envs.functional.vector import FunctionalVectorEnv
from drift_envs.knobs import KnobTable
from drift_envs.lazy import load_object
from drift_envs.wrappers.drift import DriftWrapper


def make_functional_vector(
    build: Callable[..., gym.Env[Any, Any]],
    env_id: str,
    num_envs: int = 1,
    max_episode_steps: int | None = None,
    autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
    share_timeline: bool = False,
    **arguments: Any,
) -> FunctionalVectorEnv:
    """Build the vector environment.

    Args:
        build: builds a single environment.
        env_id: the id.
        num_envs: the number of sub-environments, at least 1.
        max_episode_steps: the step limit of an episode, `None` for no limit.
        autoreset_mode: `NextStep`, `SameStep` or `Disabled`.
        share_timeline: whether all sub-environments follow the timeline of the first.
        **arguments: the arguments of the single environment.

    Raises:
        ArgumentError: if an argument has no compiled form: texts, overlays, windows, knobs of the wrapper, other
            rewards of the lake, or a velocity at the flag.
    """
    single_env: Any = build(**arguments)
    bare: Any = single_env.unwrapped
    is_native = isinstance(single_env, DriftWrapper) and single_env.env is bare and single_env.render_mode != "human"
    if not is_native:
        single_env.close()
        raise ArgumentError(
            '`backend="jax"` should be without texts, overlays, windows and knobs of the wrapper. '
            f"Received {', '.join(sorted(arguments)) or single_env.schedule}"
        )
    velocity: Any = getattr(bare, "goal_velocity", None)
    rewards = tuple(getattr(bare, "reward_schedule", (1, 0, 0)))
    if rewards != (1, 0, 0) or velocity:
        single_env.close()
        raise ArgumentError(
            '`reward_schedule` and `goal_velocity` should have their defaults with `backend="jax"`. '
            f"Received {rewards if velocity is None else velocity!r}"
        )
    kinds = load_object("drift_envs.functional:ENVIRONMENTS")
    now = bare.read_knobs()
    table = KnobTable(tuple(replace(knob, default=now[knob.name]) for knob in bare.knobs.knobs), rule=bare.knobs.rule)
    notify = arguments.get("notify", "none")
    return FunctionalVectorEnv(
        single_env, kinds[env_id](table), num_envs, max_episode_steps, autoreset_mode, share_timeline, notify
    )
