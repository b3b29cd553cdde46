"""The catalogue file, valid and invalid."""

from __future__ import annotations

import copy
import os
import pickle
import re
import shutil
import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from webshop_server import index
from webshop_server.catalogue import Catalogue, CatalogueWriter, get_partial_path
from webshop_server.errors import CatalogueError
from webshop_server.generate import generate
from webshop_server.inventory import Inventory
from webshop_server.product import Instruction, Option, Product, Review, clean

FULL = Product(
    "B000000001",
    "Ein Becher “groß”",
    "Text",
    ("one", "two"),
    (1.5, 2.0),
    "4.5",
    "garden",
    "mugs",
    "A › B",
    ("red hot",),
    (Option("color", ("red", "blue")), Option("size", ("s", "m", "l"))),
    (Review("Good", 5.0, "Words"),),
    "Seller",
    "g1",
    1,
    Instruction("Find me", ("red hot",)),
    (Instruction("i need", ("red hot",), ("red",)),),
    (Instruction("Find me", ("red hot",), (), "warm"),),
)


def raise_os_error(*_):
    raise PermissionError(13, "Permission denied")


def write(path, *products, fingerprint="test"):
    with CatalogueWriter(path) as writer:
        writer.add(products)
        return writer.finish(fingerprint)


def test_every_field_survives_the_file(tmp_path):
    catalogue = write(tmp_path / "a.sqlite", FULL)
    assert Catalogue(catalogue.path).at(0) == FULL
    assert list(catalogue) == [FULL]
    assert catalogue.product("b000000001") == FULL
    assert set("“ß›") <= catalogue.charset


def test_unknown_names_and_numbers(tmp_path):
    catalogue = write(tmp_path / "a.sqlite", FULL)
    for asin in ("", "B0", "'; DROP TABLE products; --", "%", "*", "x" * 100_000, "\ud800"):
        assert catalogue.product(asin) is None
    with pytest.raises(CatalogueError, match=re.escape("should have a listing 7. It has 1 listings")):
        catalogue.at(7)


def test_rows_have_the_numbers_of_goals(tmp_path):
    others = [FULL._replace(asin=f"B{i}") for i in range(5)]
    with CatalogueWriter(tmp_path / "a.sqlite") as writer:
        writer.add(others)
        expected = [(product, (6, 1, 1)) for product in others]
        assert list(writer.rows(2)) == expected[2:]
        assert list(writer.finish("x").rows(2)) == expected[2:]


def test_a_missing_file(tmp_path):
    with pytest.raises(CatalogueError, match=re.escape(f"there is no catalogue at `{tmp_path / 'no.sqlite'}`")):
        Catalogue(tmp_path / "no.sqlite")


def test_a_file_that_another_process_is_writing(tmp_path):
    path = tmp_path / "a.sqlite"
    with CatalogueWriter(path) as writer:
        writer.add([FULL])
        with pytest.raises(CatalogueError, match=r"a\.sqlite\.partial is still being written"):
            Catalogue(path)
        with pytest.raises(CatalogueError, match=re.escape("cannot be written: another process is writing it")):
            CatalogueWriter(path)
        with pytest.raises(CatalogueError, match="another process is writing it"):
            CatalogueWriter(path, resume=True)
        assert not path.exists()
        writer.finish("x")
    assert len(Catalogue(path)) == 1


def test_a_catalogue_can_be_replaced_while_it_is_read(tmp_path):
    path = tmp_path / "a.sqlite"
    first = write(path, FULL)
    assert first.at(0) == FULL
    write(path, FULL._replace(title="Other"), FULL._replace(asin="B2"), fingerprint="other")
    assert first.at(0) == FULL  # the old file stays open until its reader lets go
    assert [p.title for p in Catalogue(path)] == ["Other", FULL.title]
    with ThreadPoolExecutor(1) as thread, pytest.raises(CatalogueError, match="should not be replaced while it is in"):
        thread.submit(first.product, "B2").result()


def test_an_asin_is_found_in_any_case_but_its_own_first(tmp_path):
    catalogue = write(tmp_path / "a.sqlite", *(FULL._replace(asin=asin) for asin in ("AB1", "ab1", "AB2")))
    assert [catalogue.product(asin).asin for asin in ("ab1", "AB1", "ab2")] == ["ab1", "AB1", "AB2"]


