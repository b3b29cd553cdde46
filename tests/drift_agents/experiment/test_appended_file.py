"""Lines are the system's at once, and on disk within half a second or when the file is closed."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest
from drift_agents.errors import ExperimentError
from drift_agents.experiment import appended_file
from drift_agents.experiment.appended_file import SYNC_SECONDS, AppendedFile
from drift_agents.experiment.cell_files import CellLog, name_line

from tests.processes import wait_until


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The size of the file at every call of `fsync`."""
    sizes: list[int] = []

    def note(number: int) -> None:
        sizes.append(os.fstat(number).st_size)

    monkeypatch.setattr(appended_file.os, "fsync", note)
    return sizes


class HandTimer:
    """A `threading.Timer` that runs out when the test calls `run_out`, not by the clock."""

    started: ClassVar[list[HandTimer]] = []

    def __init__(self, seconds: float, call: Callable[[], None]) -> None:
        self.seconds, self.run_out = seconds, call

    def start(self) -> None:
        self.started.append(self)


def test_half_a_second_is_the_most(synced: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[HandTimer] = []
    monkeypatch.setattr(HandTimer, "started", started)
    monkeypatch.setattr(appended_file, "Timer", HandTimer)
    file = AppendedFile(tmp_path / "file")
    for _ in range(100):
        file.append(b"line")
        assert (tmp_path / "file").read_bytes().endswith(b"line\n")  # before anything is synced
    (first,) = started
    assert first.seconds == SYNC_SECONDS < 0.5
    assert not synced
    first.run_out()  # without another line, and without `close`
    assert synced == [500]
    file.append(b"line")
    _, second = started
    second.run_out()
    assert synced == [500, 505]
    file.close()
    assert synced == [500, 505]  # nothing was left


def test_close_leaves_nothing_behind(synced: list[int], tmp_path: Path) -> None:
    file = AppendedFile(tmp_path / "file")
    file.append(b"line")
    file.close()
    file.close()
    assert synced == [5]


def test_a_cell_is_on_disk_when_it_is_closed(synced: list[int], tmp_path: Path) -> None:
    with CellLog(tmp_path, "cell") as log:
        log.write(b"{}")
    assert synced == [len(name_line("cell")) + 1 + 3]


@pytest.mark.parametrize("then", ["append", "close"])
def test_a_disk_that_fails_later_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, then: str) -> None:
    calls = []

    def fail(number: int) -> None:
        calls.append(number)
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(appended_file.os, "fsync", fail)

    def play() -> None:
        with CellLog(tmp_path, "cell") as log:
            log.write(b"{}")
            assert wait_until(lambda: calls)
            if then == "append":
                log.write(b"{}")

    with pytest.raises(ExperimentError, match=r"0\.jsonl: cannot be written: Input/output error"):
        play()
