"""Runs: the same bytes whatever happens on the way, and refusals that lose nothing."""

from __future__ import annotations

import json
import os
import platform
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from drift_agents.analysis.evidence import read_evidence
from drift_agents.analysis.rows import read_run
from drift_agents.errors import ArgumentError, DriftAgentsError, ExperimentError
from drift_agents.experiment.config import Experiment
from drift_agents.experiment.folder import RunFolder, check_merged, read_manifest, write_parts
from drift_agents.experiment.loader import parse_experiment
from drift_agents.experiment.logs import FIELDS, read_rows
from drift_agents.experiment.runner import Progress, run_experiment
from drift_agents.registry.part_file import PartFile

from tests.drift_agents.experiment.cells import cell_files, forget_cell, read_cells
from tests.processes import children_of, command_of, is_alive, wait_until

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def experiment(data: dict[str, Any]) -> Experiment:
    return parse_experiment(data)


@pytest.fixture
def whole(experiment: Experiment, place: Path, tmp_path: Path) -> bytes:
    """What an undisturbed run writes: it is played once, and every test gets a copy."""
    if not (place / "run" / "episodes.jsonl").exists():
        run_experiment(experiment, place / "run")
    return (Path(shutil.copytree(place / "run", tmp_path / "whole")) / "episodes.jsonl").read_bytes()


@pytest.fixture
def long(data: dict[str, Any], place: Path) -> bytes:
    """Makes the experiment one of 32 cells; what an undisturbed run of it writes."""
    data.update(seeds=8, references=[])
    if not (place / "long" / "episodes.jsonl").exists():
        run_experiment(parse_experiment(data), place / "long")
    return (place / "long" / "episodes.jsonl").read_bytes()


def test_lines_have_the_documented_fields(whole: bytes, tmp_path: Path) -> None:
    rows = read_rows(tmp_path / "whole" / "episodes.jsonl")
    assert len(rows) == 6 * 2 * 8
    assert all(tuple(row) == FIELDS for row in rows)
    first = [row for row in rows if (row["verifier"], row["seed"]) == ("glove", 1)]
    assert [(row["episode"], row["phase"], row["round"], row["tick"]) for row in first] == [
        (0, "source", 1, 0),
        (1, "source", 2, 1),
        (2, "source", 3, 2),
        (3, "source", 4, 3),
        (4, "turn", 1, 4),
        (5, "turn", 2, 5),
        (6, "turn", 3, 6),
        (7, "turn", 4, 7),
    ]
    assert all(row["success"] == (row["score"] == 1.0) for row in rows)
    assert all(row["regret"] == 1.0 - row["score"] for row in rows)


@pytest.mark.integration
def test_two_runs_and_two_job_counts_write_the_same_bytes(experiment: Experiment, tmp_path: Path, whole: bytes) -> None:
    assert run_experiment(experiment, tmp_path / "two", jobs=2).read_bytes() == whole
    names = ("run.json", "episodes.jsonl")
    assert [(tmp_path / "whole" / name).read_bytes() for name in names] == [
        (tmp_path / "two" / name).read_bytes() for name in names
    ]


def test_pairs_stay_comparable(experiment: Experiment, tmp_path: Path, whole: bytes) -> None:
    """Until something surprises, GLOVE is the plain agent: streams belong to the seed and the episode."""
    rows = read_rows(tmp_path / "whole" / "episodes.jsonl")
    for seed in (0, 1):
        plain, glove = (
            [row for row in rows if (row["memory"], row["verifier"], row["seed"]) == ("vanilla", verifier, seed)]
            for verifier in ("none", "glove")
        )
        assert [row["steps"] for row in plain if row["phase"] == "source"] == [
            row["steps"] for row in glove if row["phase"] == "source"
        ]


def test_a_run_goes_on_with_the_cells_that_are_left(experiment: Experiment, tmp_path: Path, whole: bytes) -> None:
    folder = tmp_path / "whole"
    (folder / "episodes.jsonl").unlink()
    cells = read_cells(folder)
    key = list(cells)[3]
    forget_cell(folder, key)
    (folder / "cells" / f"{key}.jsonl.part").write_bytes(cells[key][:99])  # what a killed process leaves
    assert run_experiment(experiment, folder, resume=True).read_bytes() == whole
    assert read_cells(folder) == cells
    assert not list(folder.rglob("*.part"))


def test_a_run_that_is_stopped_has_played_all_agents_on_a_seed(experiment: Experiment, tmp_path: Path) -> None:
    class StopsAtHalf(Progress):
        def count(self, done: int, cells: int) -> None:
            if done == cells // 2:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_experiment(experiment, tmp_path / "run", progress=StopsAtHalf())
    assert [key.rsplit("--", 1)[1] for key in read_cells(tmp_path / "run")] == ["0"] * 6


