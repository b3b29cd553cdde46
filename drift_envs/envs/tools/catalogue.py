"""The tools of the service desk: names, arguments, descriptions.

* `ToolSpec`, `Argument` - a tool and its arguments, before any knob is applied
* `CATALOGUE` - every tool, with those that take part of another one's place when it is split or merged
* `SPLITS`, `MERGERS` - what replaces what
* `EXTRAS` - the arguments that a tool may come to require
* `REASONS`, `RULES`, `SPEEDS` - the values of arguments that have a list of them
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

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
