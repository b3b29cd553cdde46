"""A shop before any call: its database drawn from a number, the tools on offer, the rules in force, the policy page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from enum import Enum
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np

from drift_envs.knobs import FrozenMapping, Value

TODAY = date(2026, 6, 30)

CUSTOMERS = 16
"""How many customers a shop has."""

SECOND_SHIPMENT = 500
"""The distance between the id of an order's first shipment and that of the one that may be added."""

_STREAM = 0x70015

_FIRST = ("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gia", "Hugo", "Ida", "Jon", "Kira", "Leo", "Mia", "Nils", "Olga")
_LAST = ("Adler", "Brandt", "Costa", "Dubois", "Eriksen", "Fischer", "Garcia", "Hansen", "Ivanova", "Jansen", "Keller")
_STREETS = ("Oak Street", "Mill Lane", "Harbour Road", "Station Road", "Garden Walk", "Church Hill", "Park Avenue")
_CITIES = ("Aarhus", "Bremen", "Cork", "Delft", "Espoo", "Ghent", "Graz", "Lille", "Porto", "Turin")
_BRANDS = ("Visa", "Mastercard", "Amex")
_WORDS = (
    "kettle", "toaster", "desk lamp", "backpack", "rain jacket", "running shoes", "wool scarf", "tea pot", "frying pan",
    "headphones", "keyboard", "wall clock", "bath towel", "picnic rug", "tool box", "garden hose", "bike light",
    "water bottle", "coffee grinder", "office chair", "camp stove", "bread knife", "alarm clock", "yoga mat",
)  # fmt: skip


class RecordKind(Enum):
    """A kind of record: the first digit of its ids, and the letter of their written form."""

    CUSTOMER = (1, "C")
    ORDER = (2, "O")
    ITEM = (3, "I")
    PAYMENT = (4, "P")
    CARD = (5, "K")
    SHIPMENT = (6, "S")
    PRODUCT = (7, "G")

    @property
    def letter(self) -> str:
        """The first character of written ids."""
        return str(self.value[1])


_KINDS = {kind.value[0]: kind for kind in RecordKind}


