"""Lines are the system's at once, and on disk within half a second or when the file is closed."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from drift_agents.errors import ExperimentError
from drift_agents.experiment import appended_file
from drift_agents.experiment.appended_file import SYNC_SECONDS, AppendedFile
from drift_agents.experiment.logs import CellLog

from tests.processes import wait_until


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The size of the file at every call of `fsync`."""
    sizes: list[int] = []

    def note(number: int) -> None:
        sizes.append(os.fstat(number).st_size)

    monkeypatch.setattr(appended_file.os, "fsync", note)
    return sizes


def wait_for(sizes: list[int], count: int) -> None:
    assert wait_until(lambda: len(sizes) >= count)
    assert len(sizes) == count


def test_half_a_second_is_the_most(synced: list[int], tmp_path: Path) -> None:
    assert SYNC_SECONDS < 0.5
    file = AppendedFile(tmp_path / "file")
    for _ in range(100):
        file.append(b"line")
        assert (tmp_path / "file").read_bytes().endswith(b"line\n")  # before anything is synced
    wait_for(synced, 1)  # without another line, and without `close`
    assert synced == [500]
    file.append(b"line")
    wait_for(synced, 2)
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
    with CellLog(tmp_path / "cell") as log:
        log.write(b"{}")
    assert synced == [3]


@pytest.mark.parametrize("then", ["append", "close"])
def test_a_disk_that_fails_later_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, then: str) -> None:
    calls = []

    def fail(number: int) -> None:
        calls.append(number)
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(appended_file.os, "fsync", fail)

    def play() -> None:
        with CellLog(tmp_path / "cell") as log:
            log.write(b"{}")
            wait_for(calls, 1)
            if then == "append":
                log.write(b"{}")

    with pytest.raises(ExperimentError, match="cell: cannot be written: Input/output error"):
        play()
