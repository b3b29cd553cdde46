"""A schedule with its environment, as the commands use it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym

from drift_envs.envs.make import check_id, folder_of, knob_table_of, make_from_schedule, make_plain, module_to_import
from drift_envs.errors import ArgumentError, UnknownChoiceError
from drift_envs.knobs import KnobTable
from drift_envs.oracle import Oracle, PlannedKnobs
from drift_envs.registration import IDS
from drift_envs.schedule import Phase, Schedule, Timeline, load_schedule, shipped_schedules
from drift_envs.schedule.loader import Tables
from drift_envs.schedule.yaml import FILE_ENDINGS, split_suffix
from drift_envs.utils.command_line import refuse
from drift_envs.wrappers.binding import declared_knob_table


class ScheduledEnv(NamedTuple):
    """A schedule with its environment, timeline and oracle.

    Args:
        schedule: the schedule.
        env_id: the environment.
        timeline: the schedule's values with one seed.
        oracle: the optimum of each tick; `None` if there is no oracle for the environment.
    """

    schedule: Schedule
    env_id: str
    timeline: Timeline
    oracle: Oracle | None

    def phases(self, most: int) -> list[Phase]:
        """The first phases, at most `most`."""
        return self.timeline.first_phases(most)

    def full_tick(self, phase: Phase) -> int:
        """The first tick of full weight of a phase, or its last tick if it ends earlier."""
        return self.timeline.full_tick(phase)

    def main_phases(self, most: int) -> list[Phase]:
        """The first phases, at most `most`, and after them those of what stands in the file and comes later.

        These are, of each drift, the first phase, the one in which its ramp is up, the one after its `for`, and the one
        of its first repetition.
        """
        found = {phase.start: phase for phase in self.phases(most)}
        stop = max(phase.stop for phase in found.values())
        for drift in self.schedule.drifts:
            if (drift.at or 0) > self.timeline.last_phase_tick:
                continue
            try:
                first = self.timeline.phase_named(drift.name)
            except UnknownChoiceError:  # others begin at the same ticks, or its random times never come
                continue
            later = (0, drift.over, drift.duration, drift.every)
            for tick in (first.start + ticks for ticks in later if ticks is not None):
                if stop <= tick <= self.timeline.last_phase_tick:
                    phase = self.timeline.phase(tick)
                    found[phase.start] = phase
        return [found[start] for start in sorted(found)]

    def before(self, phase: Phase) -> Phase:
        """The phase before one; the first phase for itself.

        For one in which the first ramp of its drift is up, while others began during the ramp: the phase before the
        ramp, since only the last step of it stands between this phase and its neighbour.
        """
        tick = phase.start
        for drift in self.schedule.drifts:
            if drift.name == phase.drift and drift.over is not None:
                first = self.timeline.phase_named(drift.name).start
                if first < phase.start <= first + drift.over < phase.stop:
                    tick = first
        return self.timeline.phase(max(tick - 1, 0))

    def make_env(self, render_mode: str | None, *, text: bool = False, overlay: bool = True) -> gym.Env[Any, Any]:
        """Make the environment, with phase, tick and changes on its pictures.

        Args:
            render_mode: one of its render modes, or `None` for no pictures.
            text: whether observations are texts.
            overlay: whether they are on the pictures; an environment that shows itself has no place for them.
        """
        schedule = self.schedule.model_copy(update={"env": self.env_id})
        env = make_from_schedule(schedule, text=text, render_mode=render_mode, overlay=overlay)
        env.set_wrapper_attr("warns_of_end", False)  # a command may be told to end before the first drift
        return env


def open_schedule(
    name: str | Schedule, seed: int = 0, env_id: str | None = None, *, may_import: bool = False
) -> ScheduledEnv:
    """Read a schedule, with its environment, timeline and oracle.

    Args:
        name: a shipped name or the path of a file, or a schedule that was read.
        seed: the seed of its instance.
        env_id: the environment; `None` for the one that the schedule names.
        may_import: whether the module that `env` names may be imported, which runs its code.

    Raises:
        ScheduleError: if the schedule breaks a rule.
        ArgumentError: if no environment is named, or its module may not be imported.
        UnknownChoiceError: if there is no such environment.
    """
    chosen = env_id or read_schedule(name, None).env
    if chosen is None:
        raise ArgumentError(f"{name} names no environment; give one with `--env ID`")
    tables: list[KnobTable] = []

    def find_table(content: Mapping[str, Any]) -> KnobTable | None:
        table = table_of(chosen, content, may_import=may_import)
        tables.extend([] if table is None else [table])
        return table

    schedule = read_schedule(name, find_table)
    table = tables[-1]
    timeline = Timeline(schedule, table, schedule.seed if schedule.seed is not None else seed)
    return ScheduledEnv(schedule, chosen, timeline, _oracle(chosen, schedule, seed, timeline, table))


def default_schedule(env_id: str) -> str:
    """The default schedule of an id of this package.

    Raises:
        UnknownChoiceError: if it is none.
    """
    check_id(env_id)
    return IDS[env_id].schedule


def choose_environment(name: str, schedule: str | None) -> tuple[str, str | None]:
    """The environment and the schedule of a command that takes `ID`, `ID --schedule NAME` or `NAME`.

    Args:
        name: an id, or a shipped schedule or the path of a file that names its environment.
        schedule: of the option `--schedule`.

    Returns:
        The id and the schedule; `None` for the default one of an id of this package.

    Raises:
        UnknownChoiceError: if the name is neither an id of this package nor a schedule, and no schedule is given.
        ArgumentError: if the schedule names no environment.
        ScheduleError: if the schedule breaks a rule.

    Example:
        >>> choose_environment("mountain_car/fatigue", None)
        ('DriftMountainCar-v0', 'mountain_car/fatigue')
    """
    if schedule is not None or name in IDS:
        return name, schedule
    plain = split_suffix(name)[0]
    files = (Path(name), *(Path(plain + ending) for ending in FILE_ENDINGS))  # without its ending, the file is named
    if not any(map(Path.is_file, files)) and not plain.endswith(FILE_ENDINGS) and plain not in shipped_schedules():
        check_id(name)
    env_id = read_schedule(name, None).env
    if env_id is None:
        raise ArgumentError(f"{name} names no environment; give one: `ID --schedule {name}`")
    return env_id, name


def choose_schedule(name: str | None, schedule: str | None, env: str | None) -> tuple[str, str | None]:
    """The schedule of a command that takes `NAME`, `ID` or `ID --schedule NAME`, and its environment if one is given.

    Args:
        name: a schedule or an id.
        schedule: of the option `--schedule`.
        env: of the option `--env`.

    Raises:
        typer.BadParameter: if neither a name nor a schedule is given, or two environments are.
    """
    if schedule is None and name is None:
        raise refuse("NAME", "should be given, or `--schedule`", "neither")
    if schedule is None and name in IDS:
        return IDS[name].schedule, env or name
    if schedule is None:
        return str(name), env
    if name is not None and env is not None:
        raise refuse("--env", "should not be given with an ID", env)
    return schedule, name or env


def read_schedule(name: str | Schedule, table: Tables) -> Schedule:
    """Read a schedule.

    Args:
        name: a shipped name, or a path; an existing file takes precedence. A schedule is checked alone.
        table: the knobs that it is checked against.

    Raises:
        ScheduleError: if it breaks a rule.
    """
    is_file = isinstance(name, str) and Path(name).is_file()
    return load_schedule(Path(str(name)) if is_file else name, table=table)


def table_of(env_id: str, content: Mapping[str, Any], *, may_import: bool = False) -> KnobTable | None:
    """The knobs of an environment by its id, of this package or any other.

    Args:
        env_id: the id.
        content: of the schedule, whose declarations of knobs are added.
        may_import: whether the module that the id names may be imported, which runs its code.

    Raises:
        UnknownChoiceError: if there is no such environment.
        ArgumentError: if it cannot be made, or its module may not be imported.
    """
    if env_id in IDS and "knobs" not in content:
        return knob_table_of(env_id)
    module = None if may_import else module_to_import(env_id)
    if module is not None:
        raise ArgumentError(f"`{env_id}` was not made, since {ask_import(module)}")
    env = make_plain(env_id)
    try:
        return declared_knob_table(env, content)
    finally:
        env.close()


def ask_import(module: str) -> str:
    """Why a module was not imported, and the option that imports it."""
    place = folder_of(module, ".")
    option = f"`--import {place}`" if place else f"`--import {module}`, or `--import DIR` if it stands in a folder"
    return f"its module `{module}` is imported only with {option}"


def _oracle(env_id: str, schedule: Schedule, seed: int, timeline: Timeline, table: KnobTable) -> Oracle | None:
    """The oracle, if it knows the optimum of this schedule."""
    parts = IDS.get(env_id)
    if parts is None or parts.oracle is None or not parts.knows_optimum:
        return None
    if any(name not in parts.knob_table for name in timeline.names):
        return None  # the oracles do not model knobs of the wrapper such as `action_delay`
    begin = cache(partial(_begin, env_id, schedule, seed))
    oracle: Oracle = parts.load("oracle")(PlannedKnobs(timeline, table), begin, parts.limit)
    return oracle


def _begin(env_id: str, schedule: Schedule, seed: int) -> Any:
    """The innermost environment after its first reset; of a task page, this starts a browser."""
    env = gym.make(env_id, schedule=schedule, text=True)
    env.reset(seed=seed)
    return env.unwrapped
