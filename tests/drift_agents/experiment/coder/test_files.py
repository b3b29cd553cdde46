"""Folders that an agent could write to: no link is followed, and nothing else stands in the way."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

import pytest
from drift_agents.experiment.coder.files import DEEPEST, FoundFile, copy_files, measure_size, remove_folder, walk


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder that an agent may not touch by way of ours."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "precious").write_text("secret")
    return folder


def fill(folder: Path, outside: Path) -> None:
    """What an agent can leave in a folder."""
    (folder / "notes").mkdir(parents=True)
    (folder / "notes/today.md").write_text("bolitu")
    (folder / "tool").write_bytes(b"\x00\xff")
    (folder / "tool").chmod(0o755)
    (folder / "link").symlink_to(outside)
    (folder / "notes/file-link").symlink_to(outside / "precious")
    (folder / "loop").symlink_to(folder)
    os.mkfifo(folder / "pipe")


def test_only_files_are_found_in_order(tmp_path: Path, outside: Path) -> None:
    fill(tmp_path / "work", outside)
    assert [file.path for file in walk(tmp_path / "work")] == ["notes/today.md", "tool"]


def test_a_folder_that_is_a_link_is_empty(tmp_path: Path, outside: Path) -> None:
    (tmp_path / "work").symlink_to(outside)
    assert list(walk(tmp_path / "work")) == []


def test_a_copy_has_contents_and_the_right_to_execute_and_no_link(tmp_path: Path, outside: Path) -> None:
    fill(tmp_path / "work", outside)
    copy_files(tmp_path / "work", tmp_path / "copy", lambda path: path != "notes")
    assert [path.name for path in (tmp_path / "copy").iterdir()] == ["tool"]
    assert (tmp_path / "copy/tool").read_bytes() == b"\x00\xff"
    assert os.access(tmp_path / "copy/tool", os.X_OK)


@pytest.mark.integration
def test_deleting_leaves_what_links_point_to(tmp_path: Path, outside: Path) -> None:
    fill(tmp_path / "work", outside)
    (tmp_path / "work/notes").chmod(0)
    (tmp_path / "to-folder").symlink_to(outside)
    remove_folder(tmp_path / "work")
    remove_folder(tmp_path / "to-folder")
    remove_folder(tmp_path / "to-folder")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["outside"]
    assert (outside / "precious").read_text() == "secret"


def put_deep_file(folder: Path, depth: int, name: str) -> None:
    """Put an empty file below so many folders, each in the one before, whatever the length of the path."""
    descriptor = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=descriptor)
        below = os.open(name, os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(os.open("file", os.O_CREAT, dir_fd=descriptor))
    os.close(descriptor)


@pytest.mark.integration
def test_a_folder_as_deep_as_one_likes_is_walked_in_part_and_deleted(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "file").write_text("x")
    put_deep_file(work, 1500, "d" * 20)  # deeper than Python's limit of recursion, and longer than a path may be
    assert DEEPEST < 1500
    assert [file.path for file in walk(work)] == ["file"]
    remove_folder(work)
    assert not work.exists()


def test_a_size_is_that_of_the_files_and_counting_ends_above_the_bound(tmp_path: Path, outside: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 10_000)
    (tmp_path / "b").write_bytes(b"")
    assert measure_size([tmp_path], 2**20) == 10_000 + 2 * 4096
    assert measure_size([tmp_path], 100) == 10_000
    with open(tmp_path / "sparse", "wb") as file:
        file.truncate(2**34)
    assert measure_size([tmp_path], 2**20) > 2**34


def test_what_cannot_be_read_or_has_too_long_a_path_is_no_reason_to_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "work").mkdir()
    for name in ("closed", "open"):
        (tmp_path / "work" / name).write_text("x")
    put_deep_file(tmp_path / "work", DEEPEST - 1, "d" * 200)  # as a whole longer than the system takes
    opened = FoundFile.open

    def open_or_refuse(file: FoundFile) -> BinaryIO:
        if file.path == "closed":  # the tests may run as a user who can read everything
            raise PermissionError(13, "Permission denied")
        return opened(file)

    monkeypatch.setattr(FoundFile, "open", open_or_refuse)
    copy_files(tmp_path / "work", tmp_path / "copy")
    assert [path.name for path in (tmp_path / "copy").iterdir()] == ["open"]
