"""One record of the original WebShop's files as a `Product`."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from webshop_server.catalogue import MAX_COMBINATIONS
from webshop_server.errors import ImportProblem
from webshop_server.product import Instruction, Option, Product, Review, clean

MAX_ASIN = 10
MAX_VALUES = 1000
"""The maximum number of bullet points, reviews, attributes and instructions of a listing."""

MAX_TEXT = 20_000
"""The maximum length of a text, in characters; longer ones are cut."""

MAX_PRICE = 1e7

LeaveOut = Callable[[str, str], None]
"""Called with a field, and the reason why a value of it is left out."""

_PHOTO = re.compile(r"https://[\w.-]+/(?!\S*transparent-pixel)[\w./%+-]{1,300}")
_BROKEN = re.compile("[\ud800-\udfff]")
"""What is left of bytes that are no UTF-8, and of an escaped pair without its other half."""

_SHOWN = 80

_NUMBER = r"(?P<{0}>(?:\d{{1,3}}(?:,\d{{3}})+|\d+)(?:\.\d+)?|\.\d+)(?![.,]?\d|[kKmM]\b)"
_TO = r"(?:-|–|—|~|,|to\b|and\b)?"
_ONLY_NUMBERS = re.compile(
    rf"(?:USD?\s*)?{_NUMBER.format('low')}(?:\s+{_TO}\s+{_NUMBER.format('high')})?\.?(?:\s*USD)?"
)
_AMOUNT = re.compile(rf"\s*{_NUMBER.format('low')}(?:\s*(?:-|–|—|~|to\b)\s*{_NUMBER.format('high')})?")
_OTHER_MONEY = re.compile(r"(?:(?!US)\b[A-Z]{1,3}|[^\w\s]*-)$")
"""Before a dollar sign: the letters of another currency (`CA$`), or a minus sign."""

_RANGE = re.compile(rf"\s*{_TO}\s*(?:USD?)?\s*")
_NOT_PRICE = re.compile(r"[.,;]?\s*(?:[&+(|;*/]|(?:for|with|each|per|off|USD)\b)")
"""How a text after a price begins whose numbers are none, as in `& FREE Shipping over $25`."""


def ignore(field: str, reason: str) -> None:
    """Report nothing."""


def parse_product(record: object, side: Mapping[str, Any] | None = None, leave_out: LeaveOut = ignore) -> Product:
    """Parse one record of the original.

    Args:
        record: an element of `items_shuffle.json`.
        side: its data in the other files: `attributes`, `human`, `reviews`.
        leave_out: receives the values that cannot be used.

    Raises:
        ImportProblem: the record has no valid asin.

    Example:
        >>> product = parse_product({"asin": "B01", "name": "Mug", "pricing": "$4.50 - $6", "query": float("nan")},
        ...                         leave_out=print)
        query `query` should be a text. Received nan
        >>> product.prices, product.query
        ((4.5, 6.0), '')
    """
    if not isinstance(record, dict):
        raise ImportProblem("a record should be an object")
    asin = read_asin(record.get("asin"))
    if not asin or asin == "nan" or len(asin) > MAX_ASIN:
        raise ImportProblem(f"`asin` should have 1 to {MAX_ASIN} characters. Received {_show(record.get('asin'))}")
    if not asin.isprintable() or set(asin) & set("/\\") or not asin.strip("."):
        raise ImportProblem(f"`asin` should be usable in a URL, without slashes. Received {asin!r}")
    return _Parser(asin, record, side or {}, leave_out).parse()


def read_asin(value: object) -> str:
    """Return an asin without the blanks around it, also where a file has it as a number; "" for any other value.

    Example:
        >>> read_asin(" B01 "), read_asin(1599793), read_asin(1599793.0), read_asin(float("nan")), read_asin(True)
        ('B01', '1599793', '1599793', '', '')
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return clean(value) if isinstance(value, str) or _is_number(value) else ""


