"""Cheapest plans of calls by search over what was looked up and written.

* `CallPlans` - all cheapest plans of a request: how long, and what each state's best calls are
* `solve_request` - finds them; results are cached by desk and request
* `replay_plans` - the best score that the plans of one desk reach at another

The search is exact: the desk itself executes every call. It leaves out only what no cheapest plan contains: writes that
the goal does not have, since nothing can be undone; reads of other customers and orders, which allow nothing that the
goal has; and values that neither the request states nor a read has shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from drift_envs.envs.tools.catalogue import CATALOGUE, EXTRAS, REASONS
from drift_envs.envs.tools.database import RecordKind, kind_of
from drift_envs.envs.tools.desk import Desk
from drift_envs.envs.tools.interface import ParsedCall
from drift_envs.envs.tools.operations import PAGE
from drift_envs.envs.tools.requests import DeskGoal, ServiceRequest, find_goal, score
from drift_envs.envs.tools.state import DeskState
from drift_envs.oracle.recurring import trace_plans
from drift_envs.tool_calls import Refusal

LIMIT = 30
"""The calls of an episode."""

START = DeskState()
"""Before the first call."""


class CallPlans(NamedTuple):
    """All cheapest plans of a request from one state.

    Args:
        score: 1.0, or 0.0 if the goal cannot be reached within the limit.
        length: the calls of the cheapest plans.
        best: by state on a cheapest plan, the calls with which one goes on, as text.
        start: the state in which they begin.
    """

    score: float
    length: int
    best: dict[DeskState, tuple[str, ...]]
    start: DeskState


def key_of(desk: Desk, state: DeskState) -> DeskState:
    """What of a state the future depends on.

    Args:
        desk: the desk.
        state: the state.
    """
    lag = desk.rules.stale
    return state._replace(past=state.past[-lag:] if lag else ())


@lru_cache(maxsize=2048)
def solve_request(desk: Desk, request: ServiceRequest, start: DeskState = START, limit: int = LIMIT) -> CallPlans:
    """All plans that reach the goal in the fewest calls.

    Args:
        desk: the desk; equal knob values share one object, see `make_desk`.
        request: the request.
        start: the state in which the plans begin.
        limit: the calls that are left.

    Example:
        >>> from drift_envs.envs.tools.desk import make_desk
        >>> from drift_envs.envs.tools.requests import list_requests
        >>> desk, request = make_desk(7, {}), list_requests(7)[0]
        >>> plans = solve_request(desk, request)
        >>> request.kind, plans.score, plans.length
        ('cancel', 1.0, 4)
    """
    goal = find_goal(request, desk.rules)
    candidates = _Candidates(desk, request, goal)
    parents: dict[DeskState, list[tuple[DeskState, str]]] = {key_of(desk, start): []}
    layer = {key_of(desk, start): start}
    for length in range(1, limit + 1):
        fresh: dict[DeskState, list[tuple[DeskState, str]]] = {}
        states: dict[DeskState, DeskState] = {}
        for here, state in layer.items():
            for call in candidates.of(state):
                try:
                    after, *_ = desk.execute(state, call)
                except Refusal:
                    continue
                key = key_of(desk, after)
                if key not in parents:
                    fresh.setdefault(key, []).append((here, call.text))
                    states[key] = after
        parents |= fresh
        goals = [key for key, state in states.items() if score(desk.database, request, goal, state) == 1.0]
        if goals:
            return CallPlans(1.0, length, trace_plans(parents, goals), start)
        layer = {key: state for key, state in states.items() if not state.ended}
        if not layer:
            break
    return CallPlans(0.0, limit, {}, start)


_Changes = dict[tuple[int, str], Any]
_Candidate = tuple[str, dict[str, Any], _Changes]
"""A tool, its arguments, and the changes of which one has to be missing for the call to be of use."""


class _Candidates:
    """The calls that a cheapest plan may contain.

    Args:
        desk: the desk.
        request: the request.
        goal: its goal.
    """

    def __init__(self, desk: Desk, request: ServiceRequest, goal: DeskGoal) -> None:
        self._desk, self._request, self._goal = desk, request, goal
        self._records = desk.database.records
        offered = {tool.name for tool in desk.interface.tools}
        writes = [one for one in [*self._writes(dict(goal.changes)), *self._end()] if one[0] in offered]
        reads = [one for one in self._reads(self._needs(writes)) if one[0] in offered]
        self._calls = [(self._fill(tool, arguments), missing) for tool, arguments, missing in (*reads, *writes)]

    def of(self, state: DeskState) -> Iterator[ParsedCall]:
        """The calls in a state, without the writes that are done.

        Args:
            state: the state.
        """
        written = dict(state.changes)
        is_done = state.changes == self._goal.changes
        for call, missing in self._calls:
            if call.tool.effect == "end":
                if is_done:
                    yield call
                continue
            is_missing = not missing or any(written.get(key) != value for key, value in missing.items())
            if is_missing and ("amount" not in call.arguments or self._price_source in (None, *state.seen)):
                yield call

    @property
    def _price_source(self) -> int | None:
        """The product whose present price has to be seen before the amount of a refund is known."""
        if self._request.kind != "price_match":
            return None
        product: int = self._records[self._request.items[0]]["product"]
        return product

    def _needs(self, writes: list[_Candidate]) -> set[int]:
        """The ids that have to be looked up: those of the writes, and of the orders and the customer they belong to."""
        needed = {key for _, arguments, _ in writes for name, key in arguments.items() if name.endswith("_id")}
        needed |= {self._records[key]["order"] for key in needed if "order" in self._records[key]}
        if self._price_source is not None and any("amount" in arguments for _, arguments, _ in writes):
            needed.add(self._price_source)
        return needed | {self._request.customer}

    def _fill(self, tool: str, arguments: dict[str, Any]) -> ParsedCall:
        """The call, with the arguments that the tool has come to require."""
        full = dict(arguments)
        for one in self._desk.interface.arguments_of(tool):
            if one.name not in full and one in EXTRAS.values():
                full[one.name] = True if one.kind == "flag" else self._records[self._request.customer]["email"]
        return ParsedCall(CATALOGUE[tool], full, self._desk.interface.write(tool, full))

    def _reads(self, needed: set[int]) -> Iterator[_Candidate]:
        """The reads that show a needed id."""
        records, request, stated = self._records, self._request, self._request.stated
        customer = records[request.customer]
        email, owner = {"email": stated["email"][0]}, {"customer_id": request.customer}
        yield "find_customer", email, {}
        orders = customer["orders"] if self._desk.rules.newest_first else customer["orders"][::-1]
        for first in range(0, len(orders), PAGE):
            page = {"page": first // PAGE + 1} if first else {}
            yield "open_account", {**email, **page}, {}
            if needed & set(orders[first : first + PAGE]):
                yield "list_orders", {**owner, **page}, {}
        for order in sorted(needed & set(orders)):
            if records[order]["date"] in stated["date"]:
                yield "find_order", {**owner, "date": records[order]["date"]}, {}
            parts = {*records[order]["items"], *records[order]["payments"], *records[order]["shipments"]}
            if needed & parts:
                yield "get_order", {"order_id": order}, {}
        if needed & set(customer["cards"]):
            yield "list_cards", owner, {}
        for product in sorted(key for key in needed if kind_of(key) is RecordKind.PRODUCT):
            yield "find_product", {"name": records[product]["name"]}, {}

    def _writes(self, wanted: _Changes) -> Iterator[_Candidate]:
        """The writes that lead to the wanted changes, in every form."""
        for (key, field), value in wanted.items():
            missing = {(key, field): value}
            if field == "status" and value == "cancelled":
                yield "cancel_order", {"order_id": key}, missing
            elif field == "status" and value == "returned":
                yield from self._returns(key, wanted[key, "reason"], missing)
            elif field == "status" and value == "lost":
                yield "report_lost", {"shipment_id": key}, missing
            elif field == "refunds":
                yield from self._refunds(key, value, missing)
            elif field == "sent":
                yield from self._parcels(key, value, missing)
            elif field == "declined":
                yield "decline", {"order_id": key, "rule": value}, missing
            elif field in ("street", "city"):
                yield from self._addresses(key, missing)
            elif field == "exists":
                order, item = self._records[key]["order"], self._request.items[0]
                day = wanted[key, "date"]
                yield "create_shipment", {"order_id": order, "date": day}, missing
                yield "ship_item", {"item_id": item, "date": day}, missing
            elif field == "shipment":
                yield "move_item", {"item_id": key, "shipment_id": value}, missing

    def _returns(self, item: int, reason: str, missing: _Changes) -> Iterator[_Candidate]:
        yield "register_return", {"item_id": item}, missing
        for code in REASONS:
            if self._desk.rules.reasons[code] == reason:
                yield "return_item", {"item_id": item, "reason": code}, missing
                yield "complete_return", {"item_id": item, "reason": code}, missing

    def _refunds(self, payment: int, refunds: tuple[tuple[int, int], ...], missing: _Changes) -> Iterator[_Candidate]:
        ((card, cents),) = refunds
        own, default = self._records[payment]["card"], self._desk.rules.defaults["refund"]
        target = {} if card == own and default == "original" else {"card_id": card}
        amount = {"amount": round(cents / self._desk.rules.unit, 2)}
        yield "refund", {"payment_id": payment, **amount, **target}, missing
        yield "draft_refund", {"payment_id": payment, **amount}, missing
        yield "send_refund", {"payment_id": payment, **target}, missing

    def _parcels(self, order: int, sent: tuple[tuple[int, str], ...], missing: _Changes) -> Iterator[_Candidate]:
        for product, speed in sent:
            chosen = {} if self._desk.rules.defaults["send_item"] == speed else {"speed": speed}
            yield "send_item", {"order_id": order, "product_id": product, **chosen}, missing

    def _addresses(self, key: int, missing: _Changes) -> Iterator[_Candidate]:
        street, city = self._request.address
        if key == self._request.customer:
            yield "update_address", {"customer_id": key, "street": street, "city": city}, missing
            yield "update_street", {"customer_id": key, "street": street}, missing
            yield "update_city", {"customer_id": key, "city": city}, missing
        else:
            yield "redirect_order", {"order_id": key, "street": street, "city": city}, missing

    def _end(self) -> Iterator[_Candidate]:
        if self._goal.end == "finish":
            yield "finish", {}, {}
        else:
            yield "hand_over", {"order_id": self._request.order}, {}


@lru_cache(maxsize=2048)
def replay_plans(old: Desk, new: Desk, request: ServiceRequest, limit: int = LIMIT) -> float:
    """The best score that the cheapest plans at one desk reach at another, call by call.

    Args:
        old: the desk whose plans are replayed.
        new: the desk at which they are replayed.
        request: the request.
        limit: the calls of an episode.
    """
    plans, goal = solve_request(old, request, START, limit), find_goal(request, new.rules)
    best = 0.0
    layer: dict[tuple[DeskState, DeskState], tuple[DeskState, DeskState]] = {}
    if plans.score:
        layer = {(key_of(old, START), key_of(new, START)): (START, START)}
    while layer:
        following: dict[tuple[DeskState, DeskState], tuple[DeskState, DeskState]] = {}
        for (key, _), (here, there) in layer.items():
            for call in plans.best.get(key, ()):
                after, _ = old.call(here, call)
                other, _ = new.call(there, call)
                if other.ended:
                    best = max(best, score(new.database, request, goal, other))
                elif not after.ended:
                    following[key_of(old, after), key_of(new, other)] = after, other
        layer = following
    return best
