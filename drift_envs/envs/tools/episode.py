"""One episode at the desk, the search for cheapest plans of calls, and the pool of requests.

The search is exact: the desk itself executes every call. It leaves out only what no cheapest plan contains: writes that
the goal does not have, since nothing can be undone; reads of other customers and orders, which allow nothing that the
goal has; and values that neither the request states nor a read has shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from drift_envs.envs.tools.database import CATALOGUE, EXTRAS, REASONS, DeskState, RecordKind, ids_in, kind_of
from drift_envs.envs.tools.desk import PAGE, Desk, make_desk
from drift_envs.envs.tools.interface import ParsedCall, ToolInterface
from drift_envs.envs.tools.requests import KINDS, DeskGoal, ServiceRequest, find_goal, list_requests, score
from drift_envs.errors import ArgumentError
from drift_envs.knobs import thaw
from drift_envs.oracle.recurring import Plans, find_plans, replay_all
from drift_envs.tasks.recurring_tasks import MOST_TASKS, Conditions, no_such_task, take_turns
from drift_envs.tasks.tool_calls import NO_RECORD, Refusal


class DeskEpisode:
    """The state of an episode, with what was shown and called so far.

    Args:
        desk: the desk; replaced from outside when knobs change.
        request: the request.

    Example:
        >>> from drift_envs.envs.tools.desk import make_desk
        >>> from drift_envs.envs.tools.requests import list_requests
        >>> episode = DeskEpisode(make_desk(7, {}), list_requests(7)[0])
        >>> episode.act('{"tool": "finish"}'), episode.is_over, episode.score
        ('{"ok": true}', True, 0.0)
    """

    def __init__(self, desk: Desk, request: ServiceRequest) -> None:
        self.desk, self.request = desk, request
        self.state = DeskState()
        self.records: dict[str, dict[str, Any]] = {}
        """What reads have shown, by id, as they have shown it."""
        self.calls: tuple[str, ...] = ()
        """The calls that were answered without an error, as text."""
        self.answer: dict[str, Any] = {}
        self.score = 0.0
        self._described: tuple[ToolInterface, list[dict[str, Any]]] | None = None

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tools with the JSON Schemas of their arguments; objects of this episode alone."""
        interface = self.desk.interface
        if self._described is None or self._described[0] is not interface:
            self._described = interface, thaw(interface.description)
        return self._described[1]

    @property
    def is_over(self) -> bool:
        """Whether the request was ended."""
        return bool(self.state.ended)

    @property
    def task_text(self) -> str:
        """The request, the policy page and the tools in words."""
        desk = self.desk
        return (
            f"{self.request.text}\n\n{desk.page}\n\n"
            f"Tools, called by JSON as {desk.interface.write('finish', {})}:\n{desk.interface.summary}"
        )

    def act(self, text: str) -> str:
        """Execute a call.

        Args:
            text: the call as JSON.

        Returns:
            The answer as JSON.
        """
        self.state, answer = self.desk.call(self.state, text)
        self.answer = answer.content
        if answer.call:
            self.calls = (*self.calls, answer.call)
            for key, fields in answer.records.items():
                self.records[key] = {**self.records.get(key, {}), **fields}
        if self.state.ended:
            goal = find_goal(self.request, self.desk.rules)
            self.score = score(self.desk.database, self.request, goal, self.state)
        return self.write_answer()

    def lose(self) -> str:
        """Answer falsely, as if there were no such record; nothing is executed."""
        self.answer = self.desk.refuse(Refusal(*NO_RECORD)).content
        return self.write_answer()

    def write_answer(self) -> str:
        """The last answer as JSON; before the first call, the request."""
        return json.dumps(self.answer or ({"answer": None} if self.calls else {"request": self.request.text}))

    def write_state(self) -> str:
        """The state as JSON."""
        shop, request = self.desk.database.number, json.dumps(self.request.text)
        return (
            f'{{"shop": {shop}, "request": {request}, "records": {json.dumps(self.records)}, '
            f'"calls": [{", ".join(self.calls)}], "answer": {json.dumps(self.answer)}}}'
        )

    def save(self) -> dict[str, Any]:
        """The state as plain data."""
        return {
            "state": tuple(self.state),
            "records": dict(self.records),
            "calls": self.calls,
            "answer": self.answer,
            "score": self.score,
        }

    def load(self, saved: Mapping[str, Any]) -> None:
        """Restore a state.

        Args:
            saved: from `save`.
        """
        self.state = DeskState(*saved["state"])
        self.records, self.calls = dict(saved["records"]), saved["calls"]
        self.answer, self.score = saved["answer"], saved["score"]


def restore_episode(desk: Desk, request: ServiceRequest, text: str, others: Iterable[Desk] = ()) -> DeskEpisode:
    """An episode at the state that a JSON text shows.

    Its calls count as executed by this desk, or, where this one would refuse them, by the first of the others that
    would not.

    Args:
        desk: the desk.
        request: the request.
        text: the JSON text.
        others: the same shop with other knob values.

    Raises:
        ArgumentError: if it is no state of this environment.
    """
    episode = DeskEpisode(desk, request)
    try:
        shown = json.loads(text)
        episode.records = dict(shown["records"])
        episode.calls = tuple(json.dumps(call) for call in shown["calls"])
        episode.answer = dict(shown["answer"])
        # an id is a number, or a letter and a number
        seen = frozenset(int(str(one).rpartition("-")[2]) for one in ids_in([*episode.records.values()]))
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise ArgumentError(f"`state` should be a state of the desk as JSON. Received {str(text)[:200]!r}") from error
    for call in episode.calls:
        for one in (desk, *others):
            after = _replay(one, episode.state, call)
            if after is not None:
                episode.state = after
                break
    episode.state = episode.state._replace(seen=seen)
    return episode


