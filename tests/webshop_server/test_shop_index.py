"""The index beside a catalogue: built once, continued, shared, damaged."""

from __future__ import annotations

import fcntl
import json
import shutil
import threading

import numpy as np
import pytest

from webshop_server import index, index_builder
from webshop_server.catalogue import Catalogue, get_partial_path
from webshop_server.errors import CatalogueError
from webshop_server.generate import generate
from webshop_server.index import get_index_path, open_index
from webshop_server.inventory import Inventory

QUERIES = ("cotton shirt", "lamp", "chocolate bar with nuts", "red")


def read_files(path):
    return {part.name: part.read_bytes() for part in get_index_path(path).iterdir()}


@pytest.fixture
def path(catalogue_path, tmp_path):
    """A catalogue without an index."""
    return shutil.copy(catalogue_path, tmp_path / "a.sqlite")


def test_the_index_is_mapped_and_opened_again(path, inventory):
    built, opened = open_index(Catalogue(path)), open_index(Catalogue(path))
    assert isinstance(opened.text._postings.listings.base, np.memmap)
    for query in QUERIES:
        assert built.text.search(query) == opened.text.search(query) == list(inventory.find(query))
    assert sorted(file.name for file in path.parent.iterdir()) == ["a.sqlite", "a.sqlite.index"]


def test_generate_builds_it(tmp_path):
    catalogue = generate(tmp_path / "a.sqlite", 50)
    before = read_files(catalogue.path)
    assert open_index(catalogue).text.search("shirt")
    assert read_files(catalogue.path) == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.sqlite", "a.sqlite.index"]


class Stop(BaseException):
    """Stands for a kill."""


def stop_after(count, function):
    """Return a function that raises instead of its call of a number."""
    calls = iter(range(count))

    def work(*arguments, **keywords):
        if next(calls, None) is None:
            raise Stop
        return function(*arguments, **keywords)

    return work


@pytest.mark.parametrize(
    ("owner", "name", "calls", "left"),
    [
        (index_builder._Builder, "add", 0, 400),
        (index_builder._Builder, "add", 250, 200),
        (index_builder.np, "savez", 2, 200),
        (index_builder.os, "replace", 2, 200),
        (index_builder._Builder, "_merge", 0, 0),
        (index_builder._Builder, "_write_goals", 0, 0),
        (index_builder.os, "replace", 4, 0),  # after four segments that of the mark
        (index_builder.os, "replace", 5, 0),  # and that of the folder
    ],
)
def test_an_interrupted_build_is_continued(path, monkeypatch, owner, name, calls, left):
    monkeypatch.setattr(index_builder, "_SEGMENT", 100)
    whole = path.with_name("whole.sqlite")
    shutil.copy(path, whole)
    open_index(Catalogue(whole))
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, stop_after(calls, getattr(owner, name)))
        with pytest.raises(Stop):
            open_index(Catalogue(path))
    added = []
    add = index_builder._Builder.add
    monkeypatch.setattr(index_builder._Builder, "add", lambda self, row: added.append(row) or add(self, row))
    open_index(Catalogue(path))
    assert len(added) == left
    assert read_files(path) == read_files(whole)


@pytest.mark.parametrize("stage", ["add", "_merge"])
def test_an_interrupted_generate_is_continued(tmp_path, monkeypatch, stage):
    path, whole = tmp_path / "a.sqlite", tmp_path / "whole.sqlite"
    generate(whole, 300)
    with monkeypatch.context() as patch:
        patch.setattr(index_builder._Builder, stage, stop_after(0, getattr(index_builder._Builder, stage)))
        with pytest.raises(Stop):
            generate(path, 300)
    with pytest.raises(CatalogueError, match=r"there is no catalogue at .*still being written"):
        Catalogue(path)
    assert get_partial_path(path).exists()
    assert list(generate(path, 300)) == list(Catalogue(whole))
    assert read_files(path) == read_files(whole)
    assert len(generate(path, 20)) == 20  # other arguments start afresh


def test_a_killed_generate_continues_in_the_middle(tmp_path, monkeypatch):
    from webshop_server import catalogue
    from webshop_server import generate as generating

    monkeypatch.setattr(generating, "_BATCH", 100)
    with monkeypatch.context() as patch:
        patch.setattr(catalogue.CatalogueWriter, "add", stop_after(2, catalogue.CatalogueWriter.add))
        with pytest.raises(Stop):
            generate(tmp_path / "a.sqlite", 300)
    assert list(generate(tmp_path / "a.sqlite", 300)) == list(generate(tmp_path / "whole.sqlite", 300))


