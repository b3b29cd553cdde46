"""The pages in docs/ are those of the results in results/board, and the example's package installs as it says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from drift_agents.submission.board_pages import write_board
from drift_agents.submission.results import is_current
from drift_agents.submission.track import make_track, read_track

ROOT = Path(__file__).resolve().parents[3]
RESULTS = ROOT / "results" / "board"
COMMAND = "drift-agents board page results/board --out docs/board.md --html docs/board.html"


def test_the_pages_are_those_of_the_results(tmp_path: Path) -> None:
    boards = write_board(RESULTS, tmp_path / "board.md", tmp_path / "board.html")
    # The legend, at the end, is that of the leaderboard; its words may change before the pages are made again.
    for name, end in (("board.md", "## How to read this"), ("board.html", '<h2 id="reading">')):
        kept, made = ((folder / name).read_text("utf-8").split(end) for folder in (ROOT / "docs", tmp_path))
        assert kept[0].split("<body>")[-1] == made[0].split("<body>")[-1], f"make it again: {COMMAND}"
    kept, made = (
        (folder / "board.html").read_text("utf-8").split('id="data">')[1].split("</script>")[0]
        for folder in (ROOT / "docs", tmp_path)
    )
    assert kept == made, f"make it again: {COMMAND}"
    for board in boards:
        assert board.views[0].rows, "a track of which nothing counts"
        assert all(result.replayed is not None for result in board.results), "no result without a certificate"


def test_results_are_small() -> None:
    for path in RESULTS.rglob("*.json"):
        assert path.stat().st_size < 600_000, path


def test_the_open_track_is_that_of_its_file() -> None:
    track = read_track(RESULTS / "small" / "track.json")
    made = make_track(RESULTS / "small" / "track.yaml")
    current = {name for name, about in track.schedules.items() if is_current(name, about.model_dump())}
    if current == set(track.schedules):
        assert made.digest() == track.digest()


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
