"""Every notebook runs from its first cell to its last, in a kernel of its own; that of SB3 is in tests/extras/rl."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[3] / "examples" / "notebooks"
NOTEBOOKS = [path for path in sorted(FOLDER.glob("*.ipynb")) if path.stem != "sb3_under_drift"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(notebook: Path, tmp_path: Path) -> None:
    # with the options of this repository the plugin would run in the session that has `-n 2` and warnings as errors
    command = [sys.executable, "-m", "pytest", "-q", "-c", "/dev/null", "-p", "no:cacheprovider", "--nbmake"]
    done = subprocess.run(
        [*command, "--nbmake-timeout=300", "--rootdir", str(tmp_path), str(notebook)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert "1 passed" in done.stdout
