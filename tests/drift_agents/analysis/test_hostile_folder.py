"""Run folders that others made: what they hold moves no cursor, and depth is told in one line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from drift_agents.cli.app import main
from drift_agents.experiment.config import hash_content

HOSTILE = "mine\x1b]0;owned\x07\x1b[2J\x9b1A\r"
EXPERIMENT = """\
name: short
schedules: frozen_lake/explicit
agents: {memory: [none, vanilla], policy: random}
seeds: 2
rounds: 1
"""
DEEP = "[" * 200_000


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("made")
    (place / "short.yaml").write_text(EXPERIMENT)
    assert main(["run", str(place / "short.yaml"), "--out", str(place / "run"), "--jobs", "1"]) == 0
    return place / "run"


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "run"))


def is_plain(text: str) -> bool:
    return all(one in "\t\n" or (ord(one) >= 32 and not 127 <= ord(one) < 160) for one in text)


@pytest.mark.parametrize("command", ["report", "report --full", "report --html", "inspect", "replay", "leaderboard"])
def test_escape_sequences_of_a_run_reach_neither_the_terminal_nor_the_report(
    folder: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = folder / "run.json"
    manifest = json.loads(file.read_text("utf-8"))
    manifest["name"] = manifest["experiment"]["name"] = manifest["experiment"]["about"] = HOSTILE
    manifest["config_hash"] = hash_content(manifest["experiment"])
    file.write_text(json.dumps(manifest), "utf-8")
    capsys.readouterr()
    out = ["--out", str(folder.parent / "board.md")] if command == "leaderboard" else []
    main([*command.split(), str(folder), *out])
    shown = capsys.readouterr()
    assert is_plain(shown.out)
    assert is_plain(shown.err)
    if command.startswith("report"):
        report = (folder / "report.md").read_text("utf-8")
        assert r"mine\x1b]0;owned\x07" in report
        assert is_plain(report)


@pytest.mark.parametrize("name", ["run.json", "episodes.jsonl"])
@pytest.mark.parametrize("command", ["report", "inspect", "replay", "leaderboard"])
def test_a_deep_file_is_named(folder: Path, name: str, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / name).write_text(DEEP)
    (folder / "episodes.jsonl.sha256").unlink(missing_ok=True)
    capsys.readouterr()
    out = ["--out", str(folder.parent / "board.md")] if command == "leaderboard" else []
    assert main([command, str(folder), *out]) in (1, 2)
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert str(folder) in shown


def test_deep_schedules_and_lines_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from drift_envs.cli import main as envs

    for name, text in (("a.yaml", "base: " + "[" * 5000), ("b.yaml", "{a: " * 3000)):
        (tmp_path / name).write_text(text)
        assert envs(["validate", str(tmp_path / name)]) in (1, 2)
        assert str(tmp_path / name) in capsys.readouterr().err
        assert main(["run", str(tmp_path / name)]) in (1, 2)
        assert name in capsys.readouterr().err
    (tmp_path / "lines.jsonl").write_text(DEEP)
    assert main(["import-lines", str(tmp_path / "lines.jsonl"), "--name", "x", "--out", str(tmp_path / "o")]) in (1, 2)
    assert "lines.jsonl" in capsys.readouterr().err
