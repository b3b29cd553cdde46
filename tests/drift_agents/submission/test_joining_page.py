"""Every command of docs/joining.md works, in the order of the page, for participant and organiser."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest
from drift_agents.cli.app import main

from tests.documents import read_code

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.integration
def test_the_commands_of_the_page_work(
    tmp_path: Path, newest: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    # `python3` may be a script of a version manager, which needs its own folders and so does not start in the sandbox.
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr("drift_agents.experiment.dispatch.count_cores", lambda: 1)  # starting workers takes longest
    shutil.copytree(ROOT / "examples" / "submission", tmp_path / "examples" / "submission")
    track = tmp_path / "examples" / "submission" / "track.yaml"
    assert not main(["track", "new", str(track), "--out", "whole.json"]), "the page's track; a smaller one is played"
    track.write_text(track.read_text().replace("seeds: 2", "seeds: 1").replace("episodes: 30", "episodes: 3"))
    first, *others = "".join(read_code("docs/joining.md", "sh")).splitlines()
    assert first == "pip install ./examples/submission", "which the fixture has done"
    for line in others:
        program, *words = shlex.split(line)
        assert program == "drift-agents"
        assert main(words) == 0, (line, capsys.readouterr())
    assert json.loads(Path("hidden.certificate.json").read_text())["differences"] == []
    assert main(["board", "page", ".", "--out", "board.md"]) == 0
    board = Path("board.md").read_text()
    assert "known instances" in board, "of the open track"
    assert "newest + GLOVE" in board


def test_the_page_states_the_chances_that_are_computed() -> None:
    text = (ROOT / "docs" / "joining.md").read_text(encoding="utf-8")
    found = re.findall(r"(\d+) cells with (?:a chance of )?([\d.]+) %", text)
    for cells, chance in found:
        missed = math.comb(90, int(cells)) / math.comb(100, int(cells))
        assert f"{100 * missed:.1g}" == f"{float(chance):.1g}"
    assert len(found) == 2
