"""`drift-agents inspect --memory`: what memories hold at the end of a run."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from drift_agents.cli.app import main
from drift_agents.experiment.loader import parse_experiment
from drift_agents.experiment.logs import read_rows
from drift_agents.experiment.runner import run_experiment

MEMORIES = ["none", "vanilla", {"managed": {"capacity": 5}}]


@pytest.fixture
def folder(data: dict[str, Any], tmp_path: Path) -> Path:
    agents = {"memory": MEMORIES, "verifier": "glove", "policy": "planner"}
    run_experiment(parse_experiment({**data, "agents": agents, "references": [], "seeds": 1}), tmp_path / "run")
    return tmp_path / "run"


def test_every_record_is_printed_also_where_episodes_end_with_deletions(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", str(folder), "--memory"]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    sizes = {row["memory"]: row["memory_size"] for row in read_rows(folder / "episodes.jsonl")}
    assert 0 == sizes.pop("none") < min(sizes.values())
    assert Counter(record["cell"].split("--")[1] for record in records) == {
        name.replace("(", "-").replace(")", ""): size for name, size in sizes.items()
    }
    keys = {"cell", "episode", "step", "state", "action", "outcomes", "n", "verified"}
    assert all(record.keys() == keys for record in records)
    assert {record["verified"] for record in records} == {True, False}
    assert all(sum(outcome["p"] for outcome in record["outcomes"]) == pytest.approx(1) for record in records)
    assert main(["inspect", str(folder), "--memory", "--cell", "--vanilla--"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == sizes["vanilla"]


def test_a_run_that_gives_other_lines_now_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = folder / "run.json"
    manifest.write_text(manifest.read_text().replace('"planner"', '"random"'))
    for cell in (folder / "cells").iterdir():
        cell.rename(cell.with_name(cell.name.replace("planner", "random")))
    assert main(["inspect", str(folder), "--memory"]) == 1
    assert "gives other lines now" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (("--memory", "--serve"), 2, "`--memory` should not be given with options of the page"),
        (("--cell", "vanilla"), 2, "`--cell` should stand with `--memory`"),
        (("--memory",), 1, "holds no run"),
    ],
)
def test_wrong_usage(
    options: tuple[str, ...], status: int, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", str(tmp_path), *options]) == status
    assert message in capsys.readouterr().err


def test_a_cell_that_is_not_there(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(folder), "--memory", "--cell", "voyager"]) == 1
    assert "no cell's name contains 'voyager'" in capsys.readouterr().err
