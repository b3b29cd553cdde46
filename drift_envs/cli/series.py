"""Knobs over ticks as series that can be drawn.

* `KnobSeries` - one curve: numbers, or letters that stand for values which are none
* `collect` - the series of a timeline
* `default_stop` - how many ticks show what a schedule does
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from drift_envs.cli.worlds import ScheduledWorld
from drift_envs.schedule import NEVER, Timeline

LETTERS = string.ascii_uppercase + string.ascii_lowercase
MOST_PHASES = 6
TAIL = 20
"""Ticks shown of a last phase that never ends."""


@dataclass(frozen=True)
class KnobSeries:
    """One curve.

    Args:
        label: the knob; for a mapping the knob and the key.
        values: numbers, or letters where values are no numbers, one for each tick that is drawn.
        legend: the value behind each letter; empty for numbers.
    """

    label: str
    values: tuple[Any, ...]
    legend: tuple[Any, ...] = ()

    @property
    def is_numeric(self) -> bool:
        """Whether the values are numbers."""
        return not self.legend


def collect(timeline: Timeline, ticks: Sequence[int]) -> list[KnobSeries]:
    """The series of a timeline.

    Args:
        timeline: what is drawn.
        ticks: where.

    Returns:
        One series a knob, and one a key where a mapping holds numbers.
    """
    at = [timeline.values(tick) for tick in ticks]
    series = []
    for name in timeline.names:
        values = [each[name] for each in at]
        if all(isinstance(value, Mapping) for value in values):
            keys = dict.fromkeys(key for value in values for key in value)
            series += [_series(f"{name} {key}", [value.get(key) for value in values]) for key in keys]
        else:
            series.append(_series(name, values))
    return series


def default_stop(plan: ScheduledWorld) -> int:
    """How many ticks show what a schedule does: its first phases, and a little of the last.

    Args:
        plan: the schedule.
    """
    phases = plan.phases(MOST_PHASES)
    last = phases[-1]
    return last.stop if last.stop != NEVER else max(plan.full_tick(last), last.start) + TAIL


def _series(label: str, values: list[Any]) -> KnobSeries:
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
        return KnobSeries(label, tuple(float(value) for value in values))
    distinct = tuple(dict.fromkeys(values))
    letters = {value: LETTERS[index % len(LETTERS)] for index, value in enumerate(distinct)}
    return KnobSeries(label, tuple(letters[value] for value in values), distinct)