def kind_of(number: int) -> RecordKind | None:
    """The kind of record that an id belongs to, by its first digit; `None` if there is no such kind.

    Args:
        number: the id.

    Example:
        >>> kind_of(2004)
        <RecordKind.ORDER: (2, 'O')>
    """
    return _KINDS.get(number // 1000)


@dataclass(frozen=True)
class Database:
    """The database before any write. Records are shared by all episodes and are never changed.

    Args:
        number: the number from which it is drawn.
        records: the fields of each record, by id. Amounts are in cents, dates are `datetime.date`.
        owners: by id, the customer to whom a record belongs; products belong to none.
        emails: the customer of each email address.
        products: the product of each name.
    """

    number: int
    records: Mapping[int, Mapping[str, Any]]
    owners: Mapping[int, int]
    emails: Mapping[str, int]
    products: Mapping[str, int]

    def __hash__(self) -> int:
        """Equal numbers give equal shops."""
        return hash(self.number)

    def of(self, kind: RecordKind) -> list[int]:
        """The ids of all records of a kind.

        Args:
            kind: the kind.
        """
        return [number for number in self.records if kind_of(number) is kind]


@lru_cache(maxsize=64)
def draw_database(number: int) -> Database:
    """Draw the database of a shop.

    Args:
        number: the number of the shop, at least 0.

    Example:
        >>> shop = draw_database(7)
        >>> shop is draw_database(7), len(shop.of(RecordKind.CUSTOMER)), shop.records[1000]["email"]
        (True, 16, 'dan.costa@example.org')
    """
    return _Drawing(number).finish()


class _Drawing:
    """A shop that is being drawn."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.rng = np.random.default_rng([_STREAM, number])
        self.records: dict[int, dict[str, Any]] = {}
        self.owners: dict[int, int] = {}
        self.counts = dict.fromkeys(RecordKind, 0)

    def finish(self) -> Database:
        """Draw everything."""
        for word in _WORDS:  # prices that stay whole cents after a fee of any multiple of five per cent
            self._add(RecordKind.PRODUCT, None, name=word, price=200 * int(self.rng.integers(6, 90)))
        names = [(first, last) for first in _FIRST for last in _LAST]
        for place in self.rng.permutation(len(names))[:CUSTOMERS]:
            self._add_customer(*names[int(place)])
        emails = {one["email"]: key for key, one in self.records.items() if kind_of(key) is RecordKind.CUSTOMER}
        products = {one["name"]: key for key, one in self.records.items() if kind_of(key) is RecordKind.PRODUCT}
        return Database(self.number, self.records, self.owners, emails, products)

    def _add(self, kind: RecordKind, owner: int | None, **fields: Any) -> int:
        key = kind.value[0] * 1000 + self.counts[kind]
        self.counts[kind] += 1
        self.records[key] = fields
        if kind is not RecordKind.PRODUCT:
            self.owners[key] = key if owner is None else owner
        return key

    def _choose(self, options: tuple[str, ...]) -> str:
        return options[int(self.rng.integers(len(options)))]

    def _add_customer(self, first: str, last: str) -> None:
        email = f"{first}.{last}@example.org".lower()
        street, city = f"{self._choose(_STREETS)} {int(self.rng.integers(1, 99))}", self._choose(_CITIES)
        key = self._add(RecordKind.CUSTOMER, None, name=f"{first} {last}", email=email, street=street, city=city)
        cards = tuple(
            self._add(RecordKind.CARD, key, label=f"{brand} {int(self.rng.integers(1000, 9999))}")
            for brand in self.rng.permutation(_BRANDS)[:2]
        )
        # Newest first, on days that differ, so that a date names an order: open ones, recent ones, old ones.
        spans = ((1, 8, 1), (9, 30, int(self.rng.integers(2, 4))), (31, 70, int(self.rng.integers(1, 3))))
        ages = [
            age
            for low, high, size in spans
            for age in sorted(low + int(one) for one in self.rng.choice(high - low + 1, size=size, replace=False))
        ]
        self.records[key] |= {"cards": cards, "orders": tuple(self._add_order(key, age, cards) for age in ages)}

    def _add_order(self, customer: int, age: int, cards: tuple[int, ...]) -> int:
        rng, owner = self.rng, self.records[customer]
        status = self._draw_status(age)
        sent = delivered = None
        if status in ("shipped", "delivered"):
            sent_age = max(age - int(rng.integers(1, 3)), 0)
            sent = TODAY - timedelta(days=sent_age)
            if status == "delivered":
                delivered = TODAY - timedelta(days=max(sent_age - int(rng.integers(1, 6)), 0))
        order = self._add(
            RecordKind.ORDER,
            customer,
            customer=customer,
            date=TODAY - timedelta(days=age),
            status=status,
            street=owner["street"],
            city=owner["city"],
            sent=(),
            declined="",
        )
        shipment = self._add(
            RecordKind.SHIPMENT,
            customer,
            order=order,
            status=status,
            sent=sent,
            delivered=delivered,
            exists=True,
            date=None,
        )
        added = shipment + SECOND_SHIPMENT
        self.records[added] = {
            "order": order, "status": "planned", "sent": None, "delivered": None, "exists": False, "date": None
        }  # fmt: skip
        self.owners[added] = customer
        items = tuple(
            self._add_item(customer, order, int(product), shipment)
            for product in rng.choice(len(_WORDS), size=int(rng.integers(1, 4)), replace=False)
        )
        if status == "delivered" and len(items) > 1 and rng.random() < 0.3:
            self.records[items[0]] |= {"status": "returned", "reason": "changed_mind"}
        total = sum(self.records[item]["price"] for item in items)
        card = cards[int(rng.integers(2))]
        payments = tuple(
            self._add(RecordKind.PAYMENT, customer, order=order, amount=total, card=card, refunds=())
            for _ in range(2 if rng.random() < 0.2 else 1)
        )
        self.records[order] |= {"items": items, "payments": payments, "shipments": (shipment, added)}
        return order

    def _draw_status(self, age: int) -> str:
        """Young orders are open, old ones delivered or lost."""
        if age <= 8:
            return self._choose(("pending", "packed", "pending"))
        if age <= 30:
            return self._choose(("shipped", "delivered", "delivered"))
        return "delivered"

    def _add_item(self, customer: int, order: int, product: int, shipment: int) -> int:
        key = RecordKind.PRODUCT.value[0] * 1000 + product
        one = self.records[key]
        price = one["price"] + 200 * int(self.rng.choice((0, 0, 1, 4, 8)))
        return self._add(
            RecordKind.ITEM,
            customer,
            order=order,
            product=key,
            name=one["name"],
            price=price,
            status="kept",
            reason="",
            shipment=shipment,
        )


REASONS = ("changed_mind", "damaged", "wrong_size")
"""Reason codes of a return; what each means is a knob."""

RULES = ("cancel_until", "return_days", "match_days", "lost_days", "other_card")
"""The rules of the policy for which a request can be declined."""

SPEEDS = ("standard", "express")


@dataclass(frozen=True)
class Argument:
    """An argument of a tool.

    Args:
        name: its name.
        kind: `customer`, `order`, `item`, `payment`, `card`, `shipment` or `product` for ids; `text`, `date`,
            `amount`, `integer`, `reason`, `rule`, `speed` or `flag`.
        about: its description.
        required: whether a call needs it.
    """

    name: str
    kind: str
    about: str
    required: bool = True


@dataclass(frozen=True)
class ToolSpec:
    """A tool.

    Args:
        name: its name.
        about: its description.
        effect: `read`, `write` or `end`.
        arguments: its arguments.
        family: the tool whose place it takes, when that is split or merged; by default itself.
    """

    name: str
    about: str
    effect: Literal["read", "write", "end"]
    arguments: tuple[Argument, ...] = ()
    family: str = ""

    def __post_init__(self) -> None:
        """A tool belongs to its own family."""
        object.__setattr__(self, "family", self.family or self.name)


_EMAIL = Argument("email", "text", "email address of the customer")
_CUSTOMER = Argument("customer_id", "customer", "the customer")
_ORDER = Argument("order_id", "order", "the order")
_ITEM = Argument("item_id", "item", "the item of an order")
_PAYMENT = Argument("payment_id", "payment", "the payment")
_SHIPMENT = Argument("shipment_id", "shipment", "the shipment")
_PRODUCT = Argument("product_id", "product", "the product")
_CARD = Argument("card_id", "card", "a card of the customer, if not the default", required=False)
_AMOUNT = Argument("amount", "amount", "amount of money")
_DATE = Argument("date", "date", "day")
_REASON = Argument("reason", "reason", "reason code")
_STREET = Argument("street", "text", "street and number")
_CITY = Argument("city", "text", "city")
_PAGE = Argument("page", "integer", "page, from 1", required=False)

CATALOGUE: dict[str, ToolSpec] = {
    tool.name: tool
    for tool in (
        ToolSpec("find_customer", "Find a customer by email address.", "read", (_EMAIL,)),
        ToolSpec("list_orders", "List the orders of a customer, two a page.", "read", (_CUSTOMER, _PAGE)),
        ToolSpec("open_account", "Find a customer and list the orders.", "read", (_EMAIL, _PAGE), "find_customer"),
        ToolSpec("find_order", "Find the order that a customer placed on a day.", "read", (_CUSTOMER, _DATE)),
        ToolSpec("get_order", "Show items, payments and shipments of an order.", "read", (_ORDER,)),
        ToolSpec("list_cards", "List the saved cards of a customer.", "read", (_CUSTOMER,)),
        ToolSpec("find_product", "Find a product and its present price.", "read",
                 (Argument("name", "text", "name of the product"),)),
        ToolSpec("track_shipment", "Show where a shipment is.", "read", (_SHIPMENT,)),
        ToolSpec("cancel_order", "Cancel an order.", "write", (_ORDER,)),
        ToolSpec("return_item", "Register an item as returned.", "write", (_ITEM, _REASON)),
        ToolSpec("register_return", "Announce the return of an item.", "write", (_ITEM,), "return_item"),
        ToolSpec("complete_return", "Complete an announced return.", "write", (_ITEM, _REASON), "return_item"),
        ToolSpec("send_item", "Send a product at no charge.", "write",
                 (_ORDER, _PRODUCT, Argument("speed", "speed", "speed, if not the default", required=False))),
        ToolSpec("refund", "Refund a payment, or a part of it.", "write", (_PAYMENT, _AMOUNT, _CARD)),
        ToolSpec("draft_refund", "Prepare a refund.", "write", (_PAYMENT, _AMOUNT), "refund"),
        ToolSpec("send_refund", "Pay out a refund that was prepared.", "write", (_PAYMENT, _CARD), "refund"),
        ToolSpec("update_address", "Change the address of a customer.", "write", (_CUSTOMER, _STREET, _CITY)),
        ToolSpec("update_street", "Change the street of a customer.", "write", (_CUSTOMER, _STREET), "update_address"),
        ToolSpec("update_city", "Change the city of a customer.", "write", (_CUSTOMER, _CITY), "update_address"),
        ToolSpec("redirect_order", "Change where an order is delivered.", "write", (_ORDER, _STREET, _CITY)),
        ToolSpec("create_shipment", "Add a second, empty shipment to an order.", "write", (_ORDER, _DATE)),
        ToolSpec("move_item", "Move an item to another shipment of its order.", "write", (_ITEM, _SHIPMENT)),
        ToolSpec("ship_item", "Ship an item of an order separately.", "write", (_ITEM, _DATE), "create_shipment"),
        ToolSpec("report_lost", "Report a shipment as lost.", "write", (_SHIPMENT,)),
        ToolSpec("decline", "Decline a request about an order, by a rule of the policy.", "write",
                 (_ORDER, Argument("rule", "rule", "rule of the policy"))),
        ToolSpec("hand_over", "Hand the request over to a person, and end.", "end", (_ORDER,)),
        ToolSpec("finish", "End the request.", "end"),
    )
}  # fmt: skip

SPLITS = {
    "return_item": ("register_return", "complete_return"),
    "refund": ("draft_refund", "send_refund"),
    "update_address": ("update_street", "update_city"),
}
"""The tools that can be split, and what takes their place."""

MERGERS = {
    "open_account": ("find_customer", "list_orders"),
    "ship_item": ("create_shipment", "move_item"),
}
"""The tools that can take the place of two."""

EXTRAS = {
    "email": replace(_EMAIL, about="email address of the customer, as a check"),
    "confirm": Argument("confirm", "flag", "has to be true"),
}
"""The arguments that a tool may come to require."""


POLICY: dict[str, Value] = {
    "cancel_until": "packed",
    "return_days": 30,
    "restocking_fee": 0,
    "match_days": 20,
    "lost_days": 14,
    "other_card": True,
    "approval_limit": 400,
}
"""The rules of the policy: statuses, days, per cent and euros."""

OPEN = ("pending", "packed")
"""The statuses of an order that was not shipped, in their order."""

DEFAULTS = {"refund": "original", "send_item": "standard"}
"""Where a refund without a card goes, and how fast a product without a speed is sent."""

UNITS = {"euros": 100, "cents": 1, "dollars": 80}
"""The cents that an amount of one stands for."""

ORDERINGS = ("newest", "oldest")

RULE_KNOBS = ("policy", "units", "defaults", "enum", "order", "stale", "silent")
"""The knobs on which the rules depend."""


class DeskRules(NamedTuple):
    """The rules in force.

    Args:
        policy: the value of each rule of `POLICY`.
        unit: the cents that an amount of one stands for.
        defaults: what happens when an argument is left out, as `DEFAULTS`.
        reasons: what each reason code means.
        newest_first: the order of lists.
        stale: how many calls reads lag behind.
        silent: by tool, how many of the first writes of an episode report success and do nothing.
    """

    policy: FrozenMapping
    unit: int
    defaults: FrozenMapping
    reasons: FrozenMapping
    newest_first: bool
    stale: int
    silent: FrozenMapping

    def may_cancel(self, status: str) -> bool:
        """Whether an order of this status may be cancelled."""
        return status in OPEN[: OPEN.index(self.policy["cancel_until"]) + 1]

    def is_within(self, rule: str, since: date) -> bool:
        """Whether a day lies within the days of a rule."""
        return bool((TODAY - since).days <= self.policy[rule])

    def is_lost(self, sent: date) -> bool:
        """Whether a shipment sent that day counts as lost."""
        return bool((TODAY - sent).days >= self.policy["lost_days"])

    def after_fee(self, cents: int) -> int:
        """What is refunded for an item that was returned because the customer changed their mind."""
        return cents * (100 - int(self.policy["restocking_fee"])) // 100

    def needs_person(self, cents: int) -> bool:
        """Whether a refund needs a person's approval."""
        return bool(cents > 100 * self.policy["approval_limit"])


def make_rules(knobs: Mapping[str, Value]) -> DeskRules:
    """The rules for knob values; equal values share one object.

    Args:
        knobs: canonical values of some or all knobs; the others have their default.

    Example:
        >>> make_rules({"units": "cents"}).unit, make_rules({}).may_cancel("shipped")
        (1, False)
    """
    return _rules(tuple((name, knobs[name]) for name in RULE_KNOBS if name in knobs))


@lru_cache(maxsize=512)
def _rules(values: tuple[tuple[str, Value], ...]) -> DeskRules:
    knobs = dict(values)
    return DeskRules(
        FrozenMapping({**POLICY, **knobs.get("policy", {})}),
        UNITS[knobs.get("units", "euros")],
        FrozenMapping({**DEFAULTS, **knobs.get("defaults", {})}),
        FrozenMapping({**{code: code for code in REASONS}, **knobs.get("enum", {})}),
        knobs.get("order", "newest") == "newest",
        knobs.get("stale", 0),
        FrozenMapping(knobs.get("silent", {})),
    )


def write_page(written: Mapping[str, Value]) -> str:
    """The policy page in words.

    Args:
        written: the value of each rule that the page states, which may not be the one in force.

    Example:
        >>> from drift_envs.envs.tools.database import POLICY
        >>> print(write_page(POLICY).splitlines()[1])
        - cancel_until: an order can be cancelled while it is pending or packed.
    """
    statuses = "pending" if written["cancel_until"] == "pending" else "pending or packed"
    fee = written["restocking_fee"]
    less = f", less {fee} per cent if the customer has changed their mind" if fee else ""
    other = "A refund may go to another saved card." if written["other_card"] else "No refund goes to another card."
    return "\n".join(
        (
            f"Policy of the service desk. Today is {TODAY.day} {TODAY:%B %Y}.",
            f"- cancel_until: an order can be cancelled while it is {statuses}.",
            f"- return_days: an item can be returned until {written['return_days']} days after its delivery, a damaged "
            f"one at any time. Refund its price{less}.",
            "- Exchange: return the item, reason wrong_size, and send the other product at no charge.",
            f"- match_days: until {written['match_days']} days after an order, refund what an item now costs less.",
            f"- lost_days: a shipment is lost {written['lost_days']} days after it was sent. Report it, and refund the "
            "whole payment.",
            "- Charged twice: refund the later payment. Missing item: send it again.",
            f"- other_card: {other}",
            f"- approval_limit: if the refund is above {written['approval_limit']}, do nothing but hand over.",
            "- Send and refund as is usual, unless the customer wants otherwise.",
            "- If a rule forbids what the customer wants, decline by that rule. Then finish.",
        )
    )


Changes = tuple[tuple[tuple[int, str], Any], ...]
"""The fields that differ from the database before any write, sorted by id and field."""

MOST_STALE = 5
"""The largest number of calls that reads can lag behind."""


class DeskState(NamedTuple):
    """What was looked up and written so far.

    Args:
        seen: the ids that a read has returned.
        changes: what was written.
        swallowed: by tool, how many writes reported success and did nothing.
        past: `changes` before each of the last calls, at most `MOST_STALE`, the last one last.
        ended: `finish` or `hand_over` once the episode is over, else empty.
    """

    seen: frozenset[int] = frozenset()
    changes: Changes = ()
    swallowed: tuple[tuple[str, int], ...] = ()
    past: tuple[Changes, ...] = ()
    ended: str = ""


class Transaction:
    """A call in progress.

    Args:
        database: the records before any write.
        rules: the rules in force.
        state: the state before the call.
    """

    def __init__(self, database: Database, rules: DeskRules, state: DeskState) -> None:
        self.database, self.rules = database, rules
        self.records: dict[int, dict[str, Any]] = {}
        """What reads have shown, by id."""
        self.seen = set(state.seen)
        self.writes = dict(state.changes)
        lag = rules.stale
        shown = state.changes if not lag else state.past[-lag] if len(state.past) >= lag else ()
        self._shown = dict(shown)

    def get(self, key: int, field: str) -> Any:
        """The value of a field now."""
        return self.writes[key, field] if (key, field) in self.writes else self.database.records[key].get(field)

    def shown(self, key: int, field: str) -> Any:
        """The value of a field as reads show it."""
        return self._shown[key, field] if (key, field) in self._shown else self.database.records[key].get(field)

    def set(self, key: int, field: str, value: Any) -> None:
        """Write a field; a value as before any write is no change."""
        if value == self.database.records[key].get(field):
            self.writes.pop((key, field), None)
        else:
            self.writes[key, field] = value

    def note(self, key: int, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Show a record, with the ids in it.

        Args:
            key: the id of the record.
            fields: its fields as shown; keys that end in `_id` have ids.

        Returns:
            The fields.
        """
        shown = dict(fields)
        self.records[key] = {**self.records.get(key, {}), **shown}
        self.seen |= ids_in(shown)
        return shown

    @property
    def changes(self) -> Changes:
        """All writes, sorted."""
        return tuple(sorted(self.writes.items(), key=lambda pair: pair[0]))


def ids_in(value: Any) -> set[int]:
    """The ids in a record as shown: all values of keys that end in `_id`.

    Example:
        >>> sorted(ids_in({"order_id": 2001, "items": [{"item_id": 3000, "price": 5.0}]}))
        [2001, 3000]
    """
    found: set[int] = set()
    if isinstance(value, dict):
        for key, one in value.items():
            if key.endswith("_id"):
                found.add(one)
            else:
                found |= ids_in(one)
    elif isinstance(value, list):
        for one in value:
            found |= ids_in(one)
    return found
