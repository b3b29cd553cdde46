"""Builds a task page; the package and the browser are looked for now, and started at the first reset.

* `build` - the environments of `DriftMiniWoBClickButton-v0` and so on
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from drift_envs.chromium import find_chromium
from drift_envs.envs.miniwob.env import MiniWoB
from drift_envs.envs.miniwob.server import find_pages
from drift_envs.registration import EnvParts
from drift_envs.wrappers.binding import knob_table
from drift_envs.wrappers.drift import Source
from drift_envs.wrappers.options import WrapperOptions, load_checked


def build(parts: EnvParts, schedule: Source, options: WrapperOptions, arguments: dict[str, Any]) -> gym.Env[Any, Any]:
    """Build the task page.

    Args:
        parts: the declaration of the environment.
        schedule: the schedule, or `None`.
        options: the shared options.
        arguments: those of `MiniWoB`.

    Raises:
        ArgumentError: if the schedule sets the same as an argument.
        MissingDependencyError: if the pages or the browser are not installed.
        ScheduleError: if the schedule cannot be used.
    """
    find_pages()
    find_chromium()
    task = parts.fixed["task"]
    if schedule is None:
        return options.wrap(MiniWoB(options.base_mode(schedule), task=task, **arguments), None)
    checked = load_checked(schedule, knob_table(MiniWoB(task=task)), parts, arguments)
    tasks = {} if checked.tasks is None else {"pool": checked.tasks.pool, "order": checked.tasks.order}
    return options.wrap(MiniWoB(options.base_mode(checked), task=task, **{**tasks, **arguments}), checked)
