"""Files that commands write: whole or not at all, and the name of the one that cannot be written."""

from __future__ import annotations

import errno
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from drift_envs.cli import main
from drift_envs.errors import StateError
from drift_envs.utils.files import write_whole

COMMANDS = {
    "record-gif": ["record", "DriftMountainCar-v0", "--phases", "1", "--out", "OUT.gif"],
    "record-png": ["record", "DriftMountainCar-v0", "--phases", "1", "--out", "OUT.png"],
    "plot": ["plot", "frozen_lake/thaw", "--out", "OUT.png"],
    "new-schedule": ["new-schedule", "DriftFrozenLake-v0", "--out", "OUT.yaml"],
}


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """No file can be longer than this."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk_is_told_with_the_file_and_leaves_nothing(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [word.replace("OUT", str(tmp_path / "out" / "mine")) for word in COMMANDS[name]]
    with full_disk(300):
        status = main(words)
    shown = capsys.readouterr().err
    assert status == 1, shown
    assert f"{words[-1]}: cannot be written: File too large" in shown
    assert list((tmp_path / "out").iterdir()) == []


def test_what_was_there_stays_until_the_new_file_is_complete(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("before")

    def fail(error: Exception) -> None:
        with write_whole(file) as part:
            part.write_text("half")
            raise error

    with pytest.raises(StateError, match=r"a\.txt: cannot be written: no"):
        fail(OSError(errno.EIO, "no"))
    with pytest.raises(ZeroDivisionError):
        fail(ZeroDivisionError())
    assert file.read_text() == "before"
    with write_whole(file) as part:
        part.write_text("after")
    assert file.read_text() == "after"
    assert [one.name for one in tmp_path.iterdir()] == ["a.txt"]


def test_links_are_followed_and_stay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "link.yaml").symlink_to(tmp_path / "real.yaml")
    assert main(["new-schedule", "DriftFrozenLake-v0", "--out", str(tmp_path / "link.yaml")]) == 0
    assert (tmp_path / "link.yaml").is_symlink()
    assert (tmp_path / "real.yaml").is_file()
    assert main(["new-schedule", "DriftFrozenLake-v0", "--out", str(tmp_path / "link.yaml")]) == 1
    (tmp_path / "broken").symlink_to(tmp_path / "no" / "folder")
    capsys.readouterr()
    for place in ("broken", "broken/a.png", "real.yaml/a.png"):
        assert main(["plot", "frozen_lake/thaw", "--out", str(tmp_path / place)]) == 1
        assert "File exists" not in capsys.readouterr().err
    assert (tmp_path / "broken").is_symlink()
