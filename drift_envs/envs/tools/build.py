"""Builds the desk of a schedule: its requests can all be met in every phase.

* `build` - the environment of `DriftTools-v0`
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from drift_envs.envs.tools.env import ServiceDesk
from drift_envs.parts import EnvParts
from drift_envs.wrappers.drift import Source
from drift_envs.wrappers.options import WrapperOptions, load_with_conditions


def build(parts: EnvParts, schedule: Source, options: WrapperOptions, arguments: dict[str, Any]) -> gym.Env[Any, Any]:
    """Build the desk.

    Args:
        parts: the declaration of the environment.
        schedule: the schedule, or `None`.
        options: the shared options.
        arguments: those of `ServiceDesk`.

    Raises:
        ArgumentError: if the schedule sets the same as an argument.
        ScheduleError: if the schedule cannot be used.
    """
    if schedule is None:
        return options.wrap(ServiceDesk(options.base_mode(schedule), **arguments), None)
    checked, conditions = load_with_conditions(schedule, parts, arguments)
    tasks = {} if checked.tasks is None else {"pool": checked.tasks.pool, "order": checked.tasks.order}
    own = {**tasks, **arguments, "conditions": conditions, "affected": not checked.control}
    return options.wrap(ServiceDesk(options.base_mode(checked), **own), checked)
