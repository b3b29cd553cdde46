"""A schedule with its environment, as the commands use it.

* `ScheduledEnv`, `open_schedule` - a schedule with its environment, timeline and oracle
* `default_schedule` - the schedule of an id of this package
* `read_schedule` - a schedule by name or path
* `table_of` - the knobs of an environment by its id
"""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym

from drift_envs.entry_points import make_from_schedule
from drift_envs.errors import ArgumentError, ScheduleError, UnknownChoiceError
from drift_envs.knobs import KnobTable
from drift_envs.oracle import Oracle, PlannedKnobs
from drift_envs.registration import IDS, check_id, knob_table_of
from drift_envs.schedule import Phase, Schedule, Timeline, load_schedule
from drift_envs.schedule.loader import Tables
from drift_envs.wrappers.binding import knob_table


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
        return min(self.timeline.first_tick(phase.id), phase.stop - 1)

    def make_env(self, render_mode: str, *, text: bool = False) -> gym.Env[Any, Any]:
        """Make the environment, with phase, tick and changes on its pictures.

        Args:
            render_mode: one of its render modes.
            text: whether observations are texts.
        """
        schedule = self.schedule.model_copy(update={"env": self.env_id})
        return make_from_schedule(schedule, text=text, render_mode=render_mode, overlay=True)


def open_schedule(name: str | Schedule, seed: int = 0, env_id: str | None = None) -> ScheduledEnv:
    """Read a schedule, with its environment, timeline and oracle.

    Args:
        name: a shipped name or the path of a file, or a schedule that was read.
        seed: the seed of its instance.
        env_id: the environment; `None` for the one that the schedule names.

    Raises:
        ScheduleError: if the schedule breaks a rule.
        ArgumentError: if no environment is named.
        UnknownChoiceError: if there is no such environment.
    """
    schedule = read_schedule(name, None)
    chosen = env_id or schedule.env
    if chosen is None:
        raise ArgumentError(f"{name} names no environment; give one with `--env ID`")
    table = table_of(chosen, schedule)
    schedule = read_schedule(name, table)
    timeline = Timeline(schedule, table, schedule.seed if schedule.seed is not None else seed)
    return ScheduledEnv(schedule, chosen, timeline, _oracle(chosen, schedule, seed, timeline, table))


def default_schedule(env_id: str) -> str:
    """The default schedule of an id of this package.

    Raises:
        UnknownChoiceError: if it is none.
    """
    check_id(env_id)
    return IDS[env_id].schedule


def read_schedule(name: str | Schedule, table: Tables) -> Schedule:
    """Read a schedule.

    Args:
        name: a shipped name, or a path; an existing file takes precedence. A schedule is checked alone.
        table: the knobs that it is checked against.

    Raises:
        ScheduleError: if it breaks a rule.
    """
    is_file = isinstance(name, str) and Path(name).is_file()
    schedule = load_schedule(Path(str(name)) if is_file else name, table=table)
    if schedule is None:  # only `None` gives `None`
        raise ScheduleError([])
    return schedule


def table_of(env_id: str, schedule: Schedule | None = None) -> KnobTable:
    """The knobs of an environment by its id, of this package or any other.

    Args:
        env_id: the id.
        schedule: whose declarations of knobs are added.

    Raises:
        UnknownChoiceError: if there is no such environment.
    """
    if env_id in IDS:
        return knob_table_of(env_id)
    try:
        env = gym.make(env_id)
    except (gym.error.Error, ModuleNotFoundError) as error:
        raise UnknownChoiceError(f"there is no environment `{env_id}`: {error}") from None
    try:
        return knob_table(env, schedule)
    finally:
        env.close()


def _oracle(env_id: str, schedule: Schedule, seed: int, timeline: Timeline, table: KnobTable) -> Oracle | None:
    """The oracle, if it knows the optimum of this schedule."""
    parts = IDS[env_id].parts if env_id in IDS else None
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
