"""A service desk under given knob values: what each tool does, and which calls are possible.

Arguments are ids as numbers, amounts in the unit of the rules, and `datetime.date`. Every id was looked up before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import date
from functools import lru_cache
from itertools import combinations, product
from typing import Any, NamedTuple

from drift_envs.envs.tools.database import (
    MOST_STALE,
    OPEN,
    POLICY,
    REASONS,
    RULE_KNOBS,
    RULES,
    SPEEDS,
    TODAY,
    UNITS,
    Argument,
    Database,
    DeskRules,
    DeskState,
    RecordKind,
    Transaction,
    draw_database,
    kind_of,
    make_rules,
    write_page,
)
from drift_envs.envs.tools.interface import INTERFACE_KNOBS, ParsedCall, ToolInterface, make_interface
from drift_envs.knobs import FrozenMapping, Value, freeze
from drift_envs.tasks.tool_calls import NO_RECORD, Refusal

Arguments = Mapping[str, Any]
Operation = Callable[[Transaction, Arguments], dict[str, Any]]

PAGE = 2
"""How many orders a page has."""

CREDIT = 0
"""The destination of a refund that is paid as store credit."""

_OK = {"ok": True}


def _euros(cents: int) -> float:
    return round(cents / 100, 2)


def _deny(rule: str) -> Refusal:
    return Refusal("policy", f"the rule {rule} does not allow this")


def _find_customer(call: Transaction, args: Arguments) -> dict[str, Any]:
    key = call.database.emails.get(args["email"].strip().lower())
    if key is None:
        raise Refusal(*NO_RECORD)
    fields = ("name", "email", "street", "city")
    return call.note(key, {"customer_id": key, **{name: call.shown(key, name) for name in fields}})


def _list_orders(call: Transaction, args: Arguments) -> dict[str, Any]:
    customer, page = args["customer_id"], args.get("page", 1)
    orders = call.database.records[customer]["orders"]
    orders = orders if call.rules.newest_first else orders[::-1]
    pages = -(-len(orders) // PAGE)
    if not 1 <= page <= pages:
        raise Refusal("not_found", f"there are {pages} pages")
    shown = [_note_order(call, one) for one in orders[(page - 1) * PAGE : page * PAGE]]
    call.note(customer, {"customer_id": customer, "pages_of_orders": pages})
    return {"orders": shown, "page": page, "pages": pages}


def _note_order(call: Transaction, order: int) -> dict[str, Any]:
    return call.note(order, {"order_id": order, **{name: call.shown(order, name) for name in ("date", "status")}})


def _open_account(call: Transaction, args: Arguments) -> dict[str, Any]:
    customer = _find_customer(call, args)
    return {**customer, **_list_orders(call, {**args, "customer_id": customer["customer_id"]})}


def _find_order(call: Transaction, args: Arguments) -> dict[str, Any]:
    for order in call.database.records[args["customer_id"]]["orders"]:
        if call.database.records[order]["date"] == args["date"]:
            return _note_order(call, order)
    raise Refusal("not_found", "the customer placed no order on this day")


def _get_order(call: Transaction, args: Arguments) -> dict[str, Any]:
    order = args["order_id"]
    record, shown = call.database.records[order], call.shown
    return call.note(
        order,
        {
            "order_id": order,
            **{name: shown(order, name) for name in ("date", "status", "street", "city", "declined")},
            "items": [_show_item(call, one) for one in record["items"]],
            "payments": [_show_payment(call, one) for one in record["payments"]],
            "shipments": [
                {"shipment_id": one, "status": shown(one, "status")}
                for one in record["shipments"]
                if shown(one, "exists")
            ],
            "sent": [
                {"name": call.database.records[product]["name"], "speed": speed}
                for product, speed in shown(order, "sent")
            ],
        },
    )


def _show_item(call: Transaction, item: int) -> dict[str, Any]:
    fields = {name: call.shown(item, name) for name in ("name", "status", "reason")}
    return {
        "item_id": item,
        **fields,
        "price": _euros(call.database.records[item]["price"]),
        "shipment_id": call.shown(item, "shipment"),
    }


def _show_payment(call: Transaction, payment: int) -> dict[str, Any]:
    record = call.database.records[payment]
    return {
        "payment_id": payment,
        "amount": _euros(record["amount"]),
        "card_id": record["card"],
        "refunded": [
            {
                "to": "store credit" if place == CREDIT else call.database.records[place]["label"],
                "amount": _euros(cents),
            }
            for place, cents in call.shown(payment, "refunds")
        ],
    }


def _list_cards(call: Transaction, args: Arguments) -> dict[str, Any]:
    customer = args["customer_id"]
    cards = [
        {"card_id": card, "label": call.database.records[card]["label"]}
        for card in call.database.records[customer]["cards"]
    ]
    return call.note(customer, {"customer_id": customer, "cards": cards})


def _find_product(call: Transaction, args: Arguments) -> dict[str, Any]:
    name = args["name"].strip().lower()
    key = call.database.products.get(name)
    if key is None:
        raise Refusal("not_found", "there is no product of this name")
    return call.note(key, {"product_id": key, "name": name, "price": _euros(call.database.records[key]["price"])})


def _track_shipment(call: Transaction, args: Arguments) -> dict[str, Any]:
    key = args["shipment_id"]
    fields = ("status", "sent", "delivered")
    return call.note(key, {"shipment_id": key, **{name: call.shown(key, name) for name in fields}})


def _cancel_order(call: Transaction, args: Arguments) -> dict[str, Any]:
    order = args["order_id"]
    status = call.get(order, "status")
    if status == "cancelled":
        raise Refusal("conflict", "the order is cancelled")
    if not call.rules.may_cancel(status):
        raise _deny("cancel_until")
    call.set(order, "status", "cancelled")
    return _OK


def _check_returnable(call: Transaction, item: int, meaning: str | None) -> None:
    order = call.database.records[item]["order"]
    delivered: date | None = call.database.records[call.database.records[order]["shipments"][0]]["delivered"]
    if call.get(item, "status") != "kept" or delivered is None:
        raise Refusal("conflict", "the item was not delivered, or is returned")
    if meaning not in (None, "damaged") and not call.rules.is_within("return_days", delivered):
        raise _deny("return_days")


def _return_item(call: Transaction, args: Arguments) -> dict[str, Any]:
    item, meaning = args["item_id"], call.rules.reasons[args["reason"]]
    _check_returnable(call, item, meaning)
    call.set(item, "status", "returned")
    call.set(item, "reason", meaning)
    return _OK


def _register_return(call: Transaction, args: Arguments) -> dict[str, Any]:
    _check_returnable(call, args["item_id"], None)
    call.set(args["item_id"], "announced", True)
    return _OK


def _complete_return(call: Transaction, args: Arguments) -> dict[str, Any]:
    if not call.get(args["item_id"], "announced"):
        raise Refusal("conflict", "the return was not announced")
    _return_item(call, args)
    call.set(args["item_id"], "announced", None)
    return _OK


def _send_item(call: Transaction, args: Arguments) -> dict[str, Any]:
    order, default = args["order_id"], call.rules.defaults["send_item"]
    speed = args.get("speed")
    if speed == default:
        raise Refusal("redundant", "this is the default: leave `speed` out")
    if call.get(order, "status") == "cancelled":
        raise Refusal("conflict", "the order is cancelled")
    call.set(order, "sent", tuple(sorted((*call.get(order, "sent"), (args["product_id"], speed or default)))))
    return _OK


def _refund(call: Transaction, args: Arguments) -> dict[str, Any]:
    return _pay(call, args, round(args["amount"] * call.rules.unit))


def _pay(call: Transaction, args: Arguments, cents: int) -> dict[str, Any]:
    payment = args["payment_id"]
    record = call.database.records[payment]
    own = record["card"]
    default = own if call.rules.defaults["refund"] == "original" else CREDIT
    card = args.get("card_id")
    if card == default:
        raise Refusal("redundant", "this is the default: leave `card_id` out")
    if card is not None and call.database.owners[card] != call.database.owners[payment]:
        raise Refusal("conflict", "the card belongs to another customer")
    if card not in (None, own) and not call.rules.policy["other_card"]:
        raise _deny("other_card")
    refunds = dict(call.get(payment, "refunds"))
    total = cents + sum(refunds.values())
    if not 0 < cents <= total <= record["amount"]:
        raise Refusal("conflict", "the amount should be positive, and no more than what is left of the payment")
    if call.rules.needs_person(total):
        raise _deny("approval_limit")
    place = default if card is None else card
    call.set(payment, "refunds", tuple(sorted({**refunds, place: refunds.get(place, 0) + cents}.items())))
    return _OK


def _draft_refund(call: Transaction, args: Arguments) -> dict[str, Any]:
    call.set(args["payment_id"], "draft", round(args["amount"] * call.rules.unit))
    return _OK


def _send_refund(call: Transaction, args: Arguments) -> dict[str, Any]:
    draft = call.get(args["payment_id"], "draft")
    if draft is None:
        raise Refusal("conflict", "no refund was prepared")
    _pay(call, args, draft)
    call.set(args["payment_id"], "draft", None)
    return _OK


def _update_address(call: Transaction, args: Arguments) -> dict[str, Any]:
    for field in ("street", "city"):
        if field in args:
            call.set(args["customer_id"], field, args[field])
    return _OK


def _redirect_order(call: Transaction, args: Arguments) -> dict[str, Any]:
    order = args["order_id"]
    if call.get(order, "status") not in OPEN:
        raise Refusal("conflict", "the order was shipped or cancelled")
    call.set(order, "street", args["street"])
    call.set(order, "city", args["city"])
    return _OK


def _create_shipment(call: Transaction, args: Arguments) -> dict[str, Any]:
    order = args["order_id"]
    added = call.database.records[order]["shipments"][1]
    if call.get(order, "status") not in OPEN or call.get(added, "exists"):
        raise Refusal("conflict", "the order was shipped or cancelled, or has two shipments")
    if args["date"] <= TODAY:
        raise Refusal("conflict", "the day should be in the future")
    call.set(added, "exists", True)
    call.set(added, "date", args["date"])
    return _OK


def _move_item(call: Transaction, args: Arguments) -> dict[str, Any]:
    item, shipment = args["item_id"], args["shipment_id"]
    order = call.database.records[item]["order"]
    if shipment not in call.database.records[order]["shipments"] or not call.get(shipment, "exists"):
        raise Refusal("conflict", "item and shipment should belong to the same order")
    if call.get(order, "status") not in OPEN:
        raise Refusal("conflict", "the order was shipped or cancelled")
    call.set(item, "shipment", shipment)
    return _OK


def _ship_item(call: Transaction, args: Arguments) -> dict[str, Any]:
    order = call.database.records[args["item_id"]]["order"]
    _create_shipment(call, {"order_id": order, "date": args["date"]})
    added = call.database.records[order]["shipments"][1]
    return _move_item(call, {"item_id": args["item_id"], "shipment_id": added})


def _report_lost(call: Transaction, args: Arguments) -> dict[str, Any]:
    shipment = args["shipment_id"]
    sent = call.database.records[shipment]["sent"]
    if call.get(shipment, "status") != "shipped" or sent is None:
        raise Refusal("conflict", "the shipment is not under way")
    if not call.rules.is_lost(sent):
        raise _deny("lost_days")
    call.set(shipment, "status", "lost")
    return _OK


def _decline(call: Transaction, args: Arguments) -> dict[str, Any]:
    if call.get(args["order_id"], "declined"):
        raise Refusal("conflict", "a request about this order was declined")
    call.set(args["order_id"], "declined", args["rule"])
    return _OK


def _end(call: Transaction, args: Arguments) -> dict[str, Any]:
    return _OK


OPERATIONS: dict[str, Operation] = {
    "find_customer": _find_customer,
    "list_orders": _list_orders,
    "open_account": _open_account,
    "find_order": _find_order,
    "get_order": _get_order,
    "list_cards": _list_cards,
    "find_product": _find_product,
    "track_shipment": _track_shipment,
    "cancel_order": _cancel_order,
    "return_item": _return_item,
    "register_return": _register_return,
    "complete_return": _complete_return,
    "send_item": _send_item,
    "refund": _refund,
    "draft_refund": _draft_refund,
    "send_refund": _send_refund,
    "update_address": _update_address,
    "update_street": _update_address,
    "update_city": _update_address,
    "redirect_order": _redirect_order,
    "create_shipment": _create_shipment,
    "move_item": _move_item,
    "ship_item": _ship_item,
    "report_lost": _report_lost,
    "decline": _decline,
    "hand_over": _end,
    "finish": _end,
}


DESK_KNOBS = (*INTERFACE_KNOBS, *RULE_KNOBS, "page")
"""The knobs on which a desk depends, beside the number of the shop."""


class Answer(NamedTuple):
    """The answer to a call.

    Args:
        content: the answer, in the interface's form.
        records: what was looked up, by id, in the interface's form.
        call: the call in its usual form; empty for an error.
    """

    content: dict[str, Any]
    records: dict[str, dict[str, Any]] = {}  # noqa: RUF012 - never changed
    call: str = ""


_CACHED = 1_000
"""How many lists of calls a desk keeps."""

_LISTED: dict[str, tuple[Any, ...]] = {
    "reason": REASONS,
    "rule": RULES,
    "speed": SPEEDS,
    "flag": (True,),
    "integer": (2, 3),
}
"""The values from which calls are listed, by kind of argument."""


class Desk:
    """Database, rules and interface together; built by `make_desk`.

    Args:
        shop: the number of the shop.
        values: canonical values of the knobs of `DESK_KNOBS`, without those that have their default.

    Attributes:
        database: the records before any write.
        rules: the rules in force.
        interface: the tools on offer.
        written: the value of each rule that the policy page states.
        page: the policy page.

    Example:
        >>> desk = make_desk(7, {})
        >>> call = '{"tool": "find_customer", "arguments": {"email": "dan.costa@example.org"}}'
        >>> state, answer = desk.call(DeskState(), call)
        >>> answer.content["customer_id"], state.seen
        ('C-1000', frozenset({1000}))
        >>> desk.call(state, '{"tool": "get_order", "arguments": {"order_id": "O-2000"}}')[1].content["error"]
        'not_looked_up'
    """

    database: Database
    rules: DeskRules
    interface: ToolInterface

    def __init__(self, shop: int, values: tuple[tuple[str, Value], ...]) -> None:
        self._source = shop, values
        knobs = dict(values)
        self.database, self.rules, self.interface = draw_database(shop), make_rules(knobs), make_interface(knobs)
        self.written = FrozenMapping({**POLICY, **knobs.get("page", {})})
        self.page = write_page(self.written)
        self._listed: dict[tuple[frozenset[int], FrozenMapping], tuple[str, ...]] = {}

    def __reduce__(self) -> tuple[Any, tuple[int, tuple[tuple[str, Value], ...]]]:
        """Copies share one desk, and another process makes its own."""
        return _desk, self._source

    def call(self, state: DeskState, text: str) -> tuple[DeskState, Answer]:
        """Execute a call.

        Args:
            state: the state before.
            text: the call as JSON.

        Returns:
            The state after, the same one if the call was refused, and the answer.
        """
        tool = ""
        try:
            call = self.interface.parse(text)
            if call is None:
                return state, Answer({})
            tool = call.tool.name
            after, content, records = self.execute(state, call)
        except Refusal as refusal:
            return state, self.refuse(refusal, tool)
        show = self.interface
        return after, Answer(
            show.show(content), {show.show_key(key): show.show(fields) for key, fields in records.items()}, call.text
        )

    def refuse(self, refusal: Refusal, tool: str = "") -> Answer:
        """The answer to a call that is refused.

        Args:
            refusal: why.
            tool: the tool, if it was reached.
        """
        return Answer(self.interface.show_error(refusal, tool))

    def execute(
        self, state: DeskState, call: ParsedCall, is_replay: bool = False
    ) -> tuple[DeskState, dict[str, Any], dict[int, dict[str, Any]]]:
        """Execute a call that fits its schema.

        Args:
            state: the state before.
            call: the call.
            is_replay: whether ids count as looked up.

        Returns:
            The state after, and the answer and the records that were looked up, as plain values.

        Raises:
            Refusal: the tool refuses it.
        """
        tool, arguments = call.tool, call.arguments
        self._check(state, call, is_replay)
        working = Transaction(self.database, self.rules, state)
        content = OPERATIONS[tool.name](working, arguments)
        changes, swallowed = working.changes, state.swallowed
        limit = self.rules.silent.get(tool.family, 0)
        if limit and tool.effect == "write":
            counts = dict(swallowed)
            count = counts.get(tool.family, 0)
            if count < limit:
                changes, swallowed = state.changes, tuple(sorted({**counts, tool.family: count + 1}.items()))
        after = DeskState(
            frozenset(working.seen) if len(working.seen) > len(state.seen) else state.seen,
            changes,
            swallowed,
            (*state.past, state.changes)[-MOST_STALE:],
            tool.name if tool.effect == "end" else "",
        )
        return after, content, working.records

    def _check(self, state: DeskState, call: ParsedCall, is_replay: bool) -> None:
        """Ids have to exist and to be looked up, and an added email address has to be right."""
        owner = None
        for name, key in call.arguments.items():
            if name.endswith("_id"):
                if key not in self.database.records:
                    raise Refusal(*NO_RECORD)
                if key not in state.seen and not is_replay:
                    raise Refusal("not_looked_up", "look this record up first")
                owner = self.database.owners.get(key, owner)
        email = call.arguments.get("email")
        if email is not None and owner not in (None, self.database.emails.get(email.strip().lower())):
            raise Refusal("conflict", "this is not the email address of the customer")

    def list_calls(self, seen: frozenset[int], stated: FrozenMapping) -> tuple[str, ...]:
        """The calls that what was looked up allows, as text.

        Amounts are those of payments, of items, alone and together, and of differences to present prices, each in all
        units in which an amount could be meant. Neither rules nor writes change the list.

        Args:
            seen: the ids that were looked up.
            stated: the values that the request states, by argument.
        """
        key = (seen, stated)
        if key not in self._listed:
            if len(self._listed) >= _CACHED:
                self._listed.clear()
            self._listed[key] = tuple(self._list_calls(seen, stated))
        return self._listed[key]

    def _list_calls(self, seen: frozenset[int], stated: FrozenMapping) -> Iterator[str]:
        for tool in self.interface.tools:
            arguments = self.interface.arguments_of(tool.name)
            free = [one for one in arguments if one.kind != "amount"]
            for chosen in product(*(self._values(one, seen, stated) for one in free)):
                values = {one.name: value for one, value in zip(free, chosen, strict=True) if value is not None}
                if not self._belong_together(values):
                    continue
                if len(free) == len(arguments):
                    yield self.interface.write(tool.name, values)
                    continue
                for amount in self._amounts(values["payment_id"], seen):
                    yield self.interface.write(tool.name, {**values, "amount": amount})

    def _values(self, one: Argument, seen: frozenset[int], stated: FrozenMapping) -> tuple[Any, ...]:
        """The values of an argument to choose from; `None` leaves it out."""
        if one.kind in ("text", "date"):
            found: tuple[Any, ...] = stated[one.name]
        elif one.kind in _LISTED:
            found = _LISTED[one.kind]
        else:
            kind = RecordKind[one.kind.upper()]
            found = tuple(sorted(key for key in seen if kind_of(key) is kind))
        return found if one.required else (None, *found)

    def _belong_together(self, values: Mapping[str, Any]) -> bool:
        """Whether the ids belong to one customer, and those of an item and a shipment to one order."""
        records, owners = self.database.records, self.database.owners
        customers = {owners[key] for name, key in values.items() if name.endswith("_id") and key in owners}
        orders = {records[values[name]]["order"] for name in ("item_id", "shipment_id") if name in values}
        return len(customers) < 2 and len(orders) < 2

    def _amounts(self, payment: int, seen: frozenset[int]) -> list[float]:
        records, fee = self.database.records, int(self.written["restocking_fee"])
        items = [one for one in records[records[payment]["order"]]["items"] if one in seen]
        cents = {records[payment]["amount"]}
        for size in range(1, len(items) + 1):
            for chosen in combinations(items, size):
                price = sum(records[one]["price"] for one in chosen)
                cents |= {price, price * (100 - fee) // 100}
        for one in items:
            if records[one]["product"] in seen:
                cents.add(records[one]["price"] - records[records[one]["product"]]["price"])
        positive = sorted(one for one in cents if one > 0)
        return list(dict.fromkeys(round(one / unit, 2) for unit in UNITS.values() for one in positive))


def make_desk(shop: int, knobs: Mapping[str, Value]) -> Desk:
    """The desk for a shop's number and knob values; equal values share one.

    Args:
        shop: the number of the shop.
        knobs: canonical values of some or all knobs; the others have their default.
    """
    return _desk(shop, tuple((name, freeze(knobs[name])) for name in DESK_KNOBS if knobs.get(name)))


@lru_cache(maxsize=512)
def _desk(shop: int, values: tuple[tuple[str, Value], ...]) -> Desk:
    return Desk(shop, values)
