"""The database of a shop, drawn from its number: customers, orders, items, payments, cards, shipments, products.

* `Database` - the records before any write
* `draw_database` - the shop of a number
* `TODAY` - the day on which every request arrives
* `RecordKind`, `kind_of` - the kinds of records, and the kind of an id
* `NO_RECORD` - the error for what no record has
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from enum import Enum
from functools import lru_cache
from typing import Any

import numpy as np

TODAY = date(2026, 6, 30)

NO_RECORD = ("not_found", "there is no such record")
"""Code and message; one for all records, since the false answers of `transient` have the same."""

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
