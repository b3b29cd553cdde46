"""The read-only data that shops and sessions share: listings, search index, goals."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from weakref import WeakValueDictionary

from webshop_server.catalogue import Catalogue
from webshop_server.generate import DEFAULT_PRODUCTS, make_default_catalogue
from webshop_server.goals import GoalSet, resolve_price
from webshop_server.index import open_index
from webshop_server.page_model import BASE_CHARSET
from webshop_server.product import Product
from webshop_server.settings import Settings

_CACHED_QUERIES = 4096
_STARS = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_LOCK = threading.Lock()
# The inventories in use by this process.
_OPEN: WeakValueDictionary[tuple[object, ...], Inventory] = WeakValueDictionary()


class Inventory:
    """One catalogue with its index and goals.

    It is read-only and thread-safe. Copying returns the same object; pickling stores the path, and
    unpickling returns one object per process.

    Args:
        catalogue: the listings.
        seed: seeds prices in ranges and the goals' price limits.
    """

    def __init__(self, catalogue: Catalogue, seed: int = 0) -> None:
        self.catalogue = catalogue
        self.seed = seed
        self.charset = BASE_CHARSET | catalogue.charset
        self.index = open_index(catalogue)
        self.find = lru_cache(maxsize=_CACHED_QUERIES)(lambda keywords: tuple(self.index.text.search(keywords)))
        self.goals = lru_cache(maxsize=8)(lambda kind: GoalSet(self.index, kind, seed=self.seed))

    @classmethod
    def open(cls, path: str | os.PathLike[str], seed: int = 0) -> Inventory:
        """Return the inventory of a catalogue file; the same object while the file is unchanged.

        Raises:
            CatalogueError: the file cannot be used.
        """
        place = Path(path).resolve()
        state = place.stat() if place.exists() else None
        key = (str(place), seed, (state.st_mtime_ns, state.st_size, state.st_ino) if state else None)
        with _LOCK:
            found = _OPEN.get(key)
            if found is None:
                found = _OPEN[key] = cls(Catalogue(place), seed)
        return found

    @classmethod
    def default(cls, products: int = DEFAULT_PRODUCTS, seed: int = 0) -> Inventory:
        """Return the inventory of a generated catalogue, which is created on first use and cached on disk.

        Args:
            products: the number of listings.
            seed: the seed of the catalogue.

        Example:
            >>> len(Inventory.default(products=100))
            100
        """
        return cls.open(make_default_catalogue(products, seed))

    def results(self, keywords: str, settings: Settings) -> Sequence[Product]:
        """Return the results of a search, in the order of the settings."""
        products: Sequence[Product] = self.catalogue.many(self.find(keywords))
        order = settings.result_order
        if order == "reversed":
            products = products[::-1]
        elif order == "rating":
            products = sorted(products, key=lambda product: -_stars(product))
        elif order != "relevance":
            sign = 1 if order == "price_up" else -1
            products = sorted(products, key=lambda product: sign * self.price(product, settings))
        if settings.demoted:
            products = sorted(products, key=lambda product: is_target(product, settings.demoted))
        return products

    def price(self, product: Product, settings: Settings) -> float:
        """Return the current price of a listing, in dollars."""
        factor = get_price_factor(product, settings)
        price = resolve_price(product, self.seed)
        return price if factor == 1.0 else round(price * factor, 2)

    def __len__(self) -> int:
        return len(self.catalogue)

    def __repr__(self) -> str:
        return f"Inventory({str(self.catalogue.path)!r}, seed={self.seed})"

    def __deepcopy__(self, memo: dict[int, object]) -> Inventory:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return Inventory.open, (str(self.catalogue.path), self.seed)


def get_price_factor(product: Product, settings: Settings) -> float:
    """Return the current factor on a listing's prices."""
    if settings.price_factor == 1.0:
        return 1.0
    targets = settings.price_targets
    return settings.price_factor if not targets or is_target(product, targets) else 1.0


def is_target(product: Product, targets: tuple[str, ...]) -> bool:
    """Whether a setting's targets select a listing.

    Args:
        product: the listing.
        targets: asins, `seller:NAME`, `category:NAME`, or `offer:N` for the N-th of several equal offers.

    Example:
        >>> mug = Product("MUG0000001", "A mug", seller="Northgate", group="g1", offer=0)
        >>> is_target(mug, ("offer:0",)), is_target(mug, ("seller:northgate",)), is_target(mug, ("offer:1",))
        (True, True, False)
    """
    names = _target_set(targets)
    return (
        product.asin.lower() in names
        or (bool(product.group) and f"offer:{product.offer}" in names)
        or f"seller:{product.seller.lower()}" in names
        or f"category:{product.category.lower()}" in names
    )


@lru_cache(maxsize=256)
def _target_set(targets: tuple[str, ...]) -> frozenset[str]:
    return frozenset(target.strip().lower() for target in targets)


def _stars(product: Product) -> float:
    """The number that a rating begins with, as in `4.5 out of 5 stars`; 0 without one."""
    found = _STARS.match(product.rating)
    return float(found[0]) if found else 0.0
