"""The files of a run's cells, for tests that look at them or damage them."""

from __future__ import annotations

from pathlib import Path

SEAL = b'{"sha256": '
"""How the last line of a cell's file begins."""


def cell_files(folder: Path) -> list[Path]:
    """The files of the finished cells of a run, by name."""
    return sorted((folder / "cells").glob("*.jsonl"))


def read_cells(folder: Path) -> dict[str, bytes]:
    """The lines of the finished cells of a run."""
    return {path.name.removesuffix(".jsonl"): path.read_bytes().partition(SEAL)[0] for path in cell_files(folder)}


def forget_cell(folder: Path, key: str) -> None:
    """Leave of a cell what a killed worker leaves: nothing."""
    (folder / "cells" / f"{key}.jsonl").unlink()
