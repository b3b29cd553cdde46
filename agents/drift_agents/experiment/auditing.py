"""Written items under audit: how many are true, and whether they are read.

* `Audit` - keeps track of the items of a memory, episode by episode
* `ItemNote` - what it says about an episode
* `Itemised`, `Entry` - a memory whose items can be audited, and what it tells of one
* `banks`, `epochs` - the tables of a report

Source: EDV, section 5.3 (people audited what was written; here the oracle does) and section 5.5.2 (how
often each bank is read, and what a hit is worth).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

from drift_agents.experiment.reporting.figures import Row, estimate
from drift_agents.experiment.reporting.sheets import MISSING, Sheet, show, show_count
from drift_agents.experiment.reporting.tables import Measure, Naming
from drift_agents.experiment.watch import Watched
from drift_agents.memory.base import Memory
from drift_agents.types import Episode, RecordId

SHARED, PRIVATE = "shared_hits", "private_hits"
"""The fields of a line."""


class Entry(NamedTuple):
    """What an audit needs of an item.

    Args:
        id: its number, as it stands among what was retrieved.
        owner: the member in whose private bank it stands; empty for what everybody reads.
        evidence: the records that it rests on.
    """

    id: RecordId
    owner: str
    evidence: tuple[RecordId, ...]


@runtime_checkable
class Itemised(Protocol):
    """A memory whose items can be audited."""

    def audited(self) -> Iterable[tuple[RecordId, str, tuple[RecordId, ...]]]:
        """All items, oldest first: number, owner (empty for what everybody reads), and the records that it cites."""
        ...


class ItemNote(NamedTuple):
    """What an audit says about an episode.

    Args:
        items: how many items there are after it; `None` for a memory without any.
        truth: the share of them whose evidence the world could still answer, all of it; `None` without
            items or oracle.
        shared: steps at which an item of the shared bank stood in the prompt.
        private: the same of private banks.
    """

    items: int | None
    truth: float | None
    shared: int
    private: int


class Audit:
    """Keeps track of the items of a memory.

    An item is true as long as every transition that it cites and that is still held could happen in the
    world as it is at this tick. What its words say beyond that is not judged.

    Args:
        world: where the agent plays.
    """

    def __init__(self, world: Watched) -> None:
        self._world = world
        self._owners: dict[RecordId, str] = {}
        self._true: dict[RecordId, bool] = {}
        self._values: Mapping[str, Any] | None = None

    def note(self, episode: Episode, memory: Memory) -> ItemNote:
        """Audit an episode that has just ended.

        Args:
            episode: what happened, with its steps.
            memory: the agent's memory after it.
        """
        if not isinstance(memory, Itemised):
            return ItemNote(None, None, 0, 0)
        items = [Entry(*one) for one in memory.audited()]
        read = [[self._owners.get(number) for number in step.retrieved] for step in episode.trace]
        shared = sum("" in owners for owners in read)
        private = sum(any(owners) for owners in read)
        self._owners.update((item.id, item.owner) for item in items)
        return ItemNote(len(items), self._truth(items, memory), shared, private)

    def _truth(self, items: Sequence[Entry], memory: Memory) -> float | None:
        """The share of the items that are true."""
        oracle, tick = self._world.oracle, self._world.tick
        if oracle is None or not items:
            return None
        values = self._world.knobs(tick)
        if values != self._values:
            self._true, self._values = {}, values
        cited = {number for item in items for number in item.evidence}
        missing = cited - set(self._true)
        if missing:
            for record in memory.records():
                if record.id in missing:
                    self._true[record.id] = all(
                        oracle.holds(record.state, record.action, outcome.state, outcome.ended, tick)
                        for outcome, _ in record.outcomes
                    )
        return sum(all(self._true.get(number, True) for number in item.evidence) for item in items) / len(items)


def banks(naming: Naming, measure: Measure) -> Sheet:
    """Items, their truth, how often each bank is read, and what a hit goes along with.

    Args:
        naming: who stands in which row.
        measure: what is reported.
    """
    sheet = Sheet(
        f"Items of the test: what is written, true and read; {measure.name} with a hit minus without",
        ("method", "items\nat the end", "true\nat the end", "shared\nread in", "gain", "private\nread in", "gain"),
    )
    for name, run, reference in naming.rows():
        if all(row["items"] is None for rows in run.rows for row in rows):
            continue
        last = [[row for row in rows if row["items"] is not None][-1:] for rows in run.rows]
        sizes = [float(rows[0]["items"]) for rows in last if rows]
        true = [100 * rows[0]["item_truth_rate"] for rows in last if rows and rows[0]["item_truth_rate"] is not None]
        cells = [show_count(estimate(sizes)), show(estimate(true)) if true else MISSING]
        for field in (SHARED, PRIVATE):
            gain = estimate(run.per_instance(partial(_gain, field=field, measure=measure)))
            cells += [
                show(estimate(run.per_instance(partial(_read_in, field=field)))),
                show(gain) if gain.n else MISSING,
            ]
        sheet.add(name, *cells, reference=reference)
    return sheet


def _read_in(rows: Sequence[Row], field: str) -> float:
    """The share of episodes with a hit, in percent."""
    return 100 * sum(bool(row[field]) for row in rows) / len(rows)


def _gain(rows: Sequence[Row], field: str, measure: Measure) -> float:
    """What episodes with a hit reached more than those without; not a number where one kind is missing."""
    hit, without = ([row for row in rows if bool(row[field]) is wanted] for wanted in (True, False))
    return measure.of(hit) - measure.of(without) if hit and without else math.nan


def epochs(naming: Naming, measure: Measure, number: int) -> Sheet:
    """The construction, epoch by epoch: what was reached, and how many items there were and how true.

    Args:
        naming: who stands in which row.
        measure: what is reported.
        number: how many epochs were played; there is nothing to tell of one.
    """
    heads = [head for epoch in range(1, number + 1) for head in (f"epoch {epoch}", "items", "true")]
    sheet = Sheet(f"Construction, epoch by epoch: {measure.name}, items, and how many are true", ("method", *heads))
    if number < 2:
        return sheet
    for name, run, reference in naming.rows():
        if not any(run.construction):
            continue
        cells = []
        for epoch in range(number):
            parts = [_epoch(rows, epoch, number) for rows in run.construction]
            last = [rows[-1] for rows in parts if rows]
            items = [float(row["items"]) for row in last if row["items"] is not None]
            true = [100 * row["item_truth_rate"] for row in last if row["item_truth_rate"] is not None]
            cells += [show(estimate([measure.of(rows) for rows in parts if rows]))]
            cells += [show_count(estimate(items)) if items else MISSING, show(estimate(true)) if true else MISSING]
        sheet.add(name, *cells, reference=reference)
    return sheet


def _epoch(rows: Sequence[Row], epoch: int, number: int) -> list[Row]:
    """The rows of one epoch: all are equally long, counted in tasks."""
    tasks = rows[-1]["round"] // number if rows else 0
    return [row for row in rows if epoch * tasks < row["round"] <= (epoch + 1) * tasks]
