"""How an environment of this package is built: the shared options, and the builder that most environments use."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from itertools import islice
from typing import Any, NamedTuple

import gymnasium as gym

from drift_envs.errors import ArgumentError, KnobError, Problem, ScheduleError
from drift_envs.knobs import KnobTable
from drift_envs.registration import EnvParts
from drift_envs.schedule.loader import NamedSource, load_schedule, reachable_values
from drift_envs.schedule.model import Schedule
from drift_envs.utils.lazy import load_object
from drift_envs.wrappers.binding import knob_table
from drift_envs.wrappers.drift import DriftWrapper, Source
from drift_envs.wrappers.internal import mark_internal

MAX_CONDITIONS = 16
"""The combinations of knob values for which the goals of a shop, or the tasks of a house, are checked."""

_Env = gym.Env[Any, Any]


class WrapperOptions(NamedTuple):
    """The arguments that all ids share.

    Args:
        notify: what `info["drift"]` contains: `none`, `change` or `full`.
        text: whether observations are texts.
        render_mode: `human`, `rgb_array`, `ansi` or `None`.
        overlay: whether pictures show the drift; by default those of `human` do.
    """

    notify: str = "none"
    text: bool = False
    render_mode: str | None = None
    overlay: bool | None = None

    def has_overlay(self, schedule: Source) -> bool:
        """Whether pictures show the drift; without a schedule there is none."""
        wanted = self.render_mode == "human" if self.overlay is None else self.overlay
        return wanted and schedule is not None and self.render_mode is not None

    def base_mode(self, schedule: Source) -> str | None:
        """The render mode of the innermost environment: an overlay on `human` needs arrays, not a window."""
        return "rgb_array" if self.render_mode == "human" and self.has_overlay(schedule) else self.render_mode

    def wrap(self, env: _Env, schedule: Source, *, is_built_in: bool = True) -> _Env:
        """The environment inside the wrappers of this package.

        Args:
            env: the environment.
            schedule: the schedule, or `None`.
            is_built_in: whether the id's entry point adds them, so that its spec leaves them out; the spec of an
                environment of another package names them.
        """
        mark = mark_internal if is_built_in else lambda wrapper: wrapper
        oracle = make_oracle if is_built_in else None
        drifting: _Env = mark(DriftWrapper(env, schedule, oracle, self.notify))
        if self.has_overlay(schedule):
            from drift_envs.wrappers.overlay import DriftOverlay, ScreenWindow

            drifting = mark(DriftOverlay(drifting))
            if self.render_mode == "human":
                drifting = mark(ScreenWindow(drifting))
        if self.text and not isinstance(env.observation_space, gym.spaces.Text):
            from drift_envs.wrappers.text import TextObservation

            drifting = mark(TextObservation(drifting))
        return drifting


def make_oracle(drifting: DriftWrapper) -> Any:
    """The oracle of a drifting environment; the module of the oracles is loaded here, at the first use."""
    return load_object("drift_envs.oracle.base:make_oracle")(drifting)


def build_plain(parts: EnvParts, schedule: Source, options: WrapperOptions, arguments: dict[str, Any]) -> _Env:
    """Build an environment whose knobs can be set at any time, so that the schedule need not be known in advance.

    Args:
        parts: the declaration of the environment.
        schedule: the schedule, or `None`.
        options: the shared options.
        arguments: those of the environment's class.

    Raises:
        ArgumentError: if the schedule sets the same as an argument.
        ScheduleError: if the schedule cannot be used.
    """
    env = parts.env_class(**parts.fixed, render_mode=options.base_mode(schedule), **arguments)  # type: ignore[call-arg]
    if schedule is not None and any(parts.arguments[name] for name in arguments):
        schedule = load_checked(schedule, knob_table(env), parts, arguments)
    return options.wrap(env, schedule)


def build_with_tasks(parts: EnvParts, schedule: Source, options: WrapperOptions, arguments: dict[str, Any]) -> _Env:
    """Build an environment whose recurring tasks can all be done for a reward of 1.0 in every phase.

    Args:
        parts: the declaration of the environment, whose class takes `pool` and `order`; also `conditions` and
            `affected`, unless every task can be done under all knobs.
        schedule: the schedule, or `None`.
        options: the shared options.
        arguments: those of the environment's class.

    Raises:
        ArgumentError: if the schedule sets the same as an argument.
        ScheduleError: if the schedule cannot be used.
    """
    env_class: Any = parts.env_class
    if schedule is None:
        return options.wrap(env_class(options.base_mode(None), **arguments), None)
    checked, conditions = load_with_conditions(schedule, parts, arguments)
    own = dict(arguments)
    if "conditions" in signature(env_class).parameters:
        own |= {"conditions": conditions, "affected": not checked.control}
    tasks = {} if checked.tasks is None else {"pool": checked.tasks.pool, "order": checked.tasks.order}
    try:
        return options.wrap(env_class(options.base_mode(checked), **{**tasks, **own}), checked)
    except KnobError as error:  # of a name that only the environment knows
        raise ScheduleError([Problem(checked.name, None, "drifts", str(error))]) from error


def load_checked(schedule: NamedSource, table: KnobTable, parts: EnvParts, arguments: Mapping[str, Any]) -> Schedule:
    """Load the schedule, check it against the knobs, and refuse arguments that set the same.

    Args:
        schedule: what `load_schedule` takes.
        table: the knobs.
        parts: the declaration of the environment.
        arguments: those of the environment's class.

    Raises:
        ArgumentError: if the schedule sets the same as an argument.
        ScheduleError: if the schedule cannot be used.
    """
    checked = load_schedule(schedule, table=table)
    driven = (*checked.driven, *(() if checked.tasks is None else ("tasks",)))
    for name, value in arguments.items():
        if parts.arguments[name] in driven:
            raise ArgumentError(
                f"`{name}` should not be given, since the schedule `{checked.name}` sets `{parts.arguments[name]}`. "
                f"Received {value!r}"
            )
    return checked


def load_with_conditions(
    schedule: NamedSource, parts: EnvParts, arguments: Mapping[str, Any]
) -> tuple[Schedule, list[dict[str, Any]]]:
    """Load the schedule, with the combinations of knob values that it can reach, at most `MAX_CONDITIONS`.

    Args:
        schedule: what `load_schedule` takes.
        parts: the declaration of the environment.
        arguments: those of the environment's class.

    Raises:
        ArgumentError: if the schedule sets the same as an argument.
        ScheduleError: if the schedule cannot be used.
    """
    table = knob_table(parts.env_class())
    checked = load_checked(schedule, table, parts, arguments)
    own = parts.knob_table
    conditions = [
        {name: values[name] for name in own} for values in islice(reachable_values(checked, table), MAX_CONDITIONS)
    ]
    return checked, conditions
