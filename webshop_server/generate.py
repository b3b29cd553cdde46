"""Catalogues generated from a seed, and the words that they are made of.

Equal arguments give equal files, byte for byte, with one version of SQLite. No two colours or sizes match each other in
the score's fuzzy comparison.
"""

from __future__ import annotations

import csv
import os
import random
import threading
from collections.abc import Iterator
from functools import lru_cache
from importlib import resources
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from webshop_server.catalogue import Catalogue, CatalogueWriter, get_cache_dir
from webshop_server.errors import CatalogueError, check_integer
from webshop_server.index import build_index, open_index
from webshop_server.product import Instruction, Option, Product, Review
from webshop_server.progress import Report, ignore_progress, show_progress

GENERATOR_VERSION = 1
DEFAULT_PRODUCTS = 2000
COLOR_CLASSES = ("warm", "cool")
_CLASS_COLORS = frozenset(("yellow", "red", "orange", "blue", "green", "purple"))
_BATCH = 2000
_DIGITS = "0123456789ABCDEFGHJKLMNPQRSTUVWXYZ"


def generate(
    path: str | os.PathLike[str],
    products: int = DEFAULT_PRODUCTS,
    seed: int = 0,
    *,
    overwrite: bool = True,
    progress: bool = False,
) -> Catalogue:
    """Write a generated catalogue over the original's five departments, and its index.

    An interrupted call with the same arguments is continued. Half of the articles have one seller, the others two or
    three, whose listings differ in the seller only. Articles with colours have instructions for classes of colours.

    Args:
        path: the file.
        products: the number of listings, 1 to 10,000,000.
        seed: the seed, 0 to 2**63 - 1.
        overwrite: replace an existing file.
        progress: show a progress bar on standard error.

    Raises:
        ArgumentError: a number is out of its bounds.
        CatalogueError: the file cannot be written, or exists.
    """
    check_integer("products", products, 1, 10_000_000)
    check_integer("seed", seed, 0, 2**63 - 1)
    fingerprint = f"generated-{GENERATOR_VERSION}-{products}-{seed}"
    with show_progress(is_shown=progress) as stage, _resume(path, fingerprint, overwrite) as writer:
        _write(writer, products, seed, stage("generating"))
        build_index(writer.path, writer.rows, fingerprint, writer.count, stage("indexing"))
        catalogue = writer.finish(fingerprint)
    open_index(catalogue)
    return catalogue


def _resume(path: str | os.PathLike[str], fingerprint: str, overwrite: bool) -> CatalogueWriter:
    """Continue an interrupted call with the same arguments, or start afresh."""
    writer = CatalogueWriter(path, resume=True, overwrite=overwrite)
    if writer.note("source") != fingerprint:
        writer.close()
        writer = CatalogueWriter(path, overwrite=overwrite)
        writer.add((), {"source": fingerprint})
    return writer


def _write(writer: CatalogueWriter, products: int, seed: int, report: Report = ignore_progress) -> None:
    listings = islice(generate_products(products, seed), writer.count, None)
    while batch := list(islice(listings, _BATCH)):
        writer.add(batch)
        report(writer.count / products)


