"""Catalogues for the original's interfaces, with listings and goals as dictionaries that have the original's keys.

Catalogues are this package's, or the original's files, which are imported once.
"""

from __future__ import annotations

import fcntl
import hashlib
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from webshop_server.catalogue import Catalogue, get_cache_dir
from webshop_server.errors import ArgumentError, CatalogueError, check_integer, describe_write_error, refuse
from webshop_server.generate import DEFAULT_PRODUCTS
from webshop_server.goals import Goal, resolve_price
from webshop_server.importer import import_products
from webshop_server.inventory import Inventory
from webshop_server.page_builder import format_price
from webshop_server.shop import Shop


class Listings(Mapping[str, "dict[str, Any]"]):
    """The listings by asin, with the original's keys."""

    def __init__(self, shop: Shop) -> None:
        self._shop = shop

    def __getitem__(self, asin: str) -> dict[str, Any]:
        product = self._shop.inventory.catalogue.product(asin)
        if product is None:
            raise KeyError(asin)
        return {
            "asin": product.asin,
            "name": product.title,
            "Title": product.title,
            "Description": product.description,
            "BulletPoints": list(product.bullets),
            "Rating": product.rating or "N.A.",
            "Reviews": [review._asdict() for review in product.reviews],
            "Attributes": list(product.attributes),
            "Price": format_price(product, self._shop.settings),
            "pricing": list(product.prices) or [resolve_price(product, 0)],
            "options": {option.name: list(option.values) for option in product.options},
            "customization_options": {option.name: list(option.values) for option in product.options},
            "category": product.category,
            "query": product.query,
            "product_category": product.product_category,
            "instruction_text": product.synthetic.text if product.synthetic else None,
            "instruction_attributes": list(product.synthetic.attributes) if product.synthetic else None,
            "instructions": [
                {
                    "instruction": instruction.text,
                    "instruction_attributes": list(instruction.attributes),
                    "instruction_options": list(instruction.options),
                }
                for instruction in product.human
            ],
        }

    def __iter__(self) -> Iterator[str]:
        return (product.asin for product in self._shop.inventory.catalogue)

    def __len__(self) -> int:
        return len(self._shop.inventory)


def describe_goal(goal: Goal, kind: str) -> dict[str, Any]:
    """A goal with the original's keys: options by name for synthetic goals, else as a list."""
    options = [value for _, value in goal.options] if kind == "human" else dict(goal.options)
    return {**goal.to_dict(), "goal_options": options}


def open_inventory(
    file_path: str | Path | None, attr_path: str | Path | None, num_products: int | None, seed: int
) -> Inventory:
    """Open a catalogue.

    Args:
        file_path: as in `SimServer`.
        attr_path: as in `SimServer`.
        num_products: as in `SimServer`.
        seed: seeds prices in ranges and price limits.

    Raises:
        ArgumentError: an argument breaks a rule.
        CatalogueError: the catalogue cannot be used.
    """
    if num_products is not None:
        check_integer("num_products", num_products, 1)
    if attr_path is not None and (file_path is None or Path(file_path).suffix != ".json"):
        raise refuse("attr_path", "None where `file_path` is no file of the original", str(attr_path), ArgumentError)
    if file_path is None:
        return Inventory.open(Inventory.default(num_products or DEFAULT_PRODUCTS).catalogue.path, seed)
    path = Path(file_path)
    if path.suffix == ".json":
        return Inventory.open(_import_once(path, attr_path, num_products), seed)
    inventory = Inventory.open(path, seed)
    if num_products not in (None, len(inventory)):
        raise refuse("num_products", f"{len(inventory)}, as many as the catalogue has", num_products, ArgumentError)
    return inventory


def _import_once(path: Path, attr_path: str | Path | None, num_products: int | None) -> Path:
    """Import the original's files into the cache, once; wait for another process or thread that does so."""
    attributes = _beside(path, "items_ins_v2") if attr_path is None else Path(attr_path)
    files = [path, attributes, _beside(path, "items_human_ins")]
    try:
        states = [(str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns) for file in files if file]
    except OSError as error:
        raise refuse("file_path", "a file that can be read", str(path), ArgumentError) from error
    key = hashlib.sha256(repr((states, num_products)).encode()).hexdigest()[:16]
    out = get_cache_dir() / f"imported-{key}.sqlite"
    if _is_complete(out):
        return out
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with open(f"{out}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if _is_complete(out):
                return out
            report = import_products(out, path, *files[1:], limit=num_products)
    except OSError as error:  # includes CatalogueError
        raise CatalogueError(
            f"{describe_write_error(error)}; set WEBSHOP_CACHE to a directory that can be written"
        ) from error
    if report.problems:
        warnings.warn(f"{report}; first: {report.problems[0]}", stacklevel=2)
    return out


def _is_complete(path: Path) -> bool:
    """Whether there is a catalogue that is neither damaged nor of another version."""
    try:
        Catalogue(path)
    except CatalogueError:
        return False
    return True


def _beside(path: Path, name: str) -> Path | None:
    """The file of a name in the same folder, with the same ending, such as `_1000`."""
    ending = path.stem.removeprefix("items_shuffle")
    found = (path.with_name(f"{name}{end}.json") for end in (ending, ""))
    return next((file for file in found if file.exists()), None)