def _replay(desk: Desk, state: DeskState, text: str) -> DeskState | None:
    """The state after a call whose records count as looked up; `None` if it is refused."""
    try:
        call = desk.interface.parse(text)
        return None if call is None else desk.execute(state, call, is_replay=True)[0]
    except Refusal:
        return None


LIMIT = 30
"""The calls of an episode."""

START = DeskState()
"""Before the first call."""


CallPlans = Plans[DeskState, str]


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

    def follow(state: DeskState) -> Iterator[tuple[str, DeskState]]:
        for call in () if state.ended else candidates.of(state):
            try:
                after, *_ = desk.execute(state, call)
            except Refusal:
                continue
            yield call.text, key_of(desk, after)

    def rate(call: str, state: DeskState) -> float:
        return score(desk.database, request, goal, state)

    return find_plans(key_of(desk, start), limit, follow, rate)


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
        end: _Candidate = ("finish", {}, {}) if goal.end == "finish" else ("hand_over", {"order_id": request.order}, {})
        writes = [one for one in [*self._writes(dict(goal.changes)), end] if one[0] in offered]
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


@lru_cache(maxsize=2048)
def replay_plans(old: Desk, new: Desk, request: ServiceRequest, limit: int = LIMIT) -> float:
    """The best score that the cheapest plans at one desk reach at another, call by call.

    Args:
        old: the desk whose plans are replayed.
        new: the desk at which they are replayed.
        request: the request.
        limit: the calls of an episode.
    """
    goal = find_goal(request, new.rules)

    def follow(here: DeskState, there: DeskState, call: str) -> tuple[DeskState | None, DeskState, float]:
        after, other = old.call(here, call)[0], new.call(there, call)[0]
        reached = score(new.database, request, goal, other) if other.ended else 0.0
        return None if after.ended or other.ended else key_of(old, after), key_of(new, other), reached

    return replay_all(solve_request(old, request, START, limit), key_of(new, START), follow)


LEAST_LOSS = 0.05
"""The least loss of the plans that were cheapest before a drift, for a request that counts as affected."""

_HELD_OUT = 5_000
"""The numbers of requests whose wordings are held out begin here."""

_TRIES = 16
"""How many requests are tried for each request of the pool."""

OTHERS = 0x0713
"""The stream of requests outside the pool."""


def number_request(shop: int, index: int, held_out: bool = False) -> int:
    """A request of a shop as one number.

    Args:
        shop: the number of the shop.
        index: the position in `list_requests`.
        held_out: whether it has a wording that is held out.

    Example:
        >>> number_request(7, 12), find_request(number_request(7, 12))[0]
        (70012, 7)
    """
    return shop * MOST_TASKS + index + _HELD_OUT * held_out


def number_requests(shop: int, held_out: bool = False) -> range:
    """The numbers of all requests of a shop.

    Args:
        shop: the number of the shop.
        held_out: whether they have wordings that are held out.
    """
    first = number_request(shop, 0, held_out)
    return range(first, first + len(list_requests(shop, held_out)))


def find_request(number: int) -> tuple[int, ServiceRequest]:
    """The shop and the request of a number.

    Args:
        number: from `number_request`.

    Raises:
        ArgumentError: if there is no such request.
    """
    shop, rest = divmod(number, MOST_TASKS)
    held_out, index = divmod(rest, _HELD_OUT)
    requests = list_requests(shop, bool(held_out))
    if index >= len(requests):
        raise no_such_task(number, number_requests(shop, bool(held_out)), f"request of shop {shop}")
    return shop, requests[index]


@lru_cache(maxsize=512)
def draw_requests(
    shop: int,
    count: int,
    seed: int,
    without: tuple[int, ...] = (),
    *,
    conditions: Conditions,
    affected: bool = True,
    held_out: bool = False,
) -> tuple[int, ...]:
    """Draw requests of a shop that can be met under all conditions.

    Those that the most drifts affect come first: between two successive conditions, the plans that were cheapest before
    reach at most 95 % of the best score after. For a control, those that the fewest affect. Kinds take turns.

    Args:
        shop: the number of the shop.
        count: how many.
        seed: of the stream.
        without: the numbers of requests that are excluded.
        conditions: knob values under which each can be met, in temporal order.
        affected: whether drifts should affect the requests that come first.
        held_out: whether they have the wordings that are held out.

    Returns:
        The numbers of the requests.

    Raises:
        ArgumentError: if the shop has too few such requests.
    """
    rng = np.random.default_rng(seed)
    requests = list_requests(shop, held_out)
    order = take_turns([request.kind for request in requests], KINDS, rng)
    desks = [make_desk(shop, dict(condition)) for condition in conditions]
    changes = [(old, new) for old, new in pairwise(desks) if old is not new]
    found: dict[int, int] = {}
    met = {find_request(number)[1]._replace(text="") for number in without}  # whatever its wording
    for tried, index in enumerate(order):
        if sum(one == len(changes) for one in found.values()) >= count or (tried >= _TRIES * count <= len(found)):
            break
        number, request = number_request(shop, index, held_out), requests[index]._replace(text="")
        if request in met or any(solve_request(desk, request).score < 1.0 for desk in desks):
            continue
        met.add(request)
        hits = sum(replay_plans(old, new, request) <= 1.0 - LEAST_LOSS for old, new in changes)
        found[number] = hits if affected else len(changes) - hits
    if len(found) < count:
        raise ArgumentError(
            f"shop {shop} should have {count} requests that can be met in every phase of the schedule. "
            f"Found {len(found)}"
        )
    return tuple(sorted(found, key=lambda number: -found[number])[:count])
