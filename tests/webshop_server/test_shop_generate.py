"""Generated catalogues: reproducible, complete, and usable for goals."""

from __future__ import annotations

import itertools
import re
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor

import pytest

from webshop_server import generate as module
from webshop_server.catalogue import Catalogue
from webshop_server.errors import ArgumentError, CatalogueError
from webshop_server.generate import (
    COLORS_OFFERED,
    GROUPS,
    generate,
    generate_products,
    load_product_kinds,
    make_default_catalogue,
)
from webshop_server.reward import is_same, matches_option


def test_equal_seeds_give_equal_files(tmp_path):
    generate(tmp_path / "a.sqlite", 150, seed=5)
    generate(tmp_path / "b.sqlite", 150, seed=5)
    generate(tmp_path / "c.sqlite", 150, seed=6)
    a, b, c = ((tmp_path / f"{name}.sqlite").read_bytes() for name in "abc")
    assert a == b
    assert a != c


def test_a_longer_catalogue_begins_with_the_shorter_one():
    long, short = list(generate_products(300, 2)), list(generate_products(200, 2))
    assert long[:199] == short[:199]  # the last article may be cut in the middle of its offers


def test_it_covers_the_five_departments(inventory):
    counts = Counter(product.category for product in inventory.catalogue)
    assert set(counts) == {"fashion", "beauty", "electronics", "garden", "grocery"} == set(load_product_kinds())
    assert min(counts.values()) > 400 / 5 * 0.7


def test_records_are_complete(inventory):
    for product in inventory.catalogue:
        assert re.fullmatch(r"B0[0-9A-HJ-NP-Z]{8}", product.asin)
        assert product.title
        assert product.description
        assert len(product.bullets) == 3
        assert product.prices[0] > 0
        assert list(product.prices) == sorted(product.prices)
        assert 1 <= len(product.reviews) <= 4
        assert product.has_synthetic
        assert set(product.synthetic.attributes) < set(product.attributes)
        assert all(value == value.lower() for option in product.options for value in option.values)
        assert "{" not in "".join(product.shown_texts())


def test_names_are_unique():
    products = list(generate_products(20_000, 0))
    assert len({product.asin for product in products}) == 20_000


def test_equal_offers_differ_in_name_and_seller_alone(inventory):
    groups = defaultdict(list)
    for product in inventory.catalogue:
        if product.group:
            groups[product.group].append(product)
    assert len(groups) > 50
    for offers in groups.values():
        assert 2 <= len(offers) <= 3
        assert [offer.offer for offer in offers] == list(range(len(offers)))
        assert len({offer.seller for offer in offers}) == len(offers)
        assert len({offer._replace(asin="", seller="", offer=0) for offer in offers}) == 1


def test_no_option_is_taken_for_another_of_its_group():
    """Otherwise a wrong choice would pay as much as the right one."""
    for values in (*GROUPS.values(), COLORS_OFFERED):
        for one, other in itertools.permutations(values, 2):
            assert not matches_option(one, other), (one, other)


def test_no_attribute_is_taken_for_another_of_its_kind():
    for kinds in load_product_kinds().values():
        for kind in kinds:
            for one, other in itertools.permutations(kind.attributes, 2):
                assert not is_same(one, other), (one, other)


def test_class_goals_have_every_color_that_a_class_may_mean(inventory):
    asked = [product for product in inventory.catalogue if product.by_class]
    assert len(asked) > 50
    for product in asked:
        colors = next(option.values for option in product.options if option.name == "color")
        assert {"yellow", "red", "orange", "blue", "green", "purple"} <= set(colors)
        assert [instruction.color_class for instruction in product.by_class] == ["warm", "cool"]
        assert {len(instruction.attributes) for instruction in product.by_class} == {2}


@pytest.mark.parametrize("count", [0, -1, 10_000_001])
def test_invalid_numbers_of_products(tmp_path, count):
    with pytest.raises(ArgumentError, match=re.escape(f"in the interval [1, 10000000]. Received {count}")):
        generate(tmp_path / "a.sqlite", count)
    with pytest.raises(ArgumentError, match="`seed` should be"):
        generate(tmp_path / "a.sqlite", 5, seed=-1)


def test_the_default_is_made_once_and_again_when_damaged(tmp_path, monkeypatch):
    monkeypatch.setenv("WEBSHOP_CACHE", str(tmp_path))
    path = make_default_catalogue(60, 3)
    stamp = path.stat().st_mtime_ns
    assert make_default_catalogue(60, 3) == path
    assert path.stat().st_mtime_ns == stamp
    whole = path.read_bytes()
    path.write_bytes(whole[:1000])
    assert make_default_catalogue(60, 3).read_bytes() == whole
    assert [p.name for p in tmp_path.iterdir() if ".sqlite" in p.name] == [path.name]


def test_the_cache_follows_the_environment(tmp_path, monkeypatch):
    monkeypatch.delenv("WEBSHOP_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert module.get_cache_dir() == tmp_path / "webshop-server"


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("WEBSHOP_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(CatalogueError, match="set WEBSHOP_CACHE to a directory that can be written"):
        make_default_catalogue(10)


def test_concurrent_threads_create_the_default_catalogue(tmp_path, monkeypatch):
    monkeypatch.setenv("WEBSHOP_CACHE", str(tmp_path))
    with ThreadPoolExecutor(4) as pool:
        paths = list(pool.map(lambda _: make_default_catalogue(40, 9), range(4)))
    assert len(set(paths)) == 1
    assert [path.name for path in tmp_path.iterdir()] == [paths[0].name]


def test_a_damaged_catalogue_in_the_cache_says_that_deleting_it_helps(tmp_path, monkeypatch):
    monkeypatch.setenv("WEBSHOP_CACHE", str(tmp_path))
    path = module.make_default_catalogue(300)
    data = bytearray(path.read_bytes())
    data[20_000:] = b"\xff" * (len(data) - 20_000)
    path.write_bytes(data)
    with pytest.raises(CatalogueError, match=re.escape(f"`{path}` ") + ".*; delete it, and it is made again"):
        list(Catalogue(path))
    other = tmp_path / "other" / "shop.sqlite"
    other.parent.mkdir()
    other.write_bytes(data)
    with pytest.raises(CatalogueError, match=r"cannot be read as a catalogue: [^;]*$"):
        list(Catalogue(other))
    path.unlink()
    assert len(list(Catalogue(module.make_default_catalogue(300)))) == 300
