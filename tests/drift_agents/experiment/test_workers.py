"""Cells in processes of this machine."""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path
from threading import Event

import pytest
from drift_agents.errors import ExperimentError, StoppedError, UnknownNameError
from drift_agents.experiment.loader import load_experiment
from drift_agents.experiment.workers import Processes, play_in_pool, play_in_threads
from drift_agents.llm.service import Service

pytestmark = pytest.mark.integration


def test_an_error_of_a_process_is_the_calls_own() -> None:
    with pytest.raises(UnknownNameError, match="nowhere"):
        list(play_in_pool(Processes(2), load_experiment, [("nowhere",), ("nowhere",)], 2))


def test_what_cells_leave_behind_is_not_searched_for_garbage_again() -> None:
    """The workers' caches grow large, and joblib has garbage collected every second."""
    frozen = list(play_in_pool(Processes(2), gc.get_freeze_count, [()] * 6, 2))
    assert max(frozen) > 10_000


def test_what_a_killed_process_was_at_is_done_again(tmp_path: Path) -> None:
    def play(name: str) -> str:
        mark = tmp_path / name
        if name == "b" and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return name

    assert sorted(play_in_pool(Processes(2), play, [(name,) for name in "abcde"], 2)) == list("abcde")


def test_processes_that_are_always_killed_stop_the_run() -> None:
    def play() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(
        ExperimentError, match=r"workers were lost 4 times in a row: a process was killed, .* with --jobs"
    ):
        list(play_in_pool(Processes(2), play, [()] * 2, 2))


def test_a_cell_that_fails_stops_the_requests_of_the_next_one() -> None:
    """The thread begins the next cell at once, before the caller learns of the failure."""

    class Stoppable(Service):
        is_stopped = False

        def stop(self) -> None:
            self.is_stopped = True

    service, sent, is_over = Stoppable(), list[int](), Event()

    def play(cell: int) -> int:
        if cell == 3:
            is_over.set()
        if service.is_stopped:
            raise StoppedError("not sent")
        sent.append(cell)
        if cell == 1:
            raise ExperimentError("wrong key")
        return cell

    playing = play_in_threads(range(4), 1, service, play)
    assert next(playing) == 0
    assert is_over.wait(10)  # the caller does something else meanwhile
    with pytest.raises(ExperimentError, match="wrong key"):
        list(playing)
    assert sent == [0, 1]
