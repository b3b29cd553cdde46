"""Fuzzing by coverage, with the package itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

pytest.importorskip("atheris", reason="there is no build of atheris for this version of Python")


@pytest.mark.parametrize("target", ["schedules", "replies"])
def test_atheris_runs_a_target(target):
    command = [sys.executable, "-m", "tests.fuzz.run", "--engine", "atheris", "--targets", target, "--inputs", "300"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Done 300 runs" in done.stderr
    assert "cov: " in done.stderr
