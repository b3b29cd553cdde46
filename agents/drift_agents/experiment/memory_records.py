"""What memories hold at the end of a run.

* `list_records` - the records of the memory of each cell, which is played again
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from drift_agents.errors import ExperimentError
from drift_agents.experiment.config import Experiment
from drift_agents.experiment.episode import CellSetup, play
from drift_agents.experiment.folder import MANIFEST, REPLIES, RunFolder, read_manifest
from drift_agents.experiment.loader import parse_experiment
from drift_agents.experiment.logs import to_line
from drift_agents.experiment.plan import plan_cells
from drift_agents.experiment.players import needs_model
from drift_agents.llm.cache import ReplyStore
from drift_agents.llm.service import Service
from drift_agents.types import Episode, Record


def list_records(folder: Path, name: str = "") -> Iterator[dict[str, Any]]:
    """The records of the memory of each cell at its end, cell by cell, oldest first.

    A run keeps no memory, so each cell is played again; replies of language models come from the run's records.

    Args:
        folder: of a run.
        name: only of the cells whose name contains this text.

    Yields:
        Plain data: the cell, the episode and step at which the record was written, and the record.

    Raises:
        ExperimentError: if the folder holds no run, or no such cell that is done, or one gives other lines now.
        ReplayError: if a reply of a language model is not in the run's records.
    """
    experiment = parse_experiment(read_manifest(folder).get("experiment"), str(folder / MANIFEST))
    planned = plan_cells(experiment)
    cells = [cell for cell in planned if name in cell.key]
    if not cells:
        raise ExperimentError(f"{folder}: no cell's name contains {name!r}; the first is {planned[0].key!r}")
    with _recorded_replies(experiment, folder) as service:
        for cell in cells:
            setups: list[CellSetup] = []
            rows = play(cell, experiment.settings_of(cell.schedule), partial(_keep, setups), service)
            lines = b"".join(to_line(row).encode() + b"\n" for row in rows)
            if lines != RunFolder(folder).read_cell(cell.key):
                raise ExperimentError(
                    f"{folder}: {cell.key} gives other lines now. Use the versions that {MANIFEST} names"
                )
            for record in setups[-1].memory.records():
                yield {"cell": cell.key, **_describe(record)}


def _keep(setups: list[CellSetup], setup: CellSetup, index: int, episode: Episode) -> None:
    setups[:] = [setup]


@contextmanager
def _recorded_replies(experiment: Experiment, folder: Path) -> Iterator[Service | None]:
    """The service that finds the replies of a run again, `None` without language models."""
    if not needs_model(experiment):
        yield None
        return
    with ReplyStore(folder / REPLIES, read_only=True) as replies, closing(Service(replies=replies)) as service:
        yield service


def _describe(record: Record) -> dict[str, Any]:
    return {
        "episode": record.now.episode,
        "step": record.now.step,
        "state": record.state,
        "action": record.action,
        "outcomes": [{**outcome._asdict(), "p": p} for outcome, p in record.outcomes],
        "n": record.n,
        "verified": record.verified,
    }
