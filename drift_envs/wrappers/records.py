"""The true state of a drifting environment, for evaluators.

* `DriftState` - phase, tick, episode, step and knob values
* `DriftLog` - every change on the ticks that were visited, exportable as CSV
* `VisitedTicks` - which ticks were visited
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from drift_envs.knobs import Value
from drift_envs.schedule import KnobChange, Timeline


@dataclass(frozen=True)
class DriftState:
    """The present state of a drifting environment.

    Args:
        phase: the id of the present phase.
        tick: the tick of the last transition, or of the next one after a reset.
        episode: episodes before this one since the last rewind.
        step: transitions of this episode so far.
        knobs: the value of every knob, read back from the environment.
    """

    phase: str
    tick: int
    episode: int
    step: int
    knobs: Mapping[str, Value]


@dataclass
class VisitedTicks:
    """Which ticks were visited, as disjoint spans in order.

    Args:
        spans: first and last tick of each span.

    Example:
        >>> visited = VisitedTicks()
        >>> for first, last in ((0, 3), (10, 12), (4, 5), (2, 2)):
        ...     visited.add(first, last)
        >>> visited.spans
        [(0, 5), (10, 12)]
    """

    spans: list[tuple[int, int]] = field(default_factory=list)

    @property
    def last(self) -> int:
        """The latest tick that was visited, -1 if there is none."""
        return self.spans[-1][1] if self.spans else -1

    def add(self, first: int, last: int) -> None:
        """Add the ticks from `first` to `last`, both included.

        Args:
            first: the first tick.
            last: the last tick.
        """
        if self.spans and self.spans[-1][0] <= first <= self.spans[-1][1] + 1:  # time advanced, the usual case
            self.spans[-1] = (self.spans[-1][0], max(last, self.spans[-1][1]))
            return
        apart = [span for span in self.spans if span[1] + 1 < first or last + 1 < span[0]]
        joined = [span for span in self.spans if span not in apart]
        whole = (min([first, *(span[0] for span in joined)]), max([last, *(span[1] for span in joined)]))
        self.spans = sorted([*apart, whole])


@dataclass(frozen=True)
class DriftLog(Sequence[KnobChange]):
    """Every change of a knob on the ticks that were visited since the last rewind.

    It is computed from the timeline: a change is listed when the tick at which it happens was
    visited, however often, and the environment took it.

    Args:
        changes: tick, knob, old value, new value and drift of each, in order of the ticks.
    """

    changes: tuple[KnobChange, ...]

    @classmethod
    def of(cls, timeline: Timeline, visited: VisitedTicks, lost: Container[tuple[int, str]] = ()) -> DriftLog:
        """The log of the visited ticks.

        Args:
            timeline: the timeline of the schedule.
            visited: the ticks.
            lost: tick and knob of changes that the environment did not take.
        """
        spans = visited.spans
        changes = (change for first, last in spans for change in timeline.changes(max(first - 1, 0), last + 1))
        return cls(tuple(change for change in changes if (change.tick, change.knob) not in lost))

    def __getitem__(self, index: Any) -> Any:
        """One change, or a slice of them."""
        return self.changes[index]

    def __len__(self) -> int:
        """How many changes there are."""
        return len(self.changes)

    def __iter__(self) -> Iterator[KnobChange]:
        """The changes in order."""
        return iter(self.changes)

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str:
        """The log as CSV with a header; values other than text are written as JSON.

        Args:
            path: a file to write it to as well.

        Returns:
            The text.
        """
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(KnobChange._fields)
        for change in self.changes:
            writer.writerow([change.tick, change.knob, _plain(change.old), _plain(change.new), change.drift])
        if path is not None:
            Path(path).write_text(text.getvalue(), encoding="utf-8")
        return text.getvalue()


def _plain(value: Value) -> str:
    """A knob's value in one cell."""
    if isinstance(value, str):
        return value
    return json.dumps(dict(value) if isinstance(value, Mapping) else value)
