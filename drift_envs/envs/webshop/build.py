"""Builds the shop of a schedule: its goals (section `tasks`) can all be bought for a reward of 1.0 in every phase.

* `build` - the environment of `DriftWebShop-v0`
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from drift_envs.envs.webshop.env import WebShop
from drift_envs.registration import EnvParts
from drift_envs.schedule.model import TaskPool
from drift_envs.wrappers.drift import Source
from drift_envs.wrappers.options import WrapperOptions, load_with_conditions


def build(parts: EnvParts, schedule: Source, options: WrapperOptions, arguments: dict[str, Any]) -> gym.Env[Any, Any]:
    """Build the shop. A browser's pages have no overlay unless it is asked for.

    Args:
        parts: the declaration of the environment.
        schedule: the schedule, or `None`.
        options: the shared options.
        arguments: those of `WebShop`.

    Raises:
        ArgumentError: if the schedule sets the same as an argument.
        ScheduleError: if the schedule cannot be used.
    """
    if options.overlay is None and arguments.get("backend") == "browser":
        options = options._replace(overlay=False)
    if schedule is None:
        return options.wrap(WebShop(options.base_mode(schedule), **arguments), None)
    checked, conditions = load_with_conditions(schedule, parts, arguments)
    tasks = (checked.tasks or TaskPool()).model_dump()
    own = {**tasks, **arguments, "conditions": conditions}
    return options.wrap(WebShop(options.base_mode(checked), **own), checked)
