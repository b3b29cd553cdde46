"""What was found in a submission.

* `Checked` - its parts as they were read, and everything that is wrong in it
* `WHO`, `who_of`, `identity_of` - the fields of a line that name its cell, and their values by line and by cell
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from drift_agents.experiment.config import Experiment
from drift_agents.experiment.folder import EPISODES
from drift_agents.experiment.plan import Cell
from drift_agents.submission.bundle import Statement

WHO = ("schedule", "memory", "verifier", "controller", "team", "policy", "seed")
"""The fields of a line that name its cell."""

Row = Mapping[str, Any]


@dataclass
class Checked:
    """What was found in a submission.

    Args:
        folder: its folder.
        digest: the hash that stands for it; empty if `submission.json` cannot be read.
        statement: the content of `submission.json`.
        manifest: the content of `run.json`.
        experiment: the experiment; names of parts are not looked up, since their packages may be missing here.
        cells: the cells of the experiment.
        places: where the lines of each cell begin in the file, and how many bytes they have, by the cell's key.
        rows: all rows, in the order of the lines.
        findings: everything that is wrong, in words.
    """

    folder: Path
    digest: str = ""
    statement: Statement | None = None
    manifest: dict[str, Any] = field(default_factory=dict)
    experiment: Experiment | None = None
    cells: tuple[Cell, ...] = ()
    places: dict[str, tuple[int, int]] = field(default_factory=dict)
    rows: Sequence[Row] = ()
    findings: list[str] = field(default_factory=list)

    @property
    def is_valid(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings

    def read_lines(self, cell: Cell) -> list[bytes]:
        """The lines of a cell, without their ends.

        Args:
            cell: one of `cells`.
        """
        begin, size = self.places[cell.key]
        with open(self.folder / EPISODES, "rb") as file:
            file.seek(begin)
            return file.read(size)[:-1].split(b"\n")

    def names(self) -> dict[str, str]:
        """The name of the schedule that is played at each place; both stand in the order of the experiment."""
        return dict(zip(dict.fromkeys(cell.place for cell in self.cells), self.manifest["schedules"], strict=True))


def who_of(row: Row) -> tuple[Any, ...]:
    """The values of `WHO` in a line."""
    return tuple(row[field] for field in WHO)


def identity_of(cell: Cell) -> tuple[str, str, str, str, str]:
    """Memory, verifier, controller, team and policy as lines call them."""
    memory, verifier, policy = cell.labels
    return (memory, verifier, *cell.decision.labels, policy)