def test_an_index_of_another_catalogue_is_made_again(path):
    expected = open_index(Catalogue(path)).text.search("shirt")
    mark = get_index_path(path) / "mark.json"
    own = mark.read_text()
    for text in (json.dumps({"version": 1, "fingerprint": "other", "size": 3}), "{", "[]"):
        mark.write_text(text)
        assert open_index(Catalogue(path)).text.search("shirt") == expected
        assert mark.read_text() == own, "the one beside the catalogue, for the next process too"
        assert sorted(file.name for file in path.parent.iterdir()) == ["a.sqlite", "a.sqlite.index"]


@pytest.mark.parametrize("name", ["norms.npy", "vocabulary.json", "starts.npy", "listings.npy", "goals_human_ends.npy"])
def test_a_damaged_index_is_reported(path, name):
    open_index(Catalogue(path))
    part = get_index_path(path) / name
    part.write_bytes(part.read_bytes()[:20])
    with pytest.raises(CatalogueError, match=r"is damaged: .*; remove it, and it is made again"):
        open_index(Catalogue(path))
    part.unlink()
    with pytest.raises(CatalogueError, match="is damaged"):
        open_index(Catalogue(path))


def test_threads_build_it_once(path, monkeypatch):
    found, errors, built = [], [], []
    finish = index_builder._Builder.finish
    monkeypatch.setattr(index_builder._Builder, "finish", lambda self, report: built.append(1) or finish(self, report))

    def work():
        try:
            found.append(open_index(Catalogue(path)).text.search("shirt"))
        except Exception as error:  # noqa: BLE001 - collected and asserted on below
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert errors == []
    assert len(found) == 6
    assert all(answer == found[0] for answer in found)
    assert len(built) == 1
    assert sorted(file.name for file in path.parent.iterdir()) == ["a.sqlite", "a.sqlite.index"]


@pytest.mark.parametrize(("slow", "expected"), [(100, "waiting for another process or thread"), (401, "")])
def test_a_wait_for_a_long_build_is_announced(path, monkeypatch, capsys, slow, expected):
    monkeypatch.setattr(index, "_SLOW", slow)
    waiting, build, calls = threading.Event(), index.build, []

    class Lock:
        LOCK_EX, LOCK_NB = fcntl.LOCK_EX, fcntl.LOCK_NB

        @staticmethod
        def flock(file, operation):
            if operation == fcntl.LOCK_EX:
                waiting.set()
            fcntl.flock(file, operation)

    def build_slowly(*arguments):
        assert waiting.wait(30)
        calls.append(1)
        build(*arguments)

    monkeypatch.setattr(index, "fcntl", Lock)
    monkeypatch.setattr(index, "build", build_slowly)
    threads = [threading.Thread(target=open_index, args=(Catalogue(path),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    error = capsys.readouterr().err
    assert len(calls) == 1
    assert expected in error
    assert ("waiting" in error) is bool(expected)


def test_a_long_build_is_announced(path, monkeypatch, capsys):
    Inventory(Catalogue(path))
    assert capsys.readouterr().err == ""
    shutil.rmtree(get_index_path(path))
    monkeypatch.setattr(index, "_SLOW", 100)
    Inventory(Catalogue(path))
    error = capsys.readouterr().err
    assert f"indexing 400 listings of `{path}`, once, about 0 seconds" in error
    assert "100%" in error


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"x" * 10, b"[" * 100_000], ids=["empty", "short", "x", "deep"])
def test_every_damaged_part_is_named(path, content):
    """NumPy ends in an `EOFError` at an empty file, JSON in a `RecursionError` at a deep one."""
    open_index(Catalogue(path))
    index = get_index_path(path)
    for name in ("order.npy", "counts.npy", "goals_synthetic_words.npy", "vocabulary.json"):
        part = index / name
        if not part.is_file():
            part = next(iter(sorted(index.glob("goals_*.npy"))))
        before = part.read_bytes()
        part.write_bytes(content)
        with pytest.raises(CatalogueError, match=r"is damaged: .*; remove it, and it is made again"):
            open_index(Catalogue(path))
        part.write_bytes(before)
    open_index(Catalogue(path))
