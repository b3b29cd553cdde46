"""What the shop sells, as frozen records.

* `Option` - a group of values to choose from, such as sizes
* `Review` - one buyer's words
* `Instruction` - what somebody is asked to buy, written for one product
* `Product` - one listing
* `clean` - a text as the shop keeps it: no control characters, single spaces
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

UNKNOWN_PRICE = 100.0
"""The price of a listing without one, in dollars, as in the original."""

_JUNK = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff\s]+")


def clean(text: object) -> str:
    r"""Give a text as the shop keeps it: one line, single spaces, nothing invisible or bidirectional.

    Example:
        >>> clean("  two\n\tlines\x00 ")
        'two lines'
    """
    return _JUNK.sub(" ", str(text)).strip()


class Option(NamedTuple):
    """A group of values to choose from.

    Args:
        name: the group, in lower case, such as `color`.
        values: what can be chosen, in lower case.
    """

    name: str
    values: tuple[str, ...]


class Review(NamedTuple):
    """One buyer's words.

    Args:
        title: the headline.
        score: stars, 0 to 5.
        body: the text.
    """

    title: str
    score: float
    body: str


class Instruction(NamedTuple):
    """What somebody is asked to buy, written for one product.

    Args:
        text: the request, without options and price limit.
        attributes: what the product has to be.
        options: the values to choose; empty for a synthetic instruction, which asks for each
            combination in turn.
        color_class: a class of colours, such as `warm`, that is asked for instead of one colour.
    """

    text: str
    attributes: tuple[str, ...]
    options: tuple[str, ...] = ()
    color_class: str = ""


class Product(NamedTuple):
    """One listing.

    Args:
        asin: its name in the shop, at most ten characters.
        title: its title.
        description: a paragraph.
        bullets: its bullet points.
        prices: nothing, one price, or the ends of a range, in dollars.
        rating: the mean of its stars as a text, or "".
        category: one of the shop's five departments.
        query: the search that it was found with; in lower case.
        product_category: its place in the tree of categories, parts joined by ` › `.
        attributes: what it is, such as `machine washable`.
        options: what can be chosen.
        reviews: what buyers wrote.
        seller: who offers it, or "".
        group: what the listing shares with equal offers of other sellers, or "".
        offer: its place among these equal offers, from 0.
        synthetic: an instruction made from its attributes, or `None`.
        human: instructions that people wrote for it.
        by_class: instructions that ask for a class of colours.
    """

    asin: str
    title: str
    description: str = ""
    bullets: tuple[str, ...] = ()
    prices: tuple[float, ...] = ()
    rating: str = ""
    category: str = ""
    query: str = ""
    product_category: str = ""
    attributes: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()
    reviews: tuple[Review, ...] = ()
    seller: str = ""
    group: str = ""
    offer: int = 0
    synthetic: Instruction | None = None
    human: tuple[Instruction, ...] = ()
    by_class: tuple[Instruction, ...] = ()

    @property
    def combinations(self) -> int:
        """How many ways there are to choose one value of every option."""
        count = 1
        for option in self.options:
            count *= len(option.values)
        return count

    @property
    def has_synthetic(self) -> bool:
        """Whether a synthetic instruction exists, and asks for something."""
        return self.synthetic is not None and bool(self.synthetic.attributes)

    def to_json(self) -> str:
        """Give the record as one line of JSON; `from_json` reads it."""
        return json.dumps(self, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Product:
        """Read what `to_json` wrote.

        Example:
            >>> mug = Product("MUG0000001", "A mug", prices=(4.5,), options=(Option("color", ("red", "blue")),))
            >>> Product.from_json(mug.to_json()) == mug
            True
        """
        record = cls(*json.loads(text))
        return record._replace(
            bullets=tuple(record.bullets),
            prices=tuple(record.prices),
            attributes=tuple(record.attributes),
            options=tuple(Option(name, tuple(values)) for name, values in record.options),
            reviews=tuple(Review(*review) for review in record.reviews),
            synthetic=_instruction(record.synthetic) if record.synthetic else None,
            human=tuple(_instruction(item) for item in record.human),
            by_class=tuple(_instruction(item) for item in record.by_class),
        )

    def shown_texts(self) -> Iterator[str]:
        """Give every text of the listing that a page can show."""
        yield from (self.asin, self.title, self.description, self.rating, self.seller)
        yield from (self.category, self.query, self.product_category)
        yield from self.bullets
        yield from self.attributes
        for option in self.options:
            yield option.name
            yield from option.values
        for review in self.reviews:
            yield from (review.title, review.body)
        for instruction in (*self.human, *self.by_class, *((self.synthetic,) if self.synthetic else ())):
            yield instruction.text
            yield from instruction.attributes
            yield from instruction.options


def _instruction(fields: Any) -> Instruction:
    text, attributes, options, color_class = fields
    return Instruction(text, tuple(attributes), tuple(options), color_class)
