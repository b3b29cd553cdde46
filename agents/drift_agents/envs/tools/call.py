"""A call of a tool, parsed from its JSON text, with values in one form whatever the interface's.

* `Call`, `read_call` - a call: the tool's name, and its values by kind
* `read_key`, `read_day` - ids and dates in any form
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import date, datetime
from functools import lru_cache
from typing import Any, NamedTuple

REASONS = ("changed_mind", "damaged", "wrong_size")
"""Reason codes of returns."""
_SPEEDS = ("standard", "express")
_RULES = ("cancel_until", "return_days", "match_days", "lost_days", "other_card")
_LETTERS = "COIPKSG"
"""Of ids: customer, order, item, payment, card, shipment, product; numbers in this order from 1000 on."""
_ID = re.compile(rf"[{_LETTERS}]-(\d{{4}})")
_DATES = ("%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%d %B %Y")


class Call(NamedTuple):
    """A call of a tool.

    Args:
        text: its JSON text.
        tool: the name of the tool.
        values: kind and value of each argument: the letter of an id with its number, `amount`, `page`, `flag`,
            `email`, `date`, `reason`, `speed`, `rule` or `text`.

    Example:
        >>> call = read_call('{"tool": "refund", "arguments": {"payment_id": "P-4001", "amount": 24.0}}')
        >>> call.get("P"), call.get("amount"), call.get("K")
        (4001, 24.0, None)
    """

    text: str
    tool: str
    values: tuple[tuple[str, Any], ...]

    def get(self, kind: str) -> Any:
        """The first value of a kind; `None` if there is none."""
        return next((value for name, value in self.values if name == kind), None)

    def has(self, *kinds: str) -> bool:
        """Whether it has values of these kinds."""
        return {name for name, _ in self.values}.issuperset(kinds)


@lru_cache(maxsize=8192)
def read_call(text: str) -> Call | None:
    """Parse a call; `None` if the text is none.

    Args:
        text: the JSON text.
    """
    try:
        return as_call(json.loads(text), text)
    except (ValueError, RecursionError):
        return None


def as_call(data: Any, text: str = "") -> Call | None:
    """A call from parsed JSON; `None` if it is none.

    Args:
        data: the parsed call.
        text: its JSON text.
    """
    if not isinstance(data, Mapping) or not isinstance(data.get("tool"), str):
        return None
    given = data.get("arguments", {})
    if not isinstance(given, Mapping):
        return None
    return Call(text or json.dumps(data), data["tool"], tuple(map(_read_value, given.values())))


def _read_value(value: Any) -> tuple[str, Any]:
    if value is True:
        return "flag", value
    if isinstance(value, float):
        return "amount", value
    key = read_key(value)
    if key is not None:
        return _LETTERS[key // 1000 - 1], key
    if not isinstance(value, str):
        return ("page", value) if isinstance(value, int) else ("text", str(value))
    for kind, known in (("reason", REASONS), ("speed", _SPEEDS), ("rule", _RULES)):
        if value in known:
            return kind, value
    if "@" in value:
        return "email", value
    day = read_day(value)
    return ("text", value) if day is None else ("date", day)


def read_key(value: Any) -> int | None:
    """The number of an id, as a number or a text; `None` if it is no id.

    Example:
        >>> read_key("O-2054"), read_key(2054), read_key("2054"), read_key(3)
        (2054, 2054, 2054, None)
    """
    if isinstance(value, str):
        found = _ID.fullmatch(value)
        value = int(found[1]) if found else int(value) if re.fullmatch(r"\d{4}", value) else None
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 1000 <= value < 1000 * (len(_LETTERS) + 1) else None


@lru_cache(maxsize=4096)
def read_day(text: str) -> date | None:
    """A day in any form; `None` if the text is none.

    Example:
        >>> read_day("2026-06-03") == read_day("03.06.2026") == read_day("06/03/2026") == read_day("3 June 2026")
        True
    """
    for form in _DATES:
        try:
            return datetime.strptime(text, form).date()
        except ValueError:
            continue
    return None