@pytest.mark.parametrize("kept", [0, 50, 4096, 0.5, 0.9])
def test_a_truncated_file(catalogue_path, tmp_path, kept):
    path = tmp_path / "cut.sqlite"
    data = catalogue_path.read_bytes()
    path.write_bytes(data[: kept if isinstance(kept, int) else int(len(data) * kept)])
    with pytest.raises(CatalogueError, match=r"cut\.sqlite"):
        list(Catalogue(path))


def test_a_file_that_is_something_else(tmp_path):
    path = tmp_path / "a.sqlite"
    path.write_text("no database at all, but long enough to have a header " * 20)
    with pytest.raises(CatalogueError, match="cannot be read as a catalogue"):
        Catalogue(path)
    other = tmp_path / "b.sqlite"
    with sqlite3.connect(other) as database:
        database.execute("CREATE TABLE meta (key TEXT, value TEXT)")
    database.close()
    with pytest.raises(CatalogueError, match="It has no such mark"):
        Catalogue(other)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [("version", "99", "should be of version 1. Received version 99"), ("complete", "0", "should be complete")],
)
def test_a_file_of_another_version_or_incomplete(catalogue_path, tmp_path, key, value, reason):
    path = tmp_path / "a.sqlite"
    shutil.copy(catalogue_path, path)
    with sqlite3.connect(path) as database:
        database.execute("UPDATE meta SET value = ? WHERE key = ?", (value, key))
    database.close()
    with pytest.raises(CatalogueError, match=re.escape(reason)):
        Catalogue(path)


def test_a_damaged_record(catalogue_path, tmp_path):
    path = tmp_path / "a.sqlite"
    shutil.copy(catalogue_path, path)
    with sqlite3.connect(path) as database:
        database.execute("UPDATE products SET data = '[1, 2' WHERE id = 3")
    database.close()
    with pytest.raises(CatalogueError, match="listing 3 is damaged"):
        Catalogue(path).at(3)


def test_a_read_only_place_works(catalogue_path, tmp_path, monkeypatch):
    place = tmp_path / "frozen"
    place.mkdir()
    shutil.copy(catalogue_path, place / "a.sqlite")
    os.chmod(place / "a.sqlite", stat.S_IRUSR)
    os.chmod(place, stat.S_IRUSR | stat.S_IXUSR)
    # The superuser can write everywhere: raise the error that other users get.
    monkeypatch.setattr(index, "_locked", raise_os_error)
    try:
        inventory = Inventory(Catalogue(place / "a.sqlite"))
        assert inventory.find("shirt")
        assert sorted(p.name for p in place.iterdir()) == ["a.sqlite"]
    finally:
        os.chmod(place, stat.S_IRWXU)


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CatalogueError, match="cannot be written"):
        generate(tmp_path / "file" / "a.sqlite", 10)


def test_copies_share_and_pickles_reopen(inventory):
    catalogue = inventory.catalogue
    assert copy.deepcopy(catalogue) is catalogue
    assert pickle.loads(pickle.dumps(catalogue)).at(5) == catalogue.at(5)
    assert copy.deepcopy(inventory) is inventory
    assert pickle.loads(pickle.dumps(inventory)) is inventory


def test_an_unfinished_writer_can_be_resumed(tmp_path):
    path = tmp_path / "a.sqlite"
    with CatalogueWriter(path) as writer:
        writer.add([FULL], {"mark": "7"})
    assert get_partial_path(path).exists()
    with CatalogueWriter(path, resume=True) as writer:
        assert (writer.count, writer.note("mark")) == (1, "7")
        writer.add([FULL, FULL._replace(asin="B2", title="Ω")], lambda skipped: {"skipped": str(skipped)})
        assert writer.note("skipped") == "[0]"
        catalogue = writer.finish("x")
    assert "Ω" in catalogue.charset
    assert "“" in catalogue.charset
    assert not get_partial_path(path).exists()


def test_clean_removes_what_cannot_be_seen():
    assert clean("a\u202eb\u200bc\x00d\n\te\ud800f\ufeff") == "a b c d e f"


def test_a_file_where_a_folder_should_be_is_named(tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path / "file" / "a.sqlite", tmp_path / "file" / "deeper" / "a.sqlite"):
        with pytest.raises(CatalogueError, match=re.escape("cannot be written: a file or a broken link has the name")):
            CatalogueWriter(path)
