"""Runs in object stores, by fsspec's file systems in memory and on disk: resumed, taken over, reported."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from drift_agents.cli.app import main
from drift_agents.errors import ExperimentError, MissingDependencyError
from drift_agents.experiment import remote
from drift_agents.experiment.loader import parse_experiment
from drift_agents.experiment.remote import RemoteFolder, open_run, run_remote_experiment
from drift_agents.experiment.runner import Silent, run_experiment

from tests.extras.short_run import make_data
from tests.processes import wait_until

fsspec = pytest.importorskip("fsspec", reason="needs the extra `remote`")


@pytest.fixture(params=["memory", "file"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Of a run that is not there yet, in memory and on disk."""
    if request.param == "file":
        yield f"file://{tmp_path}/store/run"
        return
    yield "memory://bucket/run"
    fsspec.filesystem("memory").store.clear()


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "STORE_SECONDS", 0.05)


class Breaking(Silent):
    """Stops the run after so many cells."""

    def __init__(self, cells: int, do: Callable[[], None]) -> None:
        self._left, self._do = cells, do

    def advance(self, schedule: str, episodes: int) -> None:
        if not episodes:
            return  # what was done before
        self._left -= 1
        if self._left == 0:
            self._do()


def interrupt() -> None:
    raise KeyboardInterrupt


def test_a_run_is_stored_as_it_would_be_in_a_folder(address: str, tmp_path: Path) -> None:
    experiment = parse_experiment(make_data(tmp_path))
    run_experiment(experiment, tmp_path / "here", trace="all")
    assert run_remote_experiment(experiment, address, trace="all") == f"{address}/episodes.jsonl"
    folder = RemoteFolder(address)
    here = {path.relative_to(tmp_path / "here").as_posix(): path for path in (tmp_path / "here").rglob("*.*")}
    lines = {name for name in folder.names() if name.startswith("cells/")}
    assert set(folder.names()) - lines == set(here) - {"cells/0.jsonl"}
    for name, path in here.items():
        assert name == "cells/0.jsonl" or folder.read(name) == path.read_bytes()
    stored = b"".join(folder.read(name) or b"" for name in sorted(lines))
    assert stored == (tmp_path / "here" / "cells" / "0.jsonl").read_bytes()


def test_an_interrupted_run_goes_on_from_the_store(address: str, tmp_path: Path) -> None:
    experiment = parse_experiment(make_data(tmp_path))
    whole = run_experiment(experiment, tmp_path / "whole").read_bytes()
    with pytest.raises(KeyboardInterrupt):
        run_remote_experiment(experiment, address, progress=Breaking(5, interrupt))
    folder = RemoteFolder(address)
    cells = {name: folder.read(name) for name in folder.names() if name.startswith("cells/")}
    assert len(finished := (folder.read("finished.jsonl") or b"").splitlines()) == 5
    assert sum(lines.count(b'{"cell": ') for lines in cells.values() if lines) == len(finished)
    assert "episodes.jsonl" not in folder.names()
    assert "held-by.json" not in folder.names()
    with pytest.raises(ExperimentError, match=f"{address}: holds a run already"):
        run_remote_experiment(experiment, address)
    run_remote_experiment(experiment, address, resume=True)
    assert folder.read("episodes.jsonl") == whole
    assert {name: folder.read(name) for name in cells} == cells


def test_a_finished_cell_that_was_changed_is_refused(address: str, tmp_path: Path) -> None:
    experiment = parse_experiment(make_data(tmp_path, seeds=1))
    run_remote_experiment(experiment, address)
    folder = RemoteFolder(address)
    whole = folder.read("episodes.jsonl")
    name = next(name for name in folder.names() if name.startswith("cells/"))
    content = folder.read(name) or b""
    folder.write(name, content.replace(b'"steps": ', b'"steps": 1'))
    with pytest.raises(ExperimentError, match=f"{address}/cells: .* is not what the run wrote"):
        run_remote_experiment(experiment, address, resume=True)
    run_remote_experiment(experiment, address, fresh=True)
    assert folder.read("episodes.jsonl") == whole