def test_a_finished_run_goes_on_without_playing(experiment: Experiment, tmp_path: Path, whole: bytes) -> None:
    before = [file.stat().st_mtime_ns for file in cell_files(tmp_path / "whole")]
    assert run_experiment(experiment, tmp_path / "whole", resume=True).read_bytes() == whole
    assert [file.stat().st_mtime_ns for file in cell_files(tmp_path / "whole")] == before


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content.replace(b'"steps": ', b'"steps": 1', 1),
        lambda content: content[:-30],
        lambda content: content[: content.index(b"\n") + 1],
        lambda content: b"",
    ],
    ids=["changed", "torn", "a line", "empty"],
)
def test_a_damaged_cell_is_refused_until_it_is_deleted(
    experiment: Experiment, tmp_path: Path, whole: bytes, damage: Callable[[bytes], bytes]
) -> None:
    file = cell_files(tmp_path / "whole")[2]
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(ExperimentError, match=f"{re.escape(file.name)}: is not what the run wrote when it finished"):
        run_experiment(experiment, tmp_path / "whole", resume=True)
    file.unlink()
    assert run_experiment(experiment, tmp_path / "whole", resume=True).read_bytes() == whole


def test_a_run_describes_each_player_once(experiment: Experiment, tmp_path: Path, whole: bytes) -> None:
    names = ("memory", "verifier", "policy", "seed")
    played = {tuple(row[name] for name in names) for row in read_rows(tmp_path / "whole" / "episodes.jsonl")}
    players = read_manifest(tmp_path / "whole")["players"]
    assert len({json.dumps(player) for player in players}) == len(players) == 6
    assert {tuple(player[name] for name in names[:3]) for player in players} == {one[:3] for one in played}
    assert len({one[3] for one in played}) == 2, "each played more than one seed"


def test_a_file_that_cannot_be_read_is_named(experiment: Experiment, tmp_path: Path, whole: bytes) -> None:
    folder = tmp_path / "whole"
    for file, read in (
        (cell_files(folder)[2], lambda: run_experiment(experiment, folder, resume=True)),
        (folder / "episodes.jsonl", lambda: check_merged(folder, read_manifest(folder))),
    ):
        content = file.read_bytes()
        file.unlink()
        file.mkdir()
        with pytest.raises(ExperimentError, match=f"{re.escape(file.name)}: cannot be read: Is a directory"):
            read()
        file.rmdir()
        file.write_bytes(content)


@pytest.mark.parametrize("before", [None, "whole\n"])
def test_a_file_that_is_written_half_takes_no_name(tmp_path: Path, before: str | None) -> None:
    file = tmp_path / "page.html"
    if before is not None:
        file.write_text(before, "utf-8")

    def parts() -> Iterator[str]:
        yield "half\n" * 100_000
        raise RuntimeError("stopped")

    with pytest.raises(RuntimeError):
        write_parts(file, parts())
    assert (file.read_text("utf-8") if file.exists() else None) == before


def test_changed_lines_are_not_reported(experiment: Experiment, tmp_path: Path, whole: bytes) -> None:
    file = tmp_path / "whole" / "episodes.jsonl"
    file.write_bytes(whole.replace(b'"steps": ', b'"steps": 1', 1))
    with pytest.raises(ExperimentError, match=r"episodes\.jsonl: is not what the run wrote"):
        read_run(tmp_path / "whole")
    run_experiment(experiment, tmp_path / "whole", resume=True)
    assert len(read_run(tmp_path / "whole")[1]) == len(whole.splitlines())


def test_a_changed_experiment_is_not_reported_nor_continued(
    experiment: Experiment, tmp_path: Path, whole: bytes
) -> None:
    path = tmp_path / "whole" / "run.json"
    content = json.loads(path.read_text())
    content["experiment"]["rounds"] += 1
    path.write_text(json.dumps(content))
    message = rf"run\.json: is not what the run wrote: the hash of `experiment` should be {content['config_hash']}"
    for read in (
        lambda: read_run(tmp_path / "whole"),
        lambda: read_evidence([tmp_path / "whole"]),
        lambda: run_experiment(experiment, tmp_path / "whole", resume=True),
    ):
        with pytest.raises(DriftAgentsError, match=message):
            read()


