"""Builds the tools of a schedule: the names in its knobs are those of the package.

* `build` - the environment of `DriftBfcl-v0`
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from drift_envs.envs.bfcl.env import BfclTools
from drift_envs.envs.bfcl.package import find_package
from drift_envs.errors import KnobError, Problem, ScheduleError
from drift_envs.parts import EnvParts
from drift_envs.wrappers.drift import Source
from drift_envs.wrappers.options import WrapperOptions, load_with_conditions


def build(parts: EnvParts, schedule: Source, options: WrapperOptions, arguments: dict[str, Any]) -> gym.Env[Any, Any]:
    """Build the tools.

    Args:
        parts: the declaration of the environment.
        schedule: the schedule, or `None`.
        options: the shared options.
        arguments: those of `BfclTools`.

    Raises:
        ArgumentError: if the schedule sets the same as an argument.
        MissingDependencyError: if the package is not installed.
        ScheduleError: if the schedule cannot be used.
    """
    find_package()
    if schedule is None:
        return options.wrap(BfclTools(options.base_mode(schedule), **arguments), None)
    checked, conditions = load_with_conditions(schedule, parts, arguments)
    tasks = {} if checked.tasks is None else {"pool": checked.tasks.pool, "order": checked.tasks.order}
    own = {**tasks, **arguments, "conditions": conditions, "affected": not checked.control}
    try:
        return options.wrap(BfclTools(options.base_mode(checked), **own), checked)
    except KnobError as error:
        raise ScheduleError([Problem(checked.name, None, "drifts", str(error))]) from error
