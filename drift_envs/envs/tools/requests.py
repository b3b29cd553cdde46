"""The requests of customers: which there are, their words, and the database that each should lead to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, timedelta
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from drift_envs.envs.tools.database import (
    OPEN,
    TODAY,
    Changes,
    Database,
    DeskRules,
    DeskState,
    RecordKind,
    draw_database,
)
from drift_envs.knobs import FrozenMapping

WORDINGS: dict[str, tuple[str, str, str]] = {
    "cancel": (
        "Please cancel {order}.",
        "I no longer need {order}. Can you cancel it?",
        "I would like to call off {order}.",
    ),
    "return": (
        "I have changed my mind about the {item} from {order} and want to return it for a refund.",
        "The {item} from {order} is not for me after all. Please take it back and refund it.",
        "I want to send back the {item} of {order}, since I do not want it any more, and get my money.",
    ),
    "return_damaged": (
        "The {item} from {order} arrived damaged. I want to return it for a refund.",
        "The {item} of {order} was broken when it came. Please take it back and refund it.",
        "There is damage to the {item} from {order}. I would like my money back for it.",
    ),
    "return_two": (
        "I have changed my mind about the {item} and the {other} from {order} and want to return both for a refund.",
        "Neither the {item} nor the {other} of {order} is for me after all. Please take them back and refund both.",
        "I want to send back the {item} and the {other} from {order}, which I no longer want, and get my money.",
    ),
    "exchange": (
        "The {item} from {order} does not fit. Please exchange it for the {product}.",
        "I need the {product} in place of the {item} from {order}, which has the wrong size.",
        "The size of the {item} of {order} is wrong. Can I have the {product} for it?",
    ),
    "address": (
        "I have moved. My new address is {street} in {city}.",
        "Please change my address to {street}, {city}.",
        "From now on I live in {city}, {street}. Please update my account.",
    ),
    "redirect": (
        "Please deliver {order} to {street} in {city} instead.",
        "I will not be at home. Can {order} go to {street}, {city}?",
        "Can you send {order} to {city}, {street}? My account should stay as it is.",
    ),
    "other_card": (
        "I have returned the {item} from {order} and wait for the refund. Please pay it to my {card}.",
        "The {item} of {order} is back with you. I want the money on my {card}.",
        "My refund for the {item} from {order}, which you have received, should go to my {card}.",
    ),
    "split_delivery": (
        "Please deliver the {item} of {order} separately on {day}, and the rest as planned.",
        "Can the {item} from {order} come on its own on {day}?",
        "I need the {item} of {order} later than the rest: on {day}.",
    ),
    "price_match": (
        "The {item} that I bought with {order} costs less now. Please refund the difference.",
        "I have seen the {item} from {order} at a lower price in your shop. Can I have the difference back?",
        "You have made the {item} cheaper since {order}. I would like what I paid too much.",
    ),
    "lost": (
        "The parcel of {order} has never arrived. I want my money back.",
        "I still wait for {order}, it must be lost. Please refund it.",
        "{order} did not reach me. I think the parcel is lost, and want a refund.",
    ),
    "charged_twice": (
        "I was charged twice for {order}. Please refund one payment.",
        "There are two payments for {order} on my card. I want one of them back.",
        "You have taken the money for {order} two times.",
    ),
    "missing_item": (
        "The {item} was missing from the parcel of {order}. Please send it.",
        "I did not find the {item} in the parcel of {order}. Can you send it again?",
        "{order} came without the {item}, which I still want.",
    ),
    "cancel_and_return": (
        "Please cancel {second}. And I have changed my mind about the {item} from {order}: I want to return it.",
        "Two things: call off {second}, and take back the {item} of {order}, which I no longer want.",
        "I want to return the {item} from {order}, which is not for me after all, and {second} should be cancelled.",
    ),
}

HELD_OUT: dict[str, tuple[str, str]] = {
    "cancel": ("Stop {order}, please.", "{order} was a mistake, I do not want it to be sent."),
    "return": (
        "I am sending the {item} back that came with {order}; it turned out I have no use for it. Refund me, please.",
        "No use for the {item} ({order}) after all. How do I get my money for it?",
    ),
    "return_damaged": (
        "Your carrier has ruined the {item} that came with {order}. I expect a refund.",
        "Opened {order} and the {item} was in pieces. Money back, please.",
    ),
    "return_two": (
        "Both the {item} and the {other} ({order}) can go back, I have no use for them. Refund me, please.",
        "No use for two things in {order}, the {item} and the {other}. How do I get my money for them?",
    ),
    "exchange": (
        "Wrong size: the {item} of {order}. I will take the {product} for it.",
        "Swap the {item} that came with {order} for the {product}, please, it is too small.",
    ),
    "address": ("New home: {street}, {city}.", "You have an old address for me. It should be {street}, {city}."),
    "redirect": (
        "{order} should rather go to my sister at {street}, {city}.",
        "Only for {order}: deliver to {street} in {city}, please.",
    ),
    "other_card": (
        "You have the {item} of {order} back, but my money is still with you. I want it on the {card}.",
        "Refund the {item} ({order}), which I sent back, to the {card}, please.",
    ),
    "split_delivery": (
        "Hold back the {item} of {order} and deliver it on {day}.",
        "{day} would suit me for the {item} of {order}; send the others when they are ready.",
    ),
    "price_match": (
        "A few days after {order} the {item} is cheaper. You match prices, do you not?",
        "I overpaid for the {item} in {order}, as your new price shows.",
    ),
    "lost": ("Where is {order}? I give up: money back, please.", "The carrier has lost {order}. Refund it."),
    "charged_twice": ("Why do I pay double for {order}?", "One payment too many for {order}: send it back."),
    "missing_item": (
        "You forgot the {item} of {order}.",
        "I unpacked {order}: no {item}. I would like to have it, please.",
    ),
    "cancel_and_return": (
        "Stop {second}, please, and refund me the {item} of {order}, for which I have no use; I send it back.",
        "{second} was a mistake, do not send it. The {item} from {order} goes back too, no use for it.",
    ),
}


KINDS = tuple(WORDINGS)
"""The kinds of requests."""

MOST_OF_A_KIND = 12
"""How many requests of a kind a shop has, before they are put into words."""

HARM = 0.5
"""What every changed record of another customer takes off the score."""

_STREAM = 0x7E90


class DeskGoal(NamedTuple):
    """What the database should be like in the end.

    Args:
        changes: the fields that should have changed.
        end: `finish` or `hand_over`.
    """

    changes: Changes
    end: str = "finish"


class ServiceRequest(NamedTuple):
    """A request.

    Args:
        kind: one of `KINDS`.
        shop: the number of the shop.
        customer: who makes it.
        order: the order that it is about, 0 for none.
        items: the items that it is about.
        second: another order that it is about, 0 for none.
        product: a product that is wanted, 0 for none.
        card: a card that is wanted, 0 for none.
        address: a street and a city, or empty.
        day: a day, if one is wanted.
        text: the request in words.
    """

    kind: str
    shop: int
    customer: int
    order: int = 0
    items: tuple[int, ...] = ()
    second: int = 0
    product: int = 0
    card: int = 0
    address: tuple[str, ...] = ()
    day: date | None = None
    text: str = ""

    @property
    def stated(self) -> FrozenMapping:
        """The values that the request states, by argument."""
        return _stated(self)


@lru_cache(maxsize=4096)
def _stated(request: ServiceRequest) -> FrozenMapping:
    database = draw_database(request.shop)
    records = database.records
    orders = [one for one in (request.order, request.second) if one and _is_dated(database, request, one)]
    days = [*(records[one]["date"] for one in orders), *([request.day] if request.day else [])]
    products = [*request.items, *([request.product] if request.product else [])]
    return FrozenMapping(
        {
            "email": (records[request.customer]["email"],),
            "street": request.address[:1],
            "city": request.address[1:],
            "date": tuple(dict.fromkeys(days)),
            "name": tuple(records[one]["name"] for one in products),
        }
    )


def _is_dated(database: Database, request: ServiceRequest, order: int) -> bool:
    """Whether an order is named by its date, and not as the latest one."""
    return bool(database.records[request.customer]["orders"][0] != order)


@lru_cache(maxsize=64)
def list_requests(shop: int, held_out: bool = False) -> tuple[ServiceRequest, ...]:
    """Every request of a shop, kinds in turn.

    Args:
        shop: the number of the shop.
        held_out: whether they have the wordings that are held out for tests.

    Example:
        >>> requests = list_requests(7)
        >>> len({request.kind for request in requests}), len({request.text for request in requests}) == len(requests)
        (14, True)
    """
    database = draw_database(shop)
    rng = np.random.default_rng([_STREAM, shop])
    by_kind = []
    for kind in KINDS:
        found = list(_FINDERS[kind](database, kind))
        chosen = rng.permutation(len(found))[:MOST_OF_A_KIND]
        by_kind.append([found[int(place)] for place in chosen])
    wordings = HELD_OUT if held_out else WORDINGS
    return tuple(
        request._replace(text=_write(database, request, template))
        for number in range(len(next(iter(wordings.values()))))
        for turn in range(MOST_OF_A_KIND)
        for requests in by_kind
        for request in requests[turn : turn + 1]
        for template in [wordings[request.kind][number]]
    )


def _write(database: Database, request: ServiceRequest, template: str) -> str:
    records = database.records
    customer = records[request.customer]

    def order(key: int) -> str:
        if not key:
            return ""
        return f"my order of {_words(records[key]['date'])}" if _is_dated(database, request, key) else "my latest order"

    items = [records[one]["name"] for one in request.items]
    street, city = request.address or ("", "")
    words = template.format(
        order=order(request.order),
        second=order(request.second),
        item=items[0] if items else "",
        other=items[-1] if items else "",
        product=records[request.product]["name"] if request.product else "",
        card=records[request.card]["label"] if request.card else "",
        street=street,
        city=city,
        day="" if request.day is None else _words(request.day),
    )
    return f"I am {customer['name']}, {customer['email']}. {words[0].upper()}{words[1:]}"


def _words(day: date) -> str:
    return f"{day.day} {day:%B %Y}"


def find_goal(request: ServiceRequest, rules: DeskRules) -> DeskGoal:
    """What the database should be like in the end.

    Args:
        request: the request.
        rules: the rules in force.
    """
    return _GoalWriter(request, rules).goal


class _GoalWriter:
    """Writes down what should change for a request."""

    def __init__(self, request: ServiceRequest, rules: DeskRules) -> None:
        self.request, self.rules = request, rules
        self.records = draw_database(request.shop).records
        self.changes: dict[tuple[int, str], Any] = {}
        self.refunded = 0

    @cached_property
    def goal(self) -> DeskGoal:
        """The goal."""
        getattr(self, f"_{self.request.kind}")()
        if self.rules.needs_person(self.refunded):
            return DeskGoal((), "hand_over")
        base = self.records
        changed = {key: value for key, value in self.changes.items() if base[key[0]].get(key[1]) != value}
        return DeskGoal(tuple(sorted(changed.items(), key=lambda pair: pair[0])))

    @property
    def _order_record(self) -> Any:
        return self.records[self.request.order]

    def _decline(self, order: int, rule: str) -> None:
        self.changes[order, "declined"] = rule

    def _pay(self, cents: int, payment: int | None = None, card: int | None = None) -> None:
        payment = self._order_record["payments"][0] if payment is None else payment
        own = self.records[payment]["card"]
        # customers expect the card that paid, whatever the tool does by default
        self.changes[payment, "refunds"] = ((own if card is None else card, cents),)
        self.refunded = cents

    def _take_back(self, reason: str) -> bool:
        """Return the items, unless a rule forbids it."""
        delivered = self.records[self._order_record["shipments"][0]]["delivered"]
        if reason != "damaged" and not self.rules.is_within("return_days", delivered):
            self._decline(self.request.order, "return_days")
            return False
        for item in self.request.items:
            self.changes[item, "status"] = "returned"
            self.changes[item, "reason"] = reason
        return True

    def _price(self) -> int:
        return sum(self.records[item]["price"] for item in self.request.items)

    def _call_off(self, order: int) -> None:
        if self.rules.may_cancel(self.records[order]["status"]):
            self.changes[order, "status"] = "cancelled"
        else:
            self._decline(order, "cancel_until")

    def _cancel(self) -> None:
        self._call_off(self.request.order)

    def _return(self) -> None:
        if self._take_back("changed_mind"):
            self._pay(self.rules.after_fee(self._price()))

    _return_two = _return

    def _return_damaged(self) -> None:
        self._take_back("damaged")
        self._pay(self._price())

    def _exchange(self) -> None:
        if self._take_back("wrong_size"):
            self.changes[self.request.order, "sent"] = ((self.request.product, "standard"),)

    def _address(self) -> None:
        self._move(self.request.customer)

    def _redirect(self) -> None:
        self._move(self.request.order)

    def _move(self, key: int) -> None:
        self.changes[key, "street"], self.changes[key, "city"] = self.request.address

    def _other_card(self) -> None:
        if self.rules.policy["other_card"]:
            self._pay(self._price(), card=self.request.card)
        else:
            self._decline(self.request.order, "other_card")

    def _split_delivery(self) -> None:
        added = self._order_record["shipments"][1]
        self.changes |= {(added, "exists"): True, (added, "date"): self.request.day}
        self.changes[self.request.items[0], "shipment"] = added

    def _price_match(self) -> None:
        if not self.rules.is_within("match_days", self._order_record["date"]):
            self._decline(self.request.order, "match_days")
            return
        item = self.records[self.request.items[0]]
        self._pay(item["price"] - self.records[item["product"]]["price"])

    def _lost(self) -> None:
        shipment = self._order_record["shipments"][0]
        if self.rules.is_lost(self.records[shipment]["sent"]):
            self.changes[shipment, "status"] = "lost"
            self._pay(self.records[self._order_record["payments"][0]]["amount"])
        else:
            self._decline(self.request.order, "lost_days")

    def _charged_twice(self) -> None:
        payment = self._order_record["payments"][1]
        self._pay(self.records[payment]["amount"], payment)

    def _missing_item(self) -> None:
        product = self.records[self.request.items[0]]["product"]
        self.changes[self.request.order, "sent"] = ((product, "standard"),)

    def _cancel_and_return(self) -> None:
        self._call_off(self.request.second)
        self._return()


def score(database: Database, request: ServiceRequest, goal: DeskGoal, state: DeskState) -> float:
    """The score of an episode's end: 1 if the database is as it should be, less what was done to others' records.

    Args:
        database: the records before any write.
        request: the request.
        goal: its goal.
        state: the state.

    Returns:
        0.0 before the end.
    """
    if state.ended != goal.end:
        return 0.0
    own = tuple(pair for pair in state.changes if database.owners.get(pair[0][0]) == request.customer)
    others = {pair[0][0] for pair in state.changes} - {pair[0][0] for pair in own}
    return max(0.0, float(own == goal.changes) - HARM * len(others))


Finder = Callable[[Database, str], Iterator[ServiceRequest]]


def _orders(database: Database, *statuses: str, payments: int = 1) -> Iterator[tuple[int, dict[str, Any]]]:
    for order in database.of(RecordKind.ORDER):
        record: Any = database.records[order]
        if record["status"] in statuses and len(record["payments"]) == payments:
            yield order, record


def _kept(database: Database, record: dict[str, Any]) -> list[int]:
    return [item for item in record["items"] if database.records[item]["status"] == "kept"]


def _about_orders(*statuses: str, payments: int = 1) -> Finder:
    def find(database: Database, kind: str) -> Iterator[ServiceRequest]:
        for order, record in _orders(database, *statuses, payments=payments):
            yield ServiceRequest(kind, database.number, record["customer"], order)

    return find


def _about_items(count: int, *statuses: str) -> Finder:
    def find(database: Database, kind: str) -> Iterator[ServiceRequest]:
        for order, record in _orders(database, *statuses):
            kept = _kept(database, record)
            if len(kept) >= count:
                yield ServiceRequest(kind, database.number, record["customer"], order, tuple(kept[:count]))

    return find


def _find_cheaper(database: Database, kind: str) -> Iterator[ServiceRequest]:
    for order, record in _orders(database, "delivered", "shipped", *OPEN):
        for item in _kept(database, record):
            if database.records[item]["price"] > database.records[database.records[item]["product"]]["price"]:
                yield ServiceRequest(kind, database.number, record["customer"], order, (item,))
                break


def _find_exchanges(database: Database, kind: str) -> Iterator[ServiceRequest]:
    products = database.of(RecordKind.PRODUCT)
    for request in _about_items(1, "delivered")(database, kind):
        bought = database.records[request.items[0]]["product"]
        yield request._replace(product=products[(products.index(bought) + request.order) % len(products)])


def _find_moves(database: Database, kind: str) -> Iterator[ServiceRequest]:
    customers = database.of(RecordKind.CUSTOMER)
    if kind == "address":
        requests = [ServiceRequest(kind, database.number, one) for one in customers]
    else:
        requests = list(_about_orders(*OPEN)(database, kind))
    for request in requests:  # the address of a neighbour, so that it is a new one
        after = database.records[customers[(customers.index(request.customer) + 1) % len(customers)]]
        yield request._replace(address=(after["street"], after["city"]))


def _find_other_cards(database: Database, kind: str) -> Iterator[ServiceRequest]:
    for order, record in _orders(database, "delivered"):
        returned = [item for item in record["items"] if database.records[item]["status"] == "returned"]
        if returned:
            paid = database.records[record["payments"][0]]["card"]
            (card,) = (one for one in database.records[record["customer"]]["cards"] if one != paid)
            yield ServiceRequest(kind, database.number, record["customer"], order, (returned[0],), card=card)


def _find_splits(database: Database, kind: str) -> Iterator[ServiceRequest]:
    for request in _about_items(1, *OPEN)(database, kind):
        day = TODAY + timedelta(days=5 + request.order % 7)
        yield request._replace(day=day)


def _find_pairs(database: Database, kind: str) -> Iterator[ServiceRequest]:
    for request in _about_items(1, "delivered")(database, kind):
        orders = database.records[request.customer]["orders"]
        for order in orders:
            if database.records[order]["status"] in OPEN:
                yield request._replace(second=order)
                break


_FINDERS: dict[str, Finder] = {
    "cancel": _about_orders(*OPEN, "shipped"),
    "return": _about_items(1, "delivered"),
    "return_damaged": _about_items(1, "delivered"),
    "return_two": _about_items(2, "delivered"),
    "exchange": _find_exchanges,
    "address": _find_moves,
    "redirect": _find_moves,
    "other_card": _find_other_cards,
    "split_delivery": _find_splits,
    "price_match": _find_cheaper,
    "lost": _about_orders("shipped"),
    "charged_twice": _about_orders("delivered", "shipped", *OPEN, payments=2),
    "missing_item": _about_items(1, "delivered"),
    "cancel_and_return": _find_pairs,
}
