"""Builds the room of a schedule: the names in its knobs are those of the package.

* `build` - the environment of `DriftAlfworld-v0`
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from drift_envs.envs.alfworld.package import find_package
from drift_envs.registration import EnvParts
from drift_envs.wrappers.drift import Source
from drift_envs.wrappers.options import WrapperOptions, build_with_tasks


def build(parts: EnvParts, schedule: Source, options: WrapperOptions, arguments: dict[str, Any]) -> gym.Env[Any, Any]:
    """Build the room.

    Args:
        parts: the declaration of the environment.
        schedule: the schedule, or `None`.
        options: the shared options.
        arguments: those of `Alfworld`.

    Raises:
        ArgumentError: if the schedule sets the same as an argument.
        MissingDependencyError: if the package is not installed.
        ScheduleError: if the schedule cannot be used.
    """
    find_package()
    return build_with_tasks(parts, schedule, options, arguments)
