"""The records of a catalogue, frozen."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

UNKNOWN_PRICE = 100.0
"""The price of a listing without one, in dollars, as in the original."""

_JUNK = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff\s]+")


def clean(text: object) -> str:
    r"""Normalise a text: one line, single spaces, no invisible or bidirectional characters.

    Example:
        >>> clean("  two\n\tlines\x00 ")
        'two lines'
    """
    return _JUNK.sub(" ", str(text)).strip()


class Option(NamedTuple):
    """A group of values to choose from.

    Args:
        name: the group, in lower case, such as `color`.
        values: the values, in lower case.
    """

    name: str
    values: tuple[str, ...]


class Review(NamedTuple):
    """A customer review.

    Args:
        title: the headline.
        score: stars, 0 to 5, or `None`.
        body: the text.
    """

    title: str
    score: float | None
    body: str


class Instruction(NamedTuple):
    """An instruction to buy, written for one product.

    Args:
        text: the text, without options and price limit.
        attributes: the required attributes.
        options: the required values; empty for a synthetic instruction, which stands for each combination.
        color_class: a class of colours, such as `warm`, of which one is required.
    """

    text: str
    attributes: tuple[str, ...]
    options: tuple[str, ...] = ()
    color_class: str = ""


class Product(NamedTuple):
    """One listing.

    Args:
        asin: its identifier, at most ten characters.
        title: its title.
        description: a paragraph.
        bullets: its bullet points.
        prices: empty, one price, or the ends of a range, in dollars.
        rating: its mean stars as a text, or "".
        category: one of the shop's five departments.
        query: the query of its product type, in lower case.
        product_category: its category path, parts joined by ` › `.
        attributes: its attributes, such as `machine washable`.
        options: its options.
        reviews: its reviews.
        seller: the name of the seller, or "".
        group: a key shared by equal offers of several sellers, or "".
        offer: its index among these equal offers, from 0.
        synthetic: the instruction generated from its attributes, or `None`.
        human: instructions written by people.
        by_class: instructions that require a class of colours.
        image: the address of its photo, as an imported catalogue has it, or "".
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
    image: str = ""

    @property
    def combinations(self) -> int:
        """The number of combinations of one value of every option."""
        count = 1
        for option in self.options:
            count *= len(option.values)
        return count

    @property
    def has_synthetic(self) -> bool:
        """Whether a synthetic instruction with attributes exists."""
        return self.synthetic is not None and bool(self.synthetic.attributes)

    def to_json(self) -> str:
        """Return the record as one line of JSON; without an image as versions wrote it that had none."""
        return json.dumps(self if self.image else self[:-1], ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Product:
        """Parse the output of `to_json`.

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
        """Iterate over every text of the listing that a page can show."""
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
