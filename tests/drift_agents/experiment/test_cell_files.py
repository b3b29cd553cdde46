"""Files of cells: whatever is torn off, and whoever else writes, no whole line is lost or put into another cell."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from drift_agents.errors import ExperimentError
from drift_agents.experiment.cell_files import CellFiles, CellLog, name_line
from drift_agents.experiment.loader import parse_experiment
from drift_agents.experiment.runner import run_experiment
from hypothesis import given
from hypothesis import strategies as st

from tests.drift_agents.experiment.cells import read_cells

LINES = {key: [json.dumps({"env": key, "episode": number}).encode() for number in range(6)] for key in "abc"}

attempts = st.lists(
    st.tuples(st.sampled_from(sorted(LINES)), st.integers(0, 6), st.integers(0, 120), st.booleans()), max_size=12
)


@given(attempts=attempts)
def test_no_whole_line_is_lost(attempts: list[tuple[str, int, int, bool]]) -> None:
    """Attempts that write some lines, and are torn off so many bytes before; some while an orphan holds a file."""
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        reader = CellFiles(folder)
        expected: dict[str, bytes] = {}
        for key, count, torn, is_orphaned in attempts:
            orphan = CellLog(folder, "orphan") if is_orphaned else None
            with CellLog(folder, key) as log:
                for line in LINES[key][:count]:
                    log.write(line)
                path = log.path
            content = path.read_bytes()
            begin = content.rfind(name_line(key))
            first = begin + len(name_line(key)) + 1
            left = max(len(content) - torn, begin)
            with open(path, "r+b") as file:
                file.truncate(left)
            whole = content[first:left].rpartition(b"\n")
            survived = whole[0] + whole[1] if left >= first else b""
            expected[key] = max(expected.get(key, b""), survived, key=len)
            reader.refresh()
            fresh = CellFiles(folder)
            fresh.refresh()
            if orphan is not None:
                orphan.__exit__(None, None, None)
            for name, lines in expected.items():
                assert reader.read(name) == fresh.read(name) == lines


def test_writers_at_the_same_time_have_files_of_their_own(tmp_path: Path) -> None:
    with CellLog(tmp_path, "a") as one, CellLog(tmp_path, "b") as other:
        one.write(b"1")
        other.write(b"2")
        one.write(b"3")
    with CellLog(tmp_path, "c") as third:
        third.write(b"4")
    files = CellFiles(tmp_path)
    files.refresh()
    assert [files.read(key) for key in "abcd"] == [b"1\n3\n", b"2\n", b"4\n", b""]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.jsonl", "1.jsonl"]


@pytest.mark.integration
@pytest.mark.parametrize("limit", [9_000, 9_001, 20_500])
def test_a_full_disk_loses_no_whole_line(data: dict[str, Any], tmp_path: Path, limit: int) -> None:
    """A process whose files may not grow any more fails as on a full disk: in the middle of a line."""
    experiment, file, folder = parse_experiment(data), tmp_path / "tiny.yaml", tmp_path / "run"
    file.write_text(json.dumps(data))
    command = [sys.executable, "-m", "drift_agents", "run", str(file), "--out", str(folder), "--jobs", "1"]
    full = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert full.returncode == 1
    assert "0.jsonl: cannot be written: File too large" in full.stderr
    assert (folder / "cells" / "0.jsonl").stat().st_size == limit
    done = read_cells(folder)
    assert run_experiment(experiment, folder, resume=True).read_bytes() == (
        run_experiment(experiment, tmp_path / "whole").read_bytes()
    )
    assert done.items() <= read_cells(folder).items()


@pytest.mark.parametrize("content", [b'{"cell": \n', b'{"cell": 3\n', b"line\n", b'{"cell": "a"]\n'])
def test_files_of_another_form_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "0.jsonl").write_bytes(content)
    with pytest.raises(ExperimentError, match=r"0\.jsonl: (should begin with|not) the name of a cell"):
        CellFiles(tmp_path).refresh()
