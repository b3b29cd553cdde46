"""The words of generated catalogues; a table of data, apart from the code of `generate`.

* `ProductKind` - one kind of product: name, category path, attributes, price range
* `load_product_kinds` - all kinds of products by department, from `data/makes.csv`
* `BRANDS`, `SELLERS`, `COLORS_OFFERED` - names and colours
* `ADJECTIVES`, `USES`, `REVIEW_TITLES`, `REVIEW_BODIES`, `SENTENCES` - parts of titles and texts

No two colours or sizes match each other in the score's fuzzy comparison.
"""

from __future__ import annotations

import csv
from functools import lru_cache
from importlib import resources
from typing import NamedTuple


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
