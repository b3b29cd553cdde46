"""Tables of audited items: how many are true, how often each bank is read, and what a hit is worth.

* `banks` - items at the end of the test, by bank
* `epochs` - items over the epochs of a construction

Source: EDV, sections 5.3 and 5.5.2. `drift_agents.experiment.item_audit` writes the fields.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from drift_agents.analysis.runs import Row, estimate
from drift_agents.analysis.table import MISSING, Table, show, show_count
from drift_agents.analysis.tables.scores import Measure, PlayerIndex

SHARED, PRIVATE = "shared_hits", "private_hits"
"""The fields of a line."""


def banks(naming: PlayerIndex, measure: Measure) -> Table:
    """Items, their truth, how often each bank is read, and what a hit goes along with.

    Args:
        naming: who stands in which row.
        measure: what is reported.
    """
    sheet = Table(
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


def epochs(naming: PlayerIndex, measure: Measure, number: int) -> Table:
    """The construction, epoch by epoch: what was reached, and how many items there were and how true.

    Args:
        naming: who stands in which row.
        measure: what is reported.
        number: how many epochs were played; there is nothing to tell of one.
    """
    heads = [head for epoch in range(1, number + 1) for head in (f"epoch {epoch}", "items", "true")]
    sheet = Table(f"Construction, epoch by epoch: {measure.name}, items, and how many are true", ("method", *heads))
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