@pytest.mark.integration
@pytest.mark.parametrize("limit", [4_500, 20_000])
def test_a_full_disk_is_named_and_the_run_goes_on(
    data: dict[str, Any], whole: bytes, tmp_path: Path, limit: int
) -> None:
    """A process whose files may not grow beyond a limit fails as on a full disk: a cell's file, or the merged one."""
    file, folder = tmp_path / "tiny.yaml", tmp_path / "run"
    file.write_text(json.dumps(data))
    command = [sys.executable, "-m", "drift_agents", "run", str(file), "--out", str(folder), "--jobs", "1"]
    full = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},  # a module's file would be cut off, and stay so
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert full.returncode == 1
    assert ".jsonl: cannot be written: File too large. What is done is kept; continue with" in full.stderr
    done = read_cells(folder)
    assert run_experiment(parse_experiment(data), folder, resume=True).read_bytes() == whole
    assert done.items() <= read_cells(folder).items()


def test_a_folder_is_never_overwritten_unasked(experiment: Experiment, tmp_path: Path, whole: bytes) -> None:
    with pytest.raises(ExperimentError, match=r"holds a run already\. Go on with it with --resume"):
        run_experiment(experiment, tmp_path / "whole")
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.tex").write_text("precious")
    for how in ({}, {"fresh": True}, {"resume": True}):
        with pytest.raises(ExperimentError, match="is not empty and holds no run"):
            run_experiment(experiment, foreign, **how)
    assert (foreign / "thesis.tex").read_text() == "precious"
    (tmp_path / "file").write_text("")
    with pytest.raises(ExperimentError, match="cannot be written: a file or a broken link has the name of a folder"):
        run_experiment(experiment, tmp_path / "file")


def test_two_runs_do_not_share_a_folder(experiment: Experiment, tmp_path: Path, whole: bytes) -> None:
    with RunFolder(tmp_path / "whole") as held:
        held.open(read_manifest(held.path), resume=True, fresh=False)
        with pytest.raises(ExperimentError, match=r"another run is writing there: process [0-9]+ on .+, since "):
            run_experiment(experiment, tmp_path / "whole", resume=True)
    assert run_experiment(experiment, tmp_path / "whole", resume=True).read_bytes() == whole


def test_a_folder_that_cannot_be_used(experiment: Experiment, tmp_path: Path, whole: bytes) -> None:
    file = cell_files(tmp_path / "whole")[0]
    file.unlink()
    file.mkdir()
    with pytest.raises(ExperimentError, match=r"\.jsonl: cannot be read: Is a directory"):
        run_experiment(experiment, tmp_path / "whole", resume=True)


def test_fresh_replaces_a_run_and_nothing_else(experiment: Experiment, tmp_path: Path, whole: bytes) -> None:
    folder = tmp_path / "whole"
    (folder / "notes.txt").write_text("mine")
    (folder / "cells" / "left-over.jsonl").write_text("x")
    assert run_experiment(experiment, folder, fresh=True).read_bytes() == whole
    assert (folder / "notes.txt").read_text() == "mine"
    assert not (folder / "cells" / "left-over.jsonl").exists()


def test_another_experiment_is_not_continued(
    data: dict[str, Any], schedule_file: Path, tmp_path: Path, whole: bytes
) -> None:
    message = "holds another experiment\n  seeds: there [0, 1], here [0, 1, 2]\nChoose another folder with --out"
    with pytest.raises(ExperimentError, match=re.escape(message)):
        run_experiment(parse_experiment({**data, "seeds": 3}), tmp_path / "whole", resume=True)
    schedule_file.write_text(schedule_file.read_text().replace("SHH", "SFH"))
    message = (
        'holds another experiment\n  schedules.puddle.drifts[0].set.map: there ["SHH", "FFF", "FFG"], '
        'here ["SFH", "FFF", "FFG"]\nChoose'
    )
    with pytest.raises(ExperimentError, match=re.escape(message)):
        run_experiment(parse_experiment(data), tmp_path / "whole", resume=True)


def test_other_versions_are_not_mixed(experiment: Experiment, tmp_path: Path, whole: bytes) -> None:
    path = tmp_path / "whole" / "run.json"
    path.write_text(path.read_text().replace('"numpy": "', '"numpy": "0.'))
    with pytest.raises(ExperimentError, match=r"was begun with other versions, .*\n  numpy: there \"0\."):
        run_experiment(experiment, tmp_path / "whole", resume=True)


def test_a_part_that_cannot_be_made_is_told_before_anything_is_played(data: dict[str, Any], tmp_path: Path) -> None:
    data["agents"]["verifier"] = ["none", {"glove": {"epsilon": 7}}]
    with pytest.raises(ExperimentError, match=r"vanilla \+ glove \+ planner: `epsilon` should be .* Received 7"):
        run_experiment(parse_experiment(data), tmp_path / "run")
    assert not (tmp_path / "run").exists()
    data["agents"]["verifier"] = ["none", {"glove": {"prober": "replai"}}]
    with pytest.raises(ExperimentError, match="no prober is called 'replai', did you mean 'replay'"):
        run_experiment(parse_experiment(data), tmp_path / "run")


