"""Cells of a finished run are played again and compared; whatever differs is named."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from drift_agents.cli.app import main
from drift_agents.errors import ArgumentError, ExperimentError, ReplayError
from drift_agents.experiment.loader import parse_experiment
from drift_agents.experiment.replay import replay_run
from drift_agents.experiment.runner import run_experiment

RULE = """
from drift_agents.types import Verdict
from drift_agents.verifier.base import BaseVerifier


class Trusting(BaseVerifier):
    name = "trusting"

    def verify(self, experience, memory, prefix, now):
        return Verdict(observed=memory.observe(experience, now))
"""


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory, puddle: str) -> Path:
    """A run of twelve cells with eight episodes each, which is played once."""
    folder = tmp_path_factory.mktemp("replay")
    (folder / "puddle.yaml").write_text(puddle, encoding="utf-8")
    agents = {"memory": ["none", "vanilla"], "verifier": ["none", "glove"], "policy": "planner"}
    data = {"name": "tiny", "schedules": [str(folder / "puddle.yaml")], "agents": agents, "seeds": 4, "rounds": 4}
    run_experiment(parse_experiment(data), folder / "run")
    return folder / "run"


@pytest.fixture
def run(played: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(played, tmp_path / "run"))


def change(run: Path, cell: int, **fields: Any) -> None:
    """Change the third line of a cell, and forget the hash of all lines."""
    file = run / "episodes.jsonl"
    lines = file.read_text().splitlines()
    lines[cell * 8 + 2] = json.dumps(json.loads(lines[cell * 8 + 2]) | fields)
    file.write_text("".join(f"{line}\n" for line in lines))
    (run / "episodes.sha256").unlink()


def test_an_equal_run(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    assert replay_run(run, jobs=1) == (12, 12, 96)
    assert main(["replay", str(run), "--cells", "3", "--jobs", "1"]) == 0
    assert capsys.readouterr().out == f"equal: 24 episodes of 3 of 12 cells, as in {run}\n"
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_a_changed_line_is_named(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change(run, 5, steps=99)
    change_of_another = r"puddle\.yaml--vanilla--none--planner--1, episode 2: `steps` is 99, played again it is \d+$"
    with pytest.raises(ExperimentError, match=change_of_another):
        replay_run(run, jobs=1)
    assert replay_run(run, cells=4, jobs=1).cells == 4, "of the cells 0, 3, 6 and 9 none was changed"
    assert main(["replay", str(run), "--cells", "12", "--jobs", "1"]) == 1
    assert "`steps` is 99" in capsys.readouterr().err


def test_missing_lines_are_named(run: Path) -> None:
    file = run / "episodes.jsonl"
    (run / "episodes.sha256").unlink()
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:-1]))
    with pytest.raises(ExperimentError, match="glove--planner--3, 7 episodes, played again it has 8"):
        replay_run(run, jobs=1)
    file.write_bytes(b"".join(lines[:-8]))
    with pytest.raises(ExperimentError, match=r"should have lines of 12 cells\. Received those of 11"):
        replay_run(run)


def test_what_was_not_played_with_this_is_refused(run: Path, played: Path, puddle: str) -> None:
    file = run / "run.json"
    whole = file.read_text()
    file.write_text(whole.replace('"numpy": "', '"numpy": "0.'))
    with pytest.raises(ExperimentError, match=r"something else than is installed\n  numpy: there \"0\."):
        replay_run(run)
    file.write_text(whole)
    schedule = played.parent / "puddle.yaml"
    schedule.write_text(puddle.replace("SHH", "SFH"))
    try:
        with pytest.raises(ExperimentError, match=r"\n  schedules\.puddle\.drifts\[0\]\.set\.map: there "):
            replay_run(run)
    finally:
        schedule.write_text(puddle)
    (run / "episodes.jsonl").unlink()
    with pytest.raises(ExperimentError, match=r"the run is not finished, episodes\.jsonl is missing"):
        replay_run(run)


def test_a_changed_part_is_named(
    played: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rule = tmp_path / "mine.py"
    rule.write_text(RULE)
    words = ["--verifier", "mine.py:Trusting", "--memory", "vanilla", "--seeds", "1", "--rounds", "1", "--jobs", "1"]
    assert main(["run", "glove-quick", *words, "--schedules", "frozen_lake/explicit", "--out", "own"]) == 0
    assert replay_run(Path("own"), jobs=1).cells > 1
    rule.write_text(f"{RULE}\n")
    with pytest.raises(ExperimentError, match=r"run\.json: .*mine\.py:Trusting should end in the hash of the file"):
        replay_run(Path("own"))


@pytest.mark.integration
def test_replies_of_models_come_from_the_folder(schedule_file: Path, tmp_path: Path) -> None:
    pytest.importorskip("openai")
    from tests.drift_agents.llm import chat_server

    run = tmp_path / "run"
    with chat_server.serve(lambda _: chat_server.said('{"action": "1"}')) as server:
        policy = {"llm": {"model": "tiny", "base_url": server.url}}
        data = {"name": "m", "schedules": [str(schedule_file)], "agents": {"memory": "vanilla", "policy": policy}}
        run_experiment(parse_experiment({**data, "seeds": 2, "rounds": 1}), run)
        asked = len(server.requests)
        assert replay_run(run) == (2, 2, 4)
        assert len(server.requests) == asked > 0
    (run / "replies.sqlite").unlink()
    with pytest.raises(ReplayError, match=r"replies\.sqlite: there are no recorded replies"):
        replay_run(run)


@pytest.mark.parametrize("arguments", [{"cells": 0}, {"jobs": 0}])
def test_wrong_numbers(run: Path, arguments: dict[str, int]) -> None:
    with pytest.raises(ArgumentError, match=r"should be a whole number, at least 1, or None\. Received 0"):
        replay_run(run, **arguments)


def test_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(tmp_path), "--cells", "none"]) == 2
    assert main(["replay", str(tmp_path)]) == 1
    assert "holds no run, run.json is missing" in capsys.readouterr().err