def parse_prices(value: object) -> tuple[float, ...] | None:
    """Parse a price: a number, a text such as `$4.50` or `$4.50 - $6.00`, or a list of these, in dollars.

    Returns:
        No price, one, or the ends of a range; `None` if the value is not understood, or the number 0, for which the
        original has 100 dollars, too.

    Example:
        >>> parse_prices("$1,234.5"), parse_prices("from $3 & FREE Shipping over $25"), parse_prices(["$10", "$20"])
        ((1234.5,), (3.0,), (10.0, 20.0))
        >>> parse_prices(""), parse_prices(None), parse_prices("EUR 12,99")
        ((), (), None)
    """
    if value is None or value in ("", [], {}):
        return ()
    if _is_number(value):
        prices: list[float] | None = [float(value)] if value else None  # type: ignore[arg-type]
    elif isinstance(value, str):
        prices = _find_prices(clean(value))
    elif isinstance(value, list):
        parts = [parse_prices(part) for part in value]
        found = [price for part in parts for price in part or ()]
        prices = None if None in parts else [min(found), max(found)][: len(found)] if found else []
    else:
        prices = None
    if prices is None or not all(0 <= price < MAX_PRICE for price in prices):
        return None
    return tuple(sorted(prices))


def _find_prices(text: str) -> list[float] | None:
    """The first two amounts, as in the original, unless text between them says that the second is no price."""
    if not text:
        return []
    if plain := _ONLY_NUMBERS.fullmatch(text):
        return _read_amounts(plain)
    before, *parts = text.split("$")
    if not parts or _OTHER_MONEY.search(before):
        return None
    prices: list[float] = []
    for number, part in enumerate(parts[:2], start=1):
        found = _AMOUNT.match(part)
        if found is None:
            return None
        prices += _read_amounts(found)
        rest = part[found.end() :]
        if _NOT_PRICE.match(rest):
            break
        is_last = number == len(parts)
        if not is_last and _RANGE.fullmatch(rest):
            continue
        if re.search(r"\d", rest) or (not is_last and _OTHER_MONEY.search(rest)):
            return None
    return prices[:2]


