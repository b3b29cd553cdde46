"""What the schedules of a batch share.

* `Batch` - schedules with the knobs of an environment, and which of these drift in any of them
* `ValueIndex` - the values of a knob that is no number, numbered for arrays
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from drift_envs.errors import ArgumentError
from drift_envs.functional.drift_params import CLOCKS
from drift_envs.knobs import KnobTable, Value
from drift_envs.schedule import Schedule
from drift_envs.schedule.model import OPERATIONS

_MOST_VALUES = 4096


class Batch:
    """Schedules with the knobs of an environment.

    Args:
        schedules: the schedules.
        table: the knobs.
        seeds: one for each schedule.

    Attributes:
        numeric: the knobs that are numbers.
        others: the other knobs.
        kept: the places in `numeric` of those that drift in any schedule.
        kept_others: the same for `others`.
    """

    def __init__(self, schedules: Sequence[Schedule], table: KnobTable, seeds: Sequence[int]) -> None:
        self.schedules, self.table, self.seeds = schedules, table, seeds
        self.drifts = [drift for schedule in schedules for drift in schedule.drifts]
        self.numeric = tuple(knob for knob in table.knobs if knob.is_numeric)
        self.others = tuple(knob for knob in table.knobs if not knob.is_numeric)
        drifting = {name for drift in self.drifts for operation in OPERATIONS for name in getattr(drift, operation)}
        self.kept = [place for place, knob in enumerate(self.numeric) if knob.name in drifting]
        self.kept_others = [place for place, knob in enumerate(self.others) if knob.name in drifting]

    def meta(self) -> dict[str, Any]:
        """The fields of `DriftParams` that are equal for all schedules of the batch."""
        return {
            "clocks": tuple(sorted({CLOCKS[schedule.clock] for schedule in self.schedules})),
            "names": tuple(self.numeric[place].name for place in self.kept),
            "object_names": tuple(self.others[place].name for place in self.kept_others),
            "all_names": tuple(knob.name for knob in self.numeric),
            "all_object_names": tuple(knob.name for knob in self.others),
        }


class ValueIndex:
    """The values of one knob that is no number, numbered as they are found.

    Args:
        name: the knob, for the error.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._numbers: dict[Value, int] = {}

    def index(self, value: Value) -> int:
        """The number of a value.

        Args:
            value: a canonical value.

        Raises:
            ArgumentError: if there are too many values.
        """
        if value not in self._numbers and len(self._numbers) == _MOST_VALUES:
            raise ArgumentError(f"`{self._name}` should have at most {_MOST_VALUES} values. Received more")
        return self._numbers.setdefault(value, len(self._numbers))

    @property
    def values(self) -> tuple[Value, ...]:
        """The values in the order of their numbers."""
        return tuple(self._numbers)
