"""Fixtures: a small generated shop, and the web application over it."""

from __future__ import annotations

from pathlib import Path

import pytest

from webshop_server.app import Config, create_app
from webshop_server.generate import generate
from webshop_server.inventory import Inventory
from webshop_server.shop import Shop

REAL_DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "webshop_1k"
TOKEN = "a-long-token"


@pytest.fixture(scope="session")
def catalogue_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("shop") / "shop.sqlite"
    generate(path, 400, seed=1)
    return path


@pytest.fixture(scope="session")
def inventory(catalogue_path):
    return Inventory.open(catalogue_path)


@pytest.fixture
def shop(inventory):
    return Shop(inventory)


@pytest.fixture
def app(inventory):
    return create_app(Config(inventory, admin_token=TOKEN))


@pytest.fixture
def client(app):
    return app.test_client()


@pytest.fixture
def store(app):
    return app.extensions["webshop"]


@pytest.fixture(scope="session")
def real_files():
    """The original's small files, which are never part of the project."""
    if not REAL_DATA.is_dir():
        pytest.skip(f"the original's sample is not at {REAL_DATA}")
    names = ("items_shuffle_1000.json", "items_ins_v2_1000.json", "items_human_ins_1000.json")
    return tuple(REAL_DATA / name for name in names)


@pytest.fixture(scope="session")
def real_inventory(real_files, tmp_path_factory):
    from webshop_server.importer import import_products

    path = tmp_path_factory.mktemp("real") / "real.sqlite"
    import_products(path, *real_files)
    return Inventory.open(path)