@pytest.mark.parametrize("how", [{"jobs": 0}, {"resume": True, "fresh": True}])
def test_arguments_that_cannot_be_meant(experiment: Experiment, tmp_path: Path, how: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        run_experiment(experiment, tmp_path / "run", **how)


@pytest.mark.integration
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_killed_run_goes_on_to_the_same_bytes(data: dict[str, Any], long: bytes, tmp_path: Path, jobs: int) -> None:
    """A real process, killed without warning in the middle of its work."""
    file = tmp_path / "tiny.yaml"
    file.write_text(json.dumps(data))  # JSON is YAML
    folder = tmp_path / "killed"
    command = [sys.executable, "-m", "drift_agents", "run", str(file), "--out", str(folder), "--jobs", str(jobs)]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    assert wait_until(lambda: len(cell_files(folder)) > 3)
    workers = children_of(process.pid)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert wait_until(lambda: not any(map(is_alive, workers)))  # they hold the folder until they end
    assert not (folder / "episodes.jsonl").exists()
    assert run_experiment(parse_experiment(data), folder, resume=True, jobs=2).read_bytes() == long


@pytest.fixture
def started(
    data: dict[str, Any], long: bytes, tmp_path: Path
) -> Iterator[tuple[subprocess.Popen[str], Path, list[int]]]:
    """A run in two worker processes, which have finished a cell: the process, its folder and the workers' ids."""
    file, folder = tmp_path / "tiny.yaml", tmp_path / "started"
    file.write_text(json.dumps(data))
    command = [sys.executable, "-m", "drift_agents", "run", str(file), "--out", str(folder), "--jobs", "2"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert wait_until(lambda: cell_files(folder))
    is_worker = "serve_calls"
    workers = [pid for pid in children_of(process.pid) if is_worker in command_of(pid)]
    assert len(workers) == 2
    yield process, folder, workers
    process.kill()
    process.communicate()


@pytest.mark.integration
@pytest.mark.skipif(sys.platform != "linux", reason="processes are listed in /proc")
class TestProcesses:
    def test_a_killed_worker_costs_its_cell_alone(
        self, started: tuple[subprocess.Popen[str], Path, list[int]], long: bytes
    ) -> None:
        process, folder, workers = started
        os.kill(workers[0], signal.SIGKILL)
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        assert (folder / "episodes.jsonl").read_bytes() == long
        assert not (folder / "held-by.json").exists()

    @pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
    def test_no_worker_outlives_its_run_which_a_second_one_is_told_of(
        self, started: tuple[subprocess.Popen[str], Path, list[int]], data: dict[str, Any], number: signal.Signals
    ) -> None:
        process, folder, workers = started
        message = rf"another run is writing there: process {process.pid} on {platform.node()}, since \d{{4}}-\d\d-\d\dT"
        with pytest.raises(ExperimentError, match=message):
            run_experiment(parse_experiment(data), folder, resume=True)
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
        assert wait_until(lambda: not any(map(is_alive, workers)), 10 if number == signal.SIGKILL else 0)
        if number != signal.SIGKILL:
            assert process.returncode == 130
            assert "What is done is kept; continue with: drift-agents run" in errors
            assert "Traceback" not in errors
            run_experiment(parse_experiment(data), folder, resume=True)
        held = (folder / "held-by.json").exists()
        assert held == (number == signal.SIGKILL)


CHATTY = """
class Chatty:
    def __init__(self):
        self.texts = []
    def add(self, text):
        self.texts.append(f"Ice is cold ({len(self.texts)}).")
    def search(self, query, k):
        return self.texts[-k:]
"""


class Notes(Progress):
    """Keeps what a run says."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def note(self, text: str) -> None:
        self.texts.append(text)


@pytest.mark.integration
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_says_once_what_the_planner_cannot_read(tmp_path: Path, jobs: int, capfd: Any) -> None:
    (tmp_path / "mine.py").write_text(CHATTY, "utf-8")
    agents = {
        "memory": {"store": {"store": PartFile(str(tmp_path / "mine.py"), "Chatty").pin().text}},
        "verifier": ["none", "overwrite"],
        "policy": "planner",
    }
    data = {"name": "notes", "schedules": ["frozen_lake/explicit"], "agents": agents, "seeds": 2, "rounds": 1}
    notes = Notes()
    run_experiment(parse_experiment(data), tmp_path / "run", jobs=jobs, progress=notes)
    (told,) = (text for text in notes.texts if "notes for language models" in text)
    assert re.match("warning: .*: the memory service has rewritten [0-9]+ records", told)
    assert "language models" not in "".join(capfd.readouterr()), "no warning of a process beside the note"