def _read_amounts(found: re.Match[str]) -> list[float]:
    return [float(number.replace(",", "")) for number in found.groups() if number is not None]


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _show(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


class _Parser:
    """Reads the fields of a record.

    Args:
        asin: its asin.
        record: the record.
        side: its data in the other files.
        leave_out: receives the values that cannot be used.
    """

    def __init__(self, asin: str, record: dict[str, Any], side: Mapping[str, Any], leave_out: LeaveOut) -> None:
        self._asin, self._record, self._side, self._leave_out = asin, record, side, leave_out

    def parse(self) -> Product:
        """Return the listing."""
        record = self._record
        given = self._mapping("attributes", self._side.get("attributes"))
        reviewed = self._mapping("reviews", self._side.get("reviews"))
        if record.get("name") is None:
            self._refuse("name", "a text", None)
        bullets = record.get("small_description")
        prices = parse_prices(record.get("pricing"))
        if prices is None:
            self._refuse("pricing", "a price in dollars", record["pricing"])
        rating = self._text("average_rating", reviewed.get("average_rating"))
        return Product(
            asin=self._asin,
            title=self._text("name", record.get("name")),
            description=self._text("full_description", record.get("full_description")),
            bullets=self._texts("small_description", bullets if isinstance(bullets, list) else [bullets]),
            prices=prices or (),
            rating=(rating or self._text("average_rating", record.get("average_rating")))[:20].rstrip(),
            category=self._text("category", record.get("category")),
            query=self._text("query", record.get("query")).lower(),
            product_category=self._text("product_category", record.get("product_category")),
            attributes=self._texts("attributes", given.get("attributes")),
            options=tuple(self._options(record.get("customization_options"))),
            reviews=tuple(self._reviews(reviewed.get("reviews"))),
            synthetic=self._synthetic(given),
            human=tuple(self._human(self._side.get("human"))),
            image=self._image(record.get("images")),
        )

    def _refuse(self, field: str, rule: str, value: object) -> None:
        self._leave_out(field, f"`{field}` should be {rule}. Received {_show(value)}")

    def _text(self, field: str, value: object) -> str:
        if not _is_text(value):
            if value is not None and value not in ([], {}):
                self._refuse(field, "a text", value)
            return ""
        text = clean(value)
        if _BROKEN.search(str(value)):
            self._leave_out(
                field, f"`{field}` should be UTF-8; other characters become blanks. Received {_show(value)}"
            )
        if len(text) > MAX_TEXT:
            self._leave_out(
                field, f"`{field}` should have at most {MAX_TEXT} characters, and is cut. It has {len(text)}"
            )
        return text[:MAX_TEXT].rstrip()

    def _list(self, field: str, value: object, most: int = MAX_VALUES) -> list[Any]:
        if not isinstance(value, list):
            if value:
                self._refuse(field, "a list", value)
            return []
        if len(value) > most:
            self._leave_out(field, f"`{field}` should have at most {most} values, and is cut. It has {len(value)}")
        return value[:most]

    def _mapping(self, field: str, value: object) -> dict[str, Any]:
        if not isinstance(value, dict):
            if value:
                self._refuse(field, "an object", value)
            return {}
        return value

    def _texts(self, field: str, value: object) -> tuple[str, ...]:
        texts = (self._text(field, item) for item in self._list(field, value))
        return tuple(text for text in texts if text)

    def _wanted(self, value: object) -> tuple[str, ...]:
        """Required attributes; empty ones stay, since the original numbers goals that have any."""
        field, found = "instruction_attributes", []
        for item in self._list(field, value):
            if _is_text(item):
                found.append(self._text(field, item))
            else:
                self._refuse(field, "texts", item)
        return tuple(found)

    def _synthetic(self, given: Mapping[str, Any]) -> Instruction | None:
        attributes = self._wanted(given.get("instruction_attributes"))
        text = self._text("instruction", given.get("instruction"))
        return Instruction(text, attributes) if _is_text(given.get("instruction")) else None

    def _human(self, value: object) -> Iterator[Instruction]:
        for item in self._list("human", value):
            fields = self._mapping("human", item)
            if fields:
                options = self._texts("instruction_options", fields.get("instruction_options"))
                yield Instruction(
                    self._text("instruction", fields.get("instruction")),
                    self._wanted(fields.get("instruction_attributes")),
                    tuple(text.lower() for text in options),
                )

    def _options(self, value: object) -> Iterator[Option]:
        """The groups: of names that differ in case alone the last one counts, as in the original."""
        groups: dict[str, tuple[str, ...]] = {}
        field = "customization_options"
        for name, contents in self._mapping(field, value).items():
            if contents is None:
                continue
            if not isinstance(contents, list):
                self._refuse(field, "lists of values by name", {name: contents})
                continue
            choices = []
            for content in self._list(field, contents, MAX_COMBINATIONS):
                given = content.get("value") if isinstance(content, dict) else content
                if _is_text(given):
                    choices.append(clean(self._text(field, given).replace("/", " | ")).lower())
                else:
                    self._refuse(field, f"texts. A value of {name!r} is", given)
            groups[name.lower()] = tuple(choices)
        taken: set[str] = set()
        for original, values in groups.items():
            name = shown = self._text(field, original)
            number = len(taken)
            while name in taken:  # names that differ in blanks are different groups in the original
                number += 1
                name = f"{shown} ({number})"
            taken.add(name)
            yield Option(name, values)

    def _reviews(self, value: object) -> Iterator[Review]:
        for item in self._list("reviews", value):
            fields = self._mapping("reviews", item)
            if fields:
                score = self._stars(fields.get("score", fields.get("stars")))
                body = fields.get("body", fields.get("review"))
                yield Review(self._text("reviews", fields.get("title")), score, self._text("reviews", body))

    def _stars(self, value: object) -> float | None:
        if value is None:
            return None
        try:
            score = float(value.split(" ")[0] if isinstance(value, str) else value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            score = math.nan
        if isinstance(value, bool) or not 0 <= score <= 5:
            self._refuse("stars", "a number in the interval [0, 5]", value)
            return None
        return score

    def _image(self, value: object) -> str:
        """The first photo; the original's lists end with the address of a transparent pixel."""
        found = (self._text("images", address) for address in self._list("images", value))
        return next((address for address in found if _PHOTO.fullmatch(address)), "")


def _is_text(value: object) -> bool:
    """Whether a value is a text, or a number that can be shown as one."""
    return isinstance(value, str) or _is_number(value)
