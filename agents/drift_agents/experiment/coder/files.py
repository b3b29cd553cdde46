"""Folders that an agent could write to: measured, read, copied and deleted without following a link.

A symbolic link counts as absent, as does what lies deeper than `DEEPEST` folders or has a path of more than
`LONGEST_PATH` bytes, what cannot be read, and everything that is neither a file nor a folder.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess  # nosec B404
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from drift_agents.errors import ExperimentError

DEEPEST, LONGEST_PATH = 40, 800  # the system takes 1,024 bytes or more, with the folder before it
_BLOCK = 4096
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK  # a named pipe would wait for a writer


class FoundFile(NamedTuple):
    """A file that a walk has come to.

    Args:
        path: its path in the folder, with `/`.
        size: in bytes.
        mode: its permissions.
        parent: the descriptor of its folder, open until the walk goes on.
    """

    path: str
    size: int
    mode: int
    parent: int | None

    def open(self) -> BinaryIO:
        """Open it for reading."""
        return open(os.open(os.path.basename(self.path), _FILE, dir_fd=self.parent), "rb")


def walk(folder: Path, is_wanted: Callable[[str], bool] = lambda path: True) -> Iterator[FoundFile]:
    """The files of a folder, in the order of their names.

    Args:
        folder: the folder; one that is missing or a link has no files.
        is_wanted: whether a file, or a folder with all that it holds, is visited, by its path.
    """
    yield from _walk(str(folder), None, "", is_wanted, DEEPEST)


def _walk(
    name: str, parent: int | None, path: str, is_wanted: Callable[[str], bool], depth: int
) -> Iterator[FoundFile]:
    with suppress(OSError):  # it was deleted meanwhile, or cannot be read
        about = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if stat.S_ISREG(about.st_mode) and path:
            yield FoundFile(path, about.st_size, stat.S_IMODE(about.st_mode), parent)
        elif stat.S_ISDIR(about.st_mode) and depth >= 0:
            folder = os.open(name, _FOLDER, dir_fd=parent)
            try:
                for below in sorted(os.listdir(folder)):
                    inner = os.path.join(path, below)
                    if len(os.fsencode(inner)) <= LONGEST_PATH and is_wanted(inner):
                        yield from _walk(below, folder, inner, is_wanted, depth - 1)
            finally:
                os.close(folder)


def measure_size(folders: Sequence[Path], most: int) -> int:
    """The bytes of some folders together; a file counts as at least a block. Counting ends above the bound."""
    size = 0
    for folder in folders:
        for file in walk(folder):
            size += max(file.size, _BLOCK)
            if size > most:
                return size
    return size


def read_files(folder: Path, is_wanted: Callable[[str], bool], most: int, ending: str = "") -> dict[str, str]:
    """The texts of a folder's files by path, those whose names have an ending.

    Args:
        folder: as `walk` takes it.
        is_wanted: as `walk` takes it.
        most: bytes, all texts together; a file that would exceed them is left out.
        ending: of the names.
    """
    found: dict[str, str] = {}
    for file in walk(folder, is_wanted):
        most_left = most - sum(map(len, found.values()))
        if file.path.endswith(ending) and file.size <= most_left:
            with suppress(OSError), file.open() as opened:
                text = opened.read(most_left).decode(errors="replace")
                found[file.path.encode(errors="replace").decode()] = text
    return found


def copy_files(source: Path, target: Path, is_wanted: Callable[[str], bool] = lambda path: True) -> None:
    """Copy the files of a folder into another one, which nobody else can write to.

    Raises:
        ExperimentError: if a file cannot be written.
    """
    try:
        target.mkdir(parents=True, exist_ok=True)
        for file in walk(source, is_wanted):
            path = target / file.path
            try:
                read = file.open()
            except OSError:
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            with read, open(path, "wb") as written:
                shutil.copyfileobj(read, written)
            path.chmod(0o700 if file.mode & 0o100 else 0o600)
    except OSError as error:
        raise ExperimentError(f"{error.filename or target}: cannot be written: {error.strerror}") from error


def remove_folder(path: Path) -> None:
    """Delete a folder, a file or a link, whatever it holds and however deep it is.

    Raises:
        ExperimentError: if it cannot be deleted.
    """
    if not os.path.lexists(path):
        return
    with suppress(OSError, RecursionError):  # rights were taken away, or it is too deep
        (shutil.rmtree if path.is_dir() and not path.is_symlink() else os.unlink)(path)
        return
    # These programs follow no link either, and have no limit of depth.
    if not path.is_symlink():
        subprocess.run(["chmod", "-R", "u+rwx", "--", path], capture_output=True, check=False)  # nosec B603 B607
    done = subprocess.run(["rm", "-rf", "--", path], capture_output=True, check=False)  # nosec B603 B607
    if done.returncode:
        raise ExperimentError(f"{path}: cannot be deleted: {done.stderr.decode(errors='replace').strip()[-200:]}")
