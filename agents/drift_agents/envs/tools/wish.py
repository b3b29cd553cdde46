"""What a customer wants, parsed from a request in words.

* `Wish`, `read_wish` - kind of request, orders, day
* `OrderWords` - an order as a request names it
* `KINDS` - the kinds of requests, with the words by which each is recognised
"""

from __future__ import annotations

import re
from datetime import date
from functools import lru_cache
from typing import NamedTuple

from drift_agents.envs.tools.call import read_day

KINDS: dict[str, str] = {
    "charged_twice": r"charged twice|two payments|two times|pay double|payment too many",
    "other_card": r"have returned|back with you|have received|you have the .* back|which i sent back",
    "missing_item": r"was missing|not find the|came without|you forgot|: no ",
    "lost": r"never arrived|still wait|not reach me|where is|has lost|is lost",
    "price_match": r"costs less|lower price|cheaper|overpaid",
    "split_delivery": r"separately|on its own|later than the rest|hold back|would suit me",
    "exchange": r"does not fit|wrong size|size of the|exchange|swap",
    "return_damaged": r"damage|broken|ruined|in pieces",
    "return_two": r"\bboth\b|neither|two things in|the [a-z ]+ and the [a-z ]+ from my",
    "return": r"changed my mind|not for me|send back|sending|no use for|do not want it any more",
    "redirect": r"please deliver|go to|can you send|only for|should rather",
    "address": r"moved|my address|i live|new home|address for me",
    "cancel": r"cancel|no longer need|call off|stop|a mistake",
}
"""By kind of request, a pattern of its words in lower case; the first that is found decides. A request about two
orders is `cancel_and_return`."""

_DAY = r"\d{1,2} [A-Z][a-z]+ \d{4}"
_ORDER = re.compile(rf"(?P<item>(?:\bof|\bfrom|\bin|\bwith|\() )?my (?:order of (?P<day>{_DAY})|latest order)", re.I)
_GREETING = re.compile(r"^I am [^,]*, (?P<email>\S+@\S+?)\. (?P<rest>.*)$", re.DOTALL)


class OrderWords(NamedTuple):
    """An order as a request names it.

    Args:
        day: the day on which it was placed; `None` for the customer's latest order.
    """

    day: date | None


class Wish(NamedTuple):
    """What a customer wants.

    Args:
        kind: one of `KINDS`, or `cancel_and_return`.
        email: the email address.
        words: the request without greeting, in lower case.
        order: the order that it is about; `None` if it is about none.
        second: another order, which is to be cancelled.
        day: the day of a delivery.
    """

    kind: str
    email: str
    words: str
    order: OrderWords | None = None
    second: OrderWords | None = None
    day: date | None = None


@lru_cache(maxsize=4096)
def read_wish(request: str) -> Wish | None:
    """Parse a request; `None` if its kind is not recognised.

    Args:
        request: the request in words.

    Example:
        >>> wish = read_wish("I am Ada Garcia, ada@example.org. Please cancel my order of 3 June 2026.")
        >>> wish.kind, wish.email, wish.order.day.isoformat()
        ('cancel', 'ada@example.org', '2026-06-03')
    """
    found = _GREETING.match(request)
    if found is None:
        return None
    rest = found["rest"]
    named = list(_ORDER.finditer(rest))
    orders = [OrderWords(read_day(one["day"]) if one["day"] else None) for one in named]
    words = rest.lower()
    if len(named) > 1:
        # the order of an item is named after a preposition, the one that is to be cancelled is not
        first = next((place for place, one in enumerate(named) if one["item"]), 0)
        return Wish("cancel_and_return", found["email"], words, orders[first], orders[1 - first])
    kind = next((kind for kind, pattern in KINDS.items() if re.search(pattern, words)), None)
    if kind is None:
        return None
    days = [read_day(day) for day in re.findall(_DAY, _ORDER.sub("", rest))]
    return Wish(kind, found["email"], words, orders[0] if orders else None, None, days[0] if days else None)
