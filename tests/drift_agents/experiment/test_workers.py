"""Cells in processes of this machine."""

from __future__ import annotations

import importlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Event

import pytest
from drift_agents.errors import ExperimentError, StoppedError, UnknownNameError
from drift_agents.experiment.loader import load_experiment
from drift_agents.experiment.workers import Processes, Threads, play_in_pool
from drift_agents.interruption import interruptible, one_process, stopped_by_signals, uninterrupted
from drift_agents.llm.service import Service

from tests.processes import is_alive, wait_until

pytestmark = pytest.mark.integration


def test_an_error_of_a_process_is_the_calls_own() -> None:
    with pytest.raises(UnknownNameError, match="nowhere"):
        list(play_in_pool(Processes(2), load_experiment, [("nowhere",), ("nowhere",)], 2))


def fork() -> int:
    """What a part may do that is no part of its work: its child returns too."""
    with one_process():
        os.fork()
        return os.getpid()


def test_a_child_that_returns_ends_alone() -> None:
    assert len(set(play_in_pool(Processes(1), fork, [()] * 3, 1))) == 1


def kill_once(folder: Path, name: str) -> str:
    mark = folder / name
    if name == "b" and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return name


def test_what_a_killed_process_was_at_is_done_again(tmp_path: Path) -> None:
    calls = [(tmp_path, name) for name in "abcde"]
    assert sorted(play_in_pool(Processes(2), kill_once, calls, 2)) == list("abcde")


def end_by(number: int) -> None:
    if number == 3:
        os._exit(number)
    os.kill(os.getpid(), number)


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (signal.SIGKILL, "a process was killed, .* with --jobs"),
        (signal.SIGABRT, "a process ended by SIGABRT"),
        (3, "a process exited with 3"),
    ],
)
def test_processes_that_always_end_stop_the_run(number: int, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("drift_agents.experiment.workers.MOST_LOST", 1)  # a start takes half a second
    with pytest.raises(ExperimentError, match=rf"workers were lost 2 times in a row: {reason}"):
        list(play_in_pool(Processes(1), end_by, [(number,)], 1))


def import_names() -> list[str]:
    return [importlib.import_module(name).__file__ or "" for name in ("queue", "token", "imaplib")]


def test_no_file_of_the_current_folder_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("queue", "token", "random", "numpy", "sitecustomize", "imaplib", "drift_agents"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(7)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [folder for folder in map(os.path.abspath, sys.path) if folder != str(tmp_path)])
    (files,) = play_in_pool(Processes(1), import_names, [()], 1)
    assert not any(file.startswith(str(tmp_path)) for file in files)


def start_child() -> tuple[int, str]:
    return subprocess.Popen(["sleep", "60"]).pid, sys.stdin.read()


@pytest.mark.skipif(sys.platform != "linux", reason="processes are listed in /proc")
def test_programs_that_a_call_starts_end_with_its_worker() -> None:
    ((child, text),) = play_in_pool(Processes(1), start_child, [()], 1)
    assert text == ""  # not the terminal's
    assert wait_until(lambda: not is_alive(child), 5)


def hold_or_fail(mark: Path, holds: bool) -> None:
    if not holds:
        assert wait_until(mark.exists)
        raise ValueError("failed")
    mark.touch()
    re.match("(a+)+$", "a" * 40 + "b")  # runs for hours and lets no other thread run


def test_a_call_that_lets_no_thread_run_ends_with_the_run(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="failed"):
        list(play_in_pool(Processes(2), hold_or_fail, [(tmp_path / "on", True), (tmp_path / "on", False)], 2))


def test_an_interruption_waits_for_a_result_to_be_kept() -> None:
    """The exception comes once, at the end of the work that it would have torn, or where the program waits."""
    done: list[str] = []

    def stop(*, within_wait: bool) -> None:
        with uninterrupted():
            signal.raise_signal(signal.SIGTERM)
            done.append("kept")
            if within_wait:
                with interruptible():
                    done.append("never")

    for within_wait in (False, True):
        with stopped_by_signals():
            with pytest.raises(KeyboardInterrupt):
                stop(within_wait=within_wait)
            signal.raise_signal(signal.SIGINT)
            done.append("cleaned up")
    assert done == ["kept", "cleaned up"] * 2
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_a_signal_that_is_ignored_stays_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `nohup` has it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stopped_by_signals():
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) != signal.SIG_DFL
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_an_interruption_waits_half_a_second_for_pending_requests() -> None:
    answered = Event()
    playing = play_in_pool(Threads(Service()), answered.wait, [(0.0,), (60.0,)], 2)
    next(playing)
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        playing.throw(KeyboardInterrupt())  # type: ignore[attr-defined]
    assert 0.4 < time.monotonic() - begun < 3
    answered.set()


def test_a_cell_that_fails_stops_the_requests_of_the_others() -> None:
    service, sent, has_begun, has_failed = Service(), list[int](), Event(), Event()

    def play(cell: int) -> int:
        if cell == 1:
            has_begun.set()
            assert has_failed.wait(10)
            assert service.stopped.wait(10)
            raise StoppedError("not sent")
        sent.append(cell)
        if cell == 0:
            assert has_begun.wait(10)
            has_failed.set()
            raise ExperimentError("wrong key")
        return cell

    with pytest.raises(ExperimentError, match="wrong key"):
        list(play_in_pool(Threads(service), play, [(cell,) for cell in range(4)], 2))
    assert sent == [0]
