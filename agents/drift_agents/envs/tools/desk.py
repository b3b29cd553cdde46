"""A request at the service desk: what the customer wishes, the case so far, and the manual of the tools."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from datetime import date
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from drift_agents.envs.tools.states import ShownDesk, read_day, read_key

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


RETURNS = ("return", "return_two", "return_damaged", "cancel_and_return", "exchange")
"""Kinds of requests for which items are returned."""
REFUNDS = ("return", "return_two", "return_damaged", "cancel_and_return", "other_card", "price_match", "lost",
           "charged_twice")  # fmt: skip
"""Kinds of requests for which a payment is refunded."""
_MEANINGS = {"return_damaged": "damaged", "exchange": "wrong_size"}


class Case:
    """Customer, orders, items, payment and amount of a wish, as far as they were looked up.

    Args:
        shown: the state.
        wish: the parsed request.
    """

    def __init__(self, shown: ShownDesk, wish: Wish) -> None:
        self.shown, self.wish = shown, wish

    def _keys(self, letter: str, field: str) -> list[int]:
        thousand = "COIPKSG".index(letter) + 1
        return [key for key, fields in self.shown.records.items() if key // 1000 == thousand and field in fields]

    @cached_property
    def customer(self) -> int | None:
        """The customer."""
        return next(iter(self._keys("C", "email")), None)

    @property
    def pages(self) -> int:
        """How many pages the list of orders has; 0 before it was seen."""
        return int(self.shown.records.get(self.customer or 0, {}).get("pages_of_orders", 0))

    def find_order(self, words: OrderWords) -> int | None:
        """The order that is meant; `None` while it was not seen, or may not have been.

        Args:
            words: the order as the request names it.
        """
        days = {key: read_day(str(self.shown.records[key]["date"])) for key in self._keys("O", "date")}
        if words.day is not None:
            return next((key for key, day in days.items() if day == words.day), None)
        if not self.pages:
            return None
        first, second = [*days.values(), None, None][:2]
        if first is not None and second is not None and first < second and not self.has_last_page:
            return None  # the list begins with the oldest order
        return max((day, -place, key) for place, (key, day) in enumerate(days.items()) if day is not None)[2]

    @property
    def has_last_page(self) -> bool:
        """Whether the last page of the list of orders was seen."""
        return self.pages < 2 or any(call.get("page") == self.pages for call in self.shown.calls)

    @cached_property
    def order(self) -> int | None:
        """The order that the request is about."""
        return None if self.wish.order is None else self.find_order(self.wish.order)

    @cached_property
    def second(self) -> int | None:
        """The other order, which is to be cancelled."""
        return None if self.wish.second is None else self.find_order(self.wish.second)

    @property
    def details(self) -> Mapping[str, Any]:
        """What was shown of the order."""
        return self.shown.records.get(self.order or 0, {})

    @cached_property
    def items(self) -> tuple[Mapping[str, Any], ...]:
        """The items that the request is about."""
        returned = {call.get("I") for call in self.shown.calls}
        found: dict[str, Mapping[str, Any]] = {}
        # of equal things the one in hand, else one that was not returned
        listed = sorted(
            self.details.get("items", ()),
            key=lambda item: (read_key(item["item_id"]) not in returned, item["status"] != "kept"),
        )
        for item in listed:
            if self.names_item(str(item["name"])):
                found.setdefault(str(item["name"]), item)
        return tuple(found.values())

    def names_item(self, name: str) -> bool:
        """Whether the request names a thing, as one that was bought.

        Args:
            name: the name of a product.
        """
        ending = r" (?:from|of|that came)" if self.wish.kind == "exchange" else r"\b"
        return re.search(rf"\b{re.escape(name.lower())}{ending}", self.wish.words) is not None

    @cached_property
    def product(self) -> int | None:
        """The product whose price or number is needed, where it was looked up."""
        wanted = {"exchange": False, "missing_item": True, "price_match": True}.get(self.wish.kind)
        keys = self._keys("G", "name")
        fitting = [key for key in keys if self.names_item(str(self.shown.records[key]["name"])) == wanted]
        return next(iter(fitting or keys), None)

    @cached_property
    def payment(self) -> Mapping[str, Any] | None:
        """The payment that is refunded, in part or whole."""
        payments = self.details.get("payments", ())
        place = 1 if self.wish.kind == "charged_twice" else 0
        return payments[place] if len(payments) > place else None

    @property
    def own_card(self) -> int | None:
        """The card with which was paid."""
        return None if self.payment is None else read_key(self.payment["card_id"])

    @cached_property
    def wanted_card(self) -> int | None:
        """The card to which the refund should go, if the customer names one."""
        cards = self.shown.records.get(self.customer or 0, {}).get("cards", ())
        return next(
            (read_key(card["card_id"]) for card in cards if str(card["label"]).lower() in self.wish.words), None
        )

    @property
    def meaning(self) -> str:
        """Why items are returned."""
        return _MEANINGS.get(self.wish.kind, "changed_mind")

    def cents(self, fee: int = 0) -> int | None:
        """What is to be refunded; `None` for nothing, or while it is not known.

        Args:
            fee: what is kept of an item that was returned because the customer changed their mind, in per cent.
        """
        kind = self.wish.kind
        if kind not in REFUNDS or self.payment is None:
            return None
        if kind in ("lost", "charged_twice"):
            return _in_cents(self.payment["amount"])
        prices = sum(_in_cents(item["price"]) for item in self.items)
        if kind == "price_match":
            product = self.shown.records.get(self.product or 0)
            return None if product is None else prices - _in_cents(product["price"])
        return prices * (100 - fee) // 100 if kind in RETURNS and self.meaning == "changed_mind" else prices


def _in_cents(euros: Any) -> int:
    return round(100 * float(euros))


ROLES: dict[str, str] = {
    "find_customer": "find a customer by email address",
    "list_orders": "list the orders of a customer",
    "open_account": "find a customer and list the orders",
    "find_order": "find the order that a customer placed on a day",
    "get_order": "show items payments and shipments of an order",
    "list_cards": "list the saved cards of a customer",
    "find_product": "find a product and its present price",
    "track_shipment": "show where a shipment is",
    "cancel_order": "cancel an order",
    "return_item": "register an item as returned",
    "register_return": "announce the return of an item",
    "complete_return": "complete an announced return",
    "send_item": "send a product at no charge",
    "refund": "refund a payment or a part of it",
    "draft_refund": "prepare a refund",
    "send_refund": "pay out a refund that was prepared",
    "update_address": "change the address of a customer",
    "update_street": "change the street of a customer",
    "update_city": "change the city of a customer",
    "redirect_order": "change where an order is delivered",
    "create_shipment": "add a second empty shipment to an order",
    "move_item": "move an item to another shipment of its order",
    "ship_item": "ship an item of an order separately",
    "report_lost": "report a shipment as lost",
    "decline": "decline a request about an order by a rule of the policy",
    "hand_over": "hand the request over to a person and end",
    "finish": "end the request",
}
"""Common knowledge about service desks: a usual name of a tool, and what it does."""

LIKE = 0.4
"""Tools that resemble no known one as much are not used."""

_TOOL = re.compile(r"^(?P<name>\w+)\(.*\) - (?P<about>.*)$", re.MULTILINE)
_TODAY = re.compile(r"Today is (?P<day>\d+ \w+ \d+)\.")
_NUMBERS = {
    "return_days": re.compile(r"can be returned until (\d+) days"),
    "restocking_fee": re.compile(r"less (\d+) per cent"),
    "match_days": re.compile(r"match_days: until (\d+) days"),
    "lost_days": re.compile(r"is lost (\d+) days"),
    "approval_limit": re.compile(r"refund is above (\d+)"),
}


class Manual(NamedTuple):
    """The tools on offer and the policy page.

    Args:
        names: by what a tool does (`ROLES`), its present name.
        numbers: the rules of the page with a number; those that it does not state are missing.
        packed: whether the page allows to cancel an order that is packed.
        other_card: whether the page allows refunds to another card.
        today: the day of the page.
    """

    names: Mapping[str, str]
    numbers: Mapping[str, int]
    packed: bool
    other_card: bool
    today: date | None

    def role_of(self, tool: str) -> str:
        """What a tool of this name does or did; empty if its name resembles none.

        Args:
            tool: its name, now or earlier.

        Example:
            >>> read_manual("lookup(email: text) - Find a customer by email address.").role_of("lookup")
            'find_customer'
            >>> read_manual("").role_of("cancel_orders")
            'cancel_order'
        """
        role = next((role for role, name in self.names.items() if name == tool), "")
        return role or _role_of_name(tool)

    def follow(self, offered: Iterable[str]) -> Manual:
        """The manual with names of tools that were given to them since the task was written, by resemblance.

        Args:
            offered: the names of all tools that can be called now.
        """
        unknown = [tool for tool in offered if tool not in self.names.values()]
        if not unknown:
            return self
        left = {role for role, name in self.names.items() if name not in offered}
        names = dict(self.names)
        for tool in unknown:
            role = next(iter(difflib.get_close_matches(tool, sorted(left), 1, LIKE)), None)
            if role is not None:
                names[role] = tool
        return self._replace(names=names)


@lru_cache(maxsize=1024)
def _role_of_name(tool: str) -> str:
    return next(iter(difflib.get_close_matches(tool, ROLES, 1)), "")


@lru_cache(maxsize=256)
def read_manual(task: str) -> Manual:
    """Parse the task.

    Args:
        task: the task in words: request, policy page and tools.
    """
    tools = [(found["name"], found["about"]) for found in _TOOL.finditer(task)]
    today = _TODAY.search(task)
    numbers = {rule: int(found[1]) for rule, pattern in _NUMBERS.items() if (found := pattern.search(task))}
    return Manual(
        _assign(tuple(tools)),
        numbers,
        "pending or packed" in task,
        "No refund goes to another card" not in task,
        read_day(today["day"]) if today else None,
    )


@lru_cache(maxsize=256)
def _assign(tools: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    """The tool for each role, the most alike pairs first."""
    pairs = [
        (_resemblance(role, about, name, words), role, name) for name, words in tools for role, about in ROLES.items()
    ]
    found: dict[str, str] = {}
    for likeness, role, name in sorted(pairs, key=lambda pair: -pair[0]):
        if likeness >= LIKE and role not in found and name not in found.values():
            found[role] = name
    return found


def _resemblance(role: str, about: str, name: str, words: str) -> float:
    """The share of words that two tools have in common; equal names count as one word more."""
    one, other = set(about.split()), set(re.findall(r"[a-z]+", words.lower()))
    return (len(one & other) + (role == name)) / (len(one | other) + 1)
