"""The table of shipped schedules: `docs/shipped_schedules.csv`.

`python -m website.shipped [NAME...]` computes the rows of these schedules again, or of all of them (minutes), and
writes the file.

* `COLUMNS`, `TABLE` - its columns, and the file
* `make_row` - the row of a schedule, computed
* `figures` - its cells of what drifts do
* `listed` - the schedules that have a row
* `read_table`, `write_table` - the file
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from drift_envs import load_schedule, shipped_schedules
from drift_envs.cli.scheduled import open_schedule
from drift_envs.oracle import ChangeEffect
from drift_envs.registration import IDS

TABLE = Path(__file__).resolve().parent.parent / "docs" / "shipped_schedules.csv"
COLUMNS = ("schedule", "visibility", "drifts", "table", "loss", "what drifts")
DRIFTS = 2
"""How many drifts of a schedule have figures."""


def listed() -> list[str]:
    """All schedules but the points of the map of verification, of which each file has one row."""
    return [name for name in shipped_schedules() if not ("/verify" in name and ":" in name)]


def make_row(name: str) -> list[str]:
    """The row of a schedule.

    Args:
        name: a shipped one.

    Returns:
        A text for each of `COLUMNS`. The figures of an environment that needs an extra, or whose optimum is not known,
        are empty; its drifts are then those of the file.
    """
    schedule = load_schedule(name)
    kind = "control" if schedule.control else schedule.visibility or ""
    parts = IDS[str(schedule.env)]
    plan = open_schedule(name) if parts.extra is None and parts.knows_optimum else None
    if plan is None or plan.oracle is None:
        return [name, kind, ", ".join(drift.name for drift in schedule.drifts), "", "", schedule.description or ""]
    oracle, phases = plan.oracle, plan.phases(DRIFTS + 1)
    effects = [oracle.effect(plan.full_tick(old), plan.full_tick(new)) for old, new in pairwise(phases)]
    return [
        name,
        kind,
        ", ".join(phase.id for phase in phases[1:]),
        *figures(effects),
        schedule.description or "",
    ]


def figures(effects: Sequence[ChangeEffect]) -> list[str]:
    """How much of the table of responses drifts change, and what they cost who does not notice.

    Args:
        effects: those of the first drifts.

    Returns:
        The cells `table` and `loss`.
    """
    return [
        ", ".join(f"{effect.magnitude:.0%}" for effect in effects),
        ", ".join(f"{effect.loss:.0%}" for effect in effects),
    ]


def read_table(path: Path = TABLE) -> dict[str, list[str]]:
    """The rows of the file, by the name of the schedule."""
    with path.open(newline="", encoding="utf-8") as file:
        _, *rows = csv.reader(file)
    return {row[0]: row for row in rows}


def write_table(rows: Iterable[Sequence[str]], path: Path = TABLE) -> None:
    """Write rows into the file, below the names of the columns."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([COLUMNS, *rows])


def main(names: Sequence[str], path: Path = TABLE) -> int:
    """Compute rows, and write the file."""
    known = listed()
    if unknown := [name for name in names if name not in known]:
        print(f"usage: python -m website.shipped [NAME...]; no row has {', '.join(unknown)}", file=sys.stderr)
        return 2
    old = read_table(path) if names else {}
    write_table([old[name] if name in old and name not in names else make_row(name) for name in known], path)
    print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