def test_a_cell_that_was_half_stored_is_played_again(address: str, tmp_path: Path) -> None:
    """The list of finished cells is written after them, so that it never names one that is missing."""
    experiment = parse_experiment(make_data(tmp_path, seeds=1))
    run_remote_experiment(experiment, address)
    folder = RemoteFolder(address)
    whole = folder.read("episodes.jsonl")
    finished = (folder.read("finished.jsonl") or b"").splitlines(keepends=True)
    name = sorted(name for name in folder.names() if name.startswith("cells/"))[-1]
    content = folder.read(name) or b""
    cells = content.count(b'{"cell": ')
    folder.write(name, content[: len(content) // 2])
    folder.write("finished.jsonl", b"".join(finished[:-cells]))
    folder.remove(["episodes.jsonl"])
    run_remote_experiment(experiment, address, resume=True)
    assert folder.read("episodes.jsonl") == whole
    assert (folder.read("finished.jsonl") or b"").splitlines(keepends=True) == finished


def test_the_run_that_began_first_stops(address: str, tmp_path: Path) -> None:
    experiment = parse_experiment(make_data(tmp_path, seeds=1))
    folder = RemoteFolder(address)
    other = json.dumps({"pid": 7, "host": "elsewhere", "since": "2030-01-01T00:00:00+00:00"}).encode()

    class Overtaken(Silent):
        def advance(self, schedule: str, episodes: int) -> None:
            folder.write("held-by.json", other)
            # the thread that stores ends when it reads of the other run
            assert wait_until(lambda: all(thread.name != "store" for thread in threading.enumerate()))

    message = f"{address}: another run has begun there: process 7 on elsewhere, since 2030-01-01"
    with pytest.raises(ExperimentError, match=message):
        run_remote_experiment(experiment, address, progress=Overtaken())
    assert folder.read("held-by.json") == other
    assert "episodes.jsonl" not in folder.names()


def test_what_cannot_be_stored_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = parse_experiment(make_data(tmp_path, seeds=1))
    whole = run_experiment(experiment, tmp_path / "whole").read_bytes()
    notes: list[str] = []

    def fail(*_: Any, **__: Any) -> None:
        raise PermissionError("the key has expired")

    class Noting(Breaking):
        def note(self, text: str) -> None:
            notes.append(text)

    file_system = type(fsspec.filesystem("file"))
    progress = Noting(1, lambda: monkeypatch.setattr(file_system, "put_file", fail))
    with pytest.raises(ExperimentError, match=r"cannot be used: PermissionError: the key has expired") as caught:
        run_remote_experiment(experiment, f"file://{tmp_path}/store", progress=progress)
    assert caught.value.is_resumable
    kept = Path(notes[-1].partition(" kept in ")[2].partition(",")[0])
    assert (kept / "episodes.jsonl").read_bytes() == whole


def test_a_folder_without_a_run_is_left_alone(address: str, tmp_path: Path) -> None:
    folder = RemoteFolder(address)
    folder.write("thesis.tex", b"precious")
    for how in ({}, {"fresh": True}, {"resume": True}):
        with pytest.raises(ExperimentError, match=f"{address}: is not empty and holds no run"):
            run_remote_experiment(parse_experiment(make_data(tmp_path)), address, **how)
    assert folder.names() == ["thesis.tex"]


def test_commands_read_from_the_store_and_write_there(address: str, tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "tiny.yaml"
    file.write_text(json.dumps(make_data(tmp_path, seeds=1)))
    assert main(["run", str(file), "--out", address, "--jobs", "1", "--trace", "all"]) == 0
    assert f"{address}/report.md" in "".join(capsys.readouterr().out.split())
    folder = RemoteFolder(address)
    report = folder.read("report.md")
    folder.remove(["report.md"])
    assert main(["report", address]) == 0
    assert folder.read("report.md") == report
    assert main(["leaderboard", address, "--out", str(tmp_path / "board.md")]) == 0
    assert (tmp_path / "board.md").exists()
    capsys.readouterr()
    assert main(["inspect", address]) == 0
    assert capsys.readouterr().out.startswith(f"wrote {address}/inspect.html (")
    assert b"<html" in (folder.read("inspect.html") or b"")
    assert main(["report", f"{address}-elsewhere"]) == 1
    assert f"{address}-elsewhere: holds no run, run.json is missing" in capsys.readouterr().err


def test_a_killed_run_goes_on_from_the_store(tmp_path: Path) -> None:
    data = make_data(tmp_path, seeds=60)
    file, store = tmp_path / "tiny.yaml", tmp_path / "store"
    file.write_text(json.dumps(data))
    start = "import sys; from drift_agents.experiment import remote; remote.STORE_SECONDS = 0.05\n"
    start += "from drift_agents.cli.app import main; sys.exit(main())"
    words = ["run", str(file), "--out", f"file://{store}", "--jobs", "1"]
    process = subprocess.Popen([sys.executable, "-c", start, *words], stderr=subprocess.PIPE, text=True)
    finished = store / "finished.jsonl"
    assert wait_until(lambda: (finished.exists() and finished.stat().st_size > 0) or process.poll() is not None, 120)
    assert process.poll() is None, process.communicate()[1]
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert not (store / "episodes.jsonl").exists()
    assert (store / "held-by.json").exists()
    notes: list[str] = []

    class Noting(Silent):
        def note(self, text: str) -> None:
            notes.append(text)

    experiment = parse_experiment(data)
    run_remote_experiment(experiment, f"file://{store}", resume=True, jobs=2, progress=Noting())
    assert notes == [notes[0]]
    assert f"process {process.pid} on " in notes[0]
    whole = run_experiment(experiment, tmp_path / "whole", jobs=2)
    assert (store / "episodes.jsonl").read_bytes() == whole.read_bytes()


def test_addresses_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match=r"nowhere://bucket/run: is no address that fsspec knows"):
        RemoteFolder("nowhere://bucket/run")
    with pytest.raises(MissingDependencyError, match=r"s3://bucket/run: .*s3fs"):
        RemoteFolder("s3://bucket/run")


def test_a_local_folder_is_read_where_it_is(tmp_path: Path) -> None:
    with open_run(tmp_path) as path:
        assert path == tmp_path
