"""What a wish comes to, given what was looked up so far.

* `Case` - customer, orders, items, payment and amount of a wish
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from drift_agents.envs.tools.call import read_day, read_key
from drift_agents.envs.tools.matching import ShownDesk
from drift_agents.envs.tools.wish import OrderWords, Wish

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