def generate_products(count: int, seed: int) -> Iterator[Product]:
    """Generate the listings that `generate` writes."""
    draw = random.Random(f"webshop-{GENERATOR_VERSION}-{seed}")
    kinds = load_product_kinds()
    departments = list(kinds)
    made = article = 0
    while made < count:
        department = departments[article % len(departments)]
        choices = kinds[department]
        kind = choices[article // len(departments) % len(choices)]
        offers = draw.choices((1, 2, 3), (5, 4, 1))[0]
        offers = min(offers, count - made)
        base = _article(draw, department, kind)
        sellers = draw.sample(SELLERS, offers)
        for offer, seller in enumerate(sellers):
            yield base._replace(
                asin=_asin(made, seed), seller=seller, group=f"g{article}" if offers > 1 else "", offer=offer
            )
            made += 1
        article += 1


def _asin(number: int, seed: int) -> str:
    """An asin: `B0` and eight characters, scattered so that consecutive listings have dissimilar asins."""
    size = len(_DIGITS) ** 8
    value = (number * 1_034_567_891_011 + 7_919 * (seed % 1_000_003) + 123_456_789) % size
    signs = []
    for _ in range(8):
        value, digit = divmod(value, len(_DIGITS))
        signs.append(_DIGITS[digit])
    return "B0" + "".join(reversed(signs))


def _article(draw: random.Random, department: str, kind: ProductKind) -> Product:
    brand = draw.choice(BRANDS[department])
    adjective = draw.choice(ADJECTIVES)
    feature = draw.choice(kind.features)
    use = draw.choice(USES[department])
    attributes = tuple(draw.sample(kind.attributes, 3))
    options = tuple(_option(draw, group) for group in kind.groups)
    name = kind.name.lower().removeprefix("women's ").removeprefix("men's ")
    title = f"{brand} {adjective} {kind.name} with {feature}, {attributes[0].title()}, {attributes[1].title()}"
    words = {
        "brand": brand,
        "use": use,
        "name": name,
        "feature": feature.lower(),
        "attributes": " and ".join(attributes[:2]),
    }
    first, second, *rest = SENTENCES
    description = " ".join(text.format(**words) for text in (first, second, *draw.sample(rest, 2)))
    bullets = (
        f"{attributes[0].capitalize()}, {attributes[1]}: {kind.query} made for {use}",
        f"With {feature.lower()}, chosen by {brand}",
        f"Also {attributes[2]}, and easy to live with",
    )
    reviews = tuple(_review(draw, words) for _ in range(draw.randint(1, 4)))
    asked = tuple(draw.sample(attributes, 2))
    text = f"Find me {asked[0]} {kind.query} with {asked[1]}"
    has_classes = any(option.name == "color" and set(option.values) >= _CLASS_COLORS for option in options)
    return Product(
        asin="",
        title=title,
        description=description,
        bullets=bullets,
        prices=_prices(draw, kind.price),
        rating=f"{sum(review.score or 0.0 for review in reviews) / len(reviews):.1f}",
        category=department,
        query=kind.query,
        product_category=" › ".join(kind.path),
        attributes=attributes,
        options=options,
        reviews=reviews,
        synthetic=Instruction(text, asked),
        by_class=tuple(Instruction(text, asked, (), name) for name in COLOR_CLASSES) if has_classes else (),
    )


def _option(draw: random.Random, group: str) -> Option:
    if group == "color":
        if draw.random() < 0.5:  # every colour of a class, and two others
            others = [color for color in COLORS_OFFERED if color not in _CLASS_COLORS]
            chosen = {*_CLASS_COLORS, *draw.sample(others, 2)}
        else:
            chosen = set(draw.sample(COLORS_OFFERED, draw.randint(3, 6)))
        return Option("color", tuple(color for color in COLORS_OFFERED if color in chosen))
    values = GROUPS[group]
    chosen = set(draw.sample(values, draw.randint(2, len(values))))
    return Option(GROUP_NAMES.get(group, group), tuple(value for value in values if value in chosen))


def _prices(draw: random.Random, bounds: tuple[float, float]) -> tuple[float, ...]:
    low, high = bounds
    price = round(low + (high - low) * draw.random() ** 2) - 0.01  # low prices are more frequent
    price = round(max(price, low), 2)
    if draw.random() < 0.15:
        return price, round(price * draw.uniform(1.1, 1.5), 2)
    return (price,)


def _review(draw: random.Random, words: dict[str, str]) -> Review:
    score = draw.choices((5, 4, 3, 2, 1), (45, 30, 12, 8, 5))[0]
    body = draw.choice(REVIEW_BODIES[score].split("|")).format(**words)
    return Review(draw.choice(REVIEW_TITLES[score]), float(score), body[0].upper() + body[1:])


def make_default_catalogue(products: int = DEFAULT_PRODUCTS, seed: int = 0) -> Path:
    """Return the path of a generated catalogue, which is created on first use in `get_cache_dir()`.

    Concurrent processes write separate, equal files; the last one is kept.

    Raises:
        CatalogueError: the cache cannot be written.
    """
    path = get_cache_dir() / f"generated-{GENERATOR_VERSION}-{products}-{seed}.sqlite"
    if path.is_file():
        try:
            Catalogue(path)
        except CatalogueError:
            pass  # damaged, or of another version: generated again below
        else:
            return path
    own = path.with_name(f"{path.stem}.{os.getpid()}.{threading.get_ident()}.sqlite")
    try:
        with CatalogueWriter(own) as writer:
            _write(writer, products, seed)
            writer.finish(f"generated-{GENERATOR_VERSION}-{products}-{seed}")
        os.replace(own, path)
    except OSError as error:  # includes CatalogueError
        raise CatalogueError(f"{error}; set WEBSHOP_CACHE to a directory that can be written") from error
    return path


class ProductKind(NamedTuple):
    """One kind of product.

    Args:
        name: its name in titles.
        query: its query.
        path: its category path.
        attributes: its possible attributes.
        features: features for titles and bullet points.
        groups: its option groups, keys of `GROUPS` or `color`.
        price: lowest and highest price, in dollars.
    """

    name: str
    query: str
    path: tuple[str, ...]
    attributes: tuple[str, ...]
    features: tuple[str, ...]
    groups: tuple[str, ...]
    price: tuple[float, float]


def _words(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(","))


COLORS_OFFERED = _words("black, white, red, yellow, blue, green, orange, purple, pink, brown, gray, teal")
"""No colour is a substring of another, and each is an entry of `reward.COLORS`."""


GROUPS = {
    "size": _words("s, m, l, xl, xxl"),
    "shoe": _words("6, 7, 8, 9, 10, 11"),
    "length": _words("3 ft, 6 ft, 10 ft, 15 ft"),
    "volume": _words("100 ml, 250 ml, 500 ml, 750 ml"),
    "count": _words("single, twin pack, family pack"),
    "bed": _words("twin, queen, king"),
    "capacity": _words("32gb, 64gb, 128gb, 256gb"),
    "scent": _words("lavender fields, citrus grove, sea breeze, unscented"),
    "flavor": _words("chocolate, vanilla, strawberry, lemon, peanut"),
    "weight": _words("8 oz, 16 oz, 32 oz, 64 oz"),
    "finish": _words("oak veneer, walnut veneer, matte lacquer"),
}
"""Option groups and their values."""


GROUP_NAMES = {"shoe": "size", "volume": "size", "bed": "size", "count": "pack", "weight": "size"}
"""The displayed name of a group, if it differs from its key."""


BRANDS = {
    "fashion": _words(
        "Harlow & Finch, Northgate, Willowby, Dune & Dale, Marlow Street, Coppermill, Briar Lane, Oakhurst"
    ),
    "beauty": _words("Verbena Lab, Lumiflor, Petal & Pine, Silken Root, Aurelle, Mossberry, Kindred Skin, Clearwater"),
    "electronics": _words("Voltaic, Brightwave, Korvex, Pixelnest, Sonora Audio, Lumentek, Arcadia Tech, Nimbus"),
    "garden": _words(
        "Hearth & Hollow, Timberline, Casa Verde, Stonebridge, Fernwood, Loom & Ladder, Calder Home, Rivermoor"
    ),
    "grocery": _words(
        "Golden Acre, Millstone, Sunny Orchard, Old Harbor, Wild Clover, Prairie Pantry, Tidewater, Maple Row"
    ),
}


SELLERS = _words(
    "Larkspur Trading, Bluebird Goods, Summit Supply, Harbor Outlet, Evergreen Direct, Cobalt Market, Redwood Depot, "
    "Juniper & Co, Meridian Store, Quayside Deals"
)


ADJECTIVES = _words("Classic, Everyday, Premium, Signature, Essential, Modern, Deluxe, Heritage, Studio, Original")


USES = {
    "fashion": _words("everyday wear, travel, the office, weekend walks, family gatherings, cool evenings"),
    "beauty": _words("daily care, quiet mornings, travel bags, evening routines, gift boxes, busy weekdays"),
    "electronics": _words("home offices, road trips, small studios, living rooms, students, long flights"),
    "garden": _words("living rooms, small apartments, guest bedrooms, porches, family kitchens, entryways"),
    "grocery": _words("lunch boxes, slow breakfasts, picnics, pantry shelves, movie nights, hikes"),
}


SENTENCES = (
    "Made by {brand} for {use}, this {name} is built around one idea: {feature}.",
    "We tested it for months and kept what works: {attributes}.",
    "It arrives in a plain box that can be recycled.",
    "Questions are answered by people, usually within a day.",
    "If it is not what you hoped for, send it back within thirty days.",
    "A good choice for {use}, and a thoughtful present.",
)


REVIEW_TITLES = {
    5: _words("Exactly what I wanted,Better than expected,Would buy again,Lovely"),
    4: _words("Good value,Does the job,Happy with it,Nearly perfect"),
    3: _words("It is all right,Average,Fine for the price,Mixed feelings"),
    2: _words("Not for me,Smaller than I thought,Expected more,Came late"),
    1: _words("Disappointed,Broke after a week,Sent it back,Do not bother"),
}


REVIEW_BODIES = {
    5: "I use this {name} every day and it still looks new.|Bought one for myself and one for my sister.|{feature}, "
    "just as described.",
    4: "Good {name}. The packaging could be simpler.|Works well for {use}.|Took a day longer to arrive, but worth it.",
    3: "The {name} is fine, nothing special.|Good for {use}, less so for anything else.|You get what you pay for.",
    2: "I hoped for more from {brand}.|The {name} did not suit me.|Too small for {use}.",
    1: "The {name} did not last.|Customer service was kind, but I returned it.|Not as described.",
}


@lru_cache(maxsize=1)
def load_product_kinds() -> dict[str, tuple[ProductKind, ...]]:
    """Return all kinds of products by department, from `data/makes.csv`."""
    kinds: dict[str, list[ProductKind]] = {}
    text = (resources.files("webshop_server") / "data" / "makes.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(text.splitlines()):
        lists = {key: tuple(row[key].split("; ")) for key in ("attributes", "features", "groups")}
        kind = ProductKind(
            name=row["name"],
            query=row["query"],
            path=tuple(row["path"].split(" > ")),
            price=(float(row["low"]), float(row["high"])),
            **lists,
        )
        kinds.setdefault(row["department"], []).append(kind)
    return {department: tuple(rows) for department, rows in kinds.items()}
