"""A service desk under given knob values: executes calls, and lists those that what was looked up allows.

* `Desk` - database, rules and interface together
* `Answer` - the answer to a call
* `make_desk` - the desk for a shop's number and knob values; equal values share one
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import combinations, product
from typing import Any, NamedTuple

from drift_envs.envs.tools.catalogue import REASONS, RULES, SPEEDS, Argument
from drift_envs.envs.tools.database import NO_RECORD, Database, RecordKind, draw_database, kind_of
from drift_envs.envs.tools.interface import INTERFACE_KNOBS, ParsedCall, ToolInterface, make_interface
from drift_envs.envs.tools.operations import OPERATIONS
from drift_envs.envs.tools.page import write_page
from drift_envs.envs.tools.rules import POLICY, RULE_KNOBS, UNITS, DeskRules, make_rules
from drift_envs.envs.tools.state import MOST_STALE, DeskState, Transaction
from drift_envs.knobs import FrozenMapping, Value, freeze
from drift_envs.tool_calls import Refusal

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
