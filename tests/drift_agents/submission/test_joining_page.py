"""Every command of docs/joining.md works, in the order of the page, for participant and organiser."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from drift_agents.cli.app import main
from drift_agents.submission.replay import miss_probability

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "joining.md"


def commands() -> list[str]:
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [line for block in blocks for line in block.splitlines()]


def test_the_commands_of_the_page_work(
    tmp_path: Path, newest: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("drift_agents.experiment.dispatch.count_cores", lambda: 1)  # starting workers takes longest
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    first, *others = commands()
    assert first == "pip install ./examples/submission", "which the fixture has done"
    for line in others:
        program, *words = shlex.split(line)
        assert program == "drift-agents"
        assert main(words) == 0, (line, capsys.readouterr())
    assert json.loads(Path("newest.certificate.json").read_text())["outcome"] == "reproduced"
    board = Path("board.md").read_text()
    assert board.count("newest + GLOVE") >= 2, "on both tracks"
    assert "(revealed)" in board


def test_the_page_states_the_chances_that_are_computed() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for cells, chance in re.findall(r"(\d+) cells with (?:a chance of )?([\d.]+) %", text):
        assert f"{100 * miss_probability(100, 10, int(cells)):.1g}" == f"{float(chance):.1g}"
    assert len(re.findall(r"\d+ cells with", text)) == 2
