"""The results in results/board can be shown, and the example's package installs as it says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from drift_agents.submission.board import gather_board

ROOT = Path(__file__).resolve().parents[3]
RESULTS = ROOT / "results" / "board"


@pytest.mark.integration
def test_the_tracks_are_ranked() -> None:
    """Also when schedules were renamed since: a result states what it was played on."""
    for board in gather_board(RESULTS):
        assert len(board.results) == 2
        assert board.standings is not None
        assert board.rows[0].standing.ranks[0] == 1


@pytest.mark.slow
def test_the_example_is_installed_by_pip(tmp_path: Path) -> None:
    """As docs/joining.md installs it, into a folder of its own and without an index."""
    site = tmp_path / "site"
    options = ["--no-index", "--no-deps", "--no-build-isolation", "--quiet", "--target", str(site)]
    source = tmp_path / "submission"
    for path in (ROOT / "examples" / "submission").rglob("*"):
        if path.suffix in (".py", ".toml", ".yaml"):
            target = source / path.relative_to(ROOT / "examples" / "submission")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(source)], check=True, timeout=300)
    places = [str(site), *filter(None, [os.environ.get("PYTHONPATH")])]
    code = "from drift_agents.registry import MEMORIES; print(MEMORIES.make('newest').name, MEMORIES.names()[-1])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(places)},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert done.stdout.split() == ["newest", "newest"]
