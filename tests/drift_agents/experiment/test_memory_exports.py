"""Experiments that export their memories: one file a cell, and the same lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from drift_agents.errors import ExperimentError
from drift_agents.experiment.config import Experiment
from drift_agents.experiment.logs import read_rows
from drift_agents.experiment.runner import run_experiment
from drift_agents.memory.export import import_memory
from drift_agents.registry import MEMORIES

from tests.drift_agents.experiment.cells import read_cells, tear_cell


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
def test_the_memory_of_a_cell_is_exported_when_it_ends(schedule_file: Path, tmp_path: Path, name: str) -> None:
    plain = run_experiment(make(schedule_file, name), tmp_path / "plain")
    exported = run_experiment(make(schedule_file, [{name: {"file": "m.json"}}]), tmp_path / "run")
    assert exported.read_bytes() == plain.read_bytes()
    files = sorted((tmp_path / "run" / "memories").glob("*/*"))
    assert [file.name for file in files] == ["m.json"] * 2
    rows = [row for row in read_rows(exported) if row["verifier"] == "none"]
    memory = import_memory(next(file for file in files if "--none--" in str(file)))
    assert len(list(memory.records())) == rows[-1]["memory_size"] > 0


def test_a_cell_that_is_played_again_is_exported_again(schedule_file: Path, tmp_path: Path) -> None:
    experiment = make(schedule_file, [{"vanilla": {"file": "m.json"}}])
    whole = run_experiment(experiment, tmp_path / "run").read_bytes()
    file = next((tmp_path / "run" / "memories").glob("*--none--*/m.json"))
    before = file.read_bytes()
    file.write_text("")
    (tmp_path / "run" / "episodes.jsonl").unlink()
    key, lines = next((key, lines) for key, lines in read_cells(tmp_path / "run").items() if key == file.parent.name)
    tear_cell(tmp_path / "run", key, b"".join(lines.splitlines(keepends=True)[:2]))
    assert run_experiment(experiment, tmp_path / "run", resume=True).read_bytes() == whole
    assert file.read_bytes() == before
    run_experiment(experiment, tmp_path / "run", fresh=True)
    assert len(list((tmp_path / "run" / "memories").glob("*/m.json"))) == 2


@pytest.mark.parametrize("name", ["../m.json", "a/b", "", 3, "/m"])
def test_the_name_of_a_file_has_no_folder(schedule_file: Path, tmp_path: Path, name: object) -> None:
    with pytest.raises(ExperimentError, match="`file` should be the name of a file without a folder"):
        run_experiment(make(schedule_file, [{"vanilla": {"file": name}}]), tmp_path / "run")
