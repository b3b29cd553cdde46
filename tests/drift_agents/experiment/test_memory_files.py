"""Experiments whose memories live in files: the lines are those of memories in RAM."""

from __future__ import annotations

from pathlib import Path

import pytest
from drift_agents.errors import ExperimentError
from drift_agents.experiment.config import Experiment
from drift_agents.experiment.logs import read_rows
from drift_agents.experiment.runner import run_experiment
from drift_agents.memory.base import make_memory
from drift_agents.memory.stored.memory import open_stored
from drift_agents.registry import MEMORIES


def make(schedule: Path, memory: object, **more: object) -> Experiment:
    data = {
        "name": "files",
        "schedules": [str(schedule)],
        "agents": {"memory": memory, "verifier": ["none", "glove"], "policy": "planner"},
        "seeds": 1,
        "rounds": 3,
    }
    return Experiment.model_validate({**data, **more})


@pytest.mark.parametrize("name", [name for name in MEMORIES.names() if name not in ("none", "beliefmem")])
def test_the_lines_are_those_of_a_memory_in_ram(schedule_file: Path, tmp_path: Path, name: str) -> None:
    plain = run_experiment(make(schedule_file, name), tmp_path / "ram")
    stored = run_experiment(make(schedule_file, [{name: {"file": "m.sqlite"}}]), tmp_path / "file")
    assert stored.read_bytes() == plain.read_bytes()
    files = sorted((tmp_path / "file" / "memories").glob("*/*"))
    assert [file.name for file in files] == ["m.sqlite"] * 2
    rows = [row for row in read_rows(stored) if row["verifier"] == "none"]
    with open_stored(make_memory(name), next(file for file in files if "--none--" in str(file))) as memory:
        assert len(list(memory.records())) == rows[-1]["memory_size"] > 0


def test_a_cell_that_is_played_again_begins_with_an_empty_file(schedule_file: Path, tmp_path: Path) -> None:
    experiment = make(schedule_file, [{"vanilla": {"file": "m.sqlite"}}])
    whole = run_experiment(experiment, tmp_path / "run").read_bytes()
    (tmp_path / "run" / "episodes.jsonl").unlink()
    (tmp_path / "run" / "finished.jsonl").unlink()
    cell = next((tmp_path / "run" / "cells").glob("*--none--*.jsonl"))
    cell.write_text("".join(cell.read_text().splitlines(keepends=True)[:2]))
    assert run_experiment(experiment, tmp_path / "run", resume=True).read_bytes() == whole
    run_experiment(experiment, tmp_path / "run", fresh=True)
    assert len(list((tmp_path / "run" / "memories").glob("*/m.sqlite"))) == 2


@pytest.mark.parametrize("name", ["../m.sqlite", "a/b", "", 3, "/m"])
def test_the_name_of_a_file_has_no_folder(schedule_file: Path, tmp_path: Path, name: object) -> None:
    with pytest.raises(ExperimentError, match="`file` should be the name of a file without a folder"):
        run_experiment(make(schedule_file, [{"vanilla": {"file": name}}]), tmp_path / "run")
