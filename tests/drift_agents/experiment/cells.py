"""The cells in the files of a run, for tests that tear them."""

from __future__ import annotations

import json
from pathlib import Path

from drift_agents.experiment.cell_files import CellFiles, name_line
from drift_agents.experiment.folder import RunFolder


def read_cells(folder: Path) -> dict[str, bytes]:
    """The lines of the finished cells of a run, in the order in which they were finished."""
    held = RunFolder(folder)
    held.cells.refresh()
    return {key: held.cells.read(key) for key in held.finished()}


def tear_cell(folder: Path, key: str, left: bytes) -> None:
    """Leave of a cell what a killed worker would have left, and forget that it was finished."""
    cells = read_cells(folder)
    replace_cells(folder, {**{name: lines for name, lines in cells.items() if name != key}, key: left})
    notes = (folder / "finished.jsonl").read_text().splitlines(keepends=True)
    (folder / "finished.jsonl").write_text("".join(note for note in notes if json.loads(note)["cell"] != key))


def replace_cells(folder: Path, cells: dict[str, bytes]) -> Path:
    """Put other cells into the folder of a run, all in one file, which is returned."""
    for path in (folder / "cells").iterdir():
        path.unlink()
    path = folder / "cells" / "0.jsonl"
    path.write_bytes(b"".join(name_line(key) + b"\n" + lines for key, lines in cells.items()))
    return path


def read_lines(folder: Path, key: str) -> bytes:
    """The lines of a cell."""
    files = CellFiles(folder / "cells")
    files.refresh()
    return files.read(key)
