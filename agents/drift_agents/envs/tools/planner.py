"""The planner for the service desk: the plan of a case, and the call that it makes next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from drift_agents.envs.tools.beliefs import AT_ONCE, LEFT_OUT, NAMED, UNITS, DeskBeliefs, UseOfTool, family_of
from drift_agents.envs.tools.desk import REFUNDS, RETURNS, Case, Manual, Wish, read_manual, read_wish
from drift_agents.envs.tools.states import (
    REASONS,
    Call,
    DeskError,
    ShownDesk,
    read_call,
    read_day,
    read_desk_state,
    read_error,
    read_key,
)
from drift_agents.policy.base import ParsedPlanner
from drift_agents.policy.planner import GenericPlanner
from drift_agents.prompt.view import PromptView
from drift_envs.checks import check_flag


class ToolsPlanner(ParsedPlanner[ShownDesk]):
    """Looks up, writes, checks and ends; records of the prompt decide how tools are used.

    * Tools are found by names and descriptions that resemble what is common, so that a new name is no obstacle.
    * What can be done in several ways (the unit of an amount, a code, a default that is named or left out) is done as
      it is known to have worked; else as is natural.
    * A way that is not known to work is checked: the order is read again before the end, and a write that does not
      show is repeated.
    * A refused call is replaced by the next way; a denial by a rule of the policy is answered by declining, and an
      amount that needs a person by handing over, before anything was written where that is known.

    What was seen before memory was found wrong does not count as known. Requests of an unknown kind are left to
    `drift_agents.policy.planner.GenericPlanner`.

    Args:
        conflict: how several outcomes of one (state, action) are weighed (`drift_agents.prompt.view`).
        checks: whether it reads again what was written in a way that is not known to work.

    Raises:
        ArgumentError: if an option is outside its range.

    Example:
        >>> at = '{"shop": 7, "request": "I am Ada Garcia, ada@example.org. Please cancel my latest order.", '
        >>> at += '"records": {}, "calls": [], "answer": {}}'
        >>> task = "lookup(email: text) - Find a customer by email address."
        >>> call = '{"tool": "lookup", "arguments": {"email": "ada@example.org"}}'
        >>> view = PromptView(task, at, ('{"tool": "close", "arguments": {}}', call))
        >>> ToolsPlanner().decide(view, np.random.default_rng(0)).text == call
        True
    """

    name, shows = "tools", "one of a service desk"
    parse = staticmethod(read_desk_state)

    def __init__(self, *, conflict: str = "majority", checks: bool = True) -> None:
        super().__init__(conflict=conflict)
        self.checks = check_flag("checks", checks)
        self._generic = GenericPlanner(conflict=conflict)

    def _choose(self, shown: ShownDesk, view: PromptView, rng: np.random.Generator) -> str:
        wish = read_wish(shown.request)
        if wish is None:
            return self._generic.decide(view, rng).text
        plan = DeskPlan(
            shown, wish, read_manual(view.task), DeskBeliefs(view, self.conflict), view.actions, self.checks
        )
        calls = plan.calls()
        if not calls:
            return self._generic.decide(view, rng).text
        return calls[int(rng.integers(len(calls))) if plan.is_blind else 0]


READS = 3
"""How often an order is read again before a write that does not show is repeated."""
NO_LIMIT = 1_000_000
"""In place of a limit that the page does not state."""

_DENIED = ("policy", "failed")
_FINAL = (*_DENIED, "conflict", "redundant")
"""Codes of errors after which the same call is not repeated."""
_DENIALS = {"price_match": "match_days", "lost": "lost_days", "other_card": "other_card"}


class Way(NamedTuple):
    """A call that may do a deed.

    Args:
        call: the call as text.
        choices: what was chosen in it.
    """

    call: str
    choices: tuple[UseOfTool, ...] = ()


class Deed(NamedTuple):
    """Something that has to be written.

    Args:
        family: the kind of write (`drift_agents.envs.tools.beliefs.family_of`), or what the tool does.
        order: the order that it concerns, 0 for none.
        is_done: whether a call has done it.
        ways: the calls that may do it, the most believable first.
        shows: whether its effect shows in what was read last.
        rule: the rule by which the request is declined if the tool denies it; empty if it cannot be.
    """

    family: str
    order: int
    is_done: Callable[[Call], bool]
    ways: tuple[Way, ...]
    shows: Callable[[], bool]
    rule: str = ""


class DeskPlan:
    """Looks up what the request needs, writes, checks where a way is not known to work, and ends.

    Args:
        shown: the state.
        wish: the parsed request.
        manual: the tools on offer and the policy page.
        beliefs: what is believed about tools.
        actions: the admissible calls.
        checks: whether what was written is read again where a way is not known to work.
    """

    def __init__(
        self,
        shown: ShownDesk,
        wish: Wish,
        manual: Manual,
        beliefs: DeskBeliefs,
        actions: Sequence[str],
        checks: bool = True,
    ) -> None:
        self.shown, self.wish, self.beliefs = shown, wish, beliefs
        self.case = Case(shown, wish)
        self._offered: dict[str, list[Call]] = {}
        for action in actions:
            if (call := read_call(action)) is not None:
                self._offered.setdefault(call.tool, []).append(call)
        self.manual = manual.follow(self._offered)
        self._error = read_error(shown.answer)
        self._checks = checks
        self.is_blind = False
        """Whether a call was refused just now, and nothing shows which of several."""

    def calls(self) -> list[str]:
        """The calls that make sense now, the best one first; empty if none does."""
        steps = (self._look_up, self._end_early, self._write, self._check)
        return next((found for step in steps if (found := step())), []) or self._find("finish")

    def _find(self, role: str, *values: Any, also: Sequence[str] = ()) -> list[str]:
        """The admissible calls of a tool with these values alone; an email address or a flag may be required beside.

        Args:
            role: what the tool does.
            values: ids, dates, amounts and codes.
            also: further kinds of values that it may have.
        """
        free = {"email", "flag", *also}
        name = self.manual.names.get(role, "")
        found = []
        for call in self._offered.get(name, ()):
            given = [value for kind, value in call.values if kind not in free or value in values]
            if sorted(map(str, given)) == sorted(map(str, values)):
                found.append(call.text)
        return found

    # Reading.

    def _look_up(self) -> list[str]:
        case, wish = self.case, self.wish
        if case.customer is None:
            return self._find("find_customer") or self._find("open_account")
        for words, order in ((wish.second, case.second), (wish.order, case.order)):
            if words is not None and order is None:
                return self._find_order(words.day)
        return next(filter(None, self._further_reads()), [])

    def _find_order(self, day: Any) -> list[str]:
        case = self.case
        if day is not None and (found := self._find("find_order", case.customer, day)):
            return found
        read = {call.get("page") for call in self.shown.calls}
        pages = [page for page in range(2, case.pages + 1) if page not in read]
        if not case.pages:
            return self._find("list_orders", case.customer) or self._find("open_account")
        if day is None:
            pages = pages[-1:]  # the list begins with the oldest order
        return next(
            (found for page in pages
             if (found := self._find("list_orders", case.customer, page) or self._find("open_account", page))), []
        )  # fmt: skip

    def _further_reads(self) -> Iterator[list[str]]:
        """What is needed beyond the customer and the orders."""
        case, kind = self.case, self.wish.kind
        if kind not in ("cancel", "address", "redirect", "missing_item") and "items" not in case.details:
            yield self._find("get_order", case.order)
        if kind in ("exchange", "missing_item", "price_match") and case.product is None:
            yield self._find_product()
        if kind == "other_card" and case.wanted_card is None:
            yield self._find("list_cards", case.customer)
        if kind == "lost" and "sent" not in self._shipment:
            yield self._find("track_shipment", self._shipment_id)
        # what was announced or returned cannot be undone when a later call is denied
        is_late = self._needs_person or "register_return" in self.manual.names
        if kind in RETURNS and is_late and "delivered" not in self._shipment:
            yield self._find("track_shipment", self._shipment_id)

    def _find_product(self) -> list[str]:
        name = self.manual.names.get("find_product", "")
        is_bought = self.wish.kind != "exchange"
        calls = self._offered.get(name, ())
        fitting = [call.text for call in calls if self.case.names_item(str(call.get("text"))) == is_bought]
        return fitting or [call.text for call in calls]  # a thing may be exchanged for another of its kind

    @property
    def _shipment_id(self) -> int | None:
        shipments = self.case.details.get("shipments", ())
        return read_key(shipments[0]["shipment_id"]) if shipments else None

    @property
    def _shipment(self) -> Any:
        return self.shown.records.get(self._shipment_id or 0, {})

    # The policy.

    @cached_property
    def _cents(self) -> int | None:
        return self.case.cents(self.manual.numbers.get("restocking_fee", 0))

    @cached_property
    def _needs_person(self) -> bool:
        limit = self.manual.numbers.get("approval_limit", NO_LIMIT)
        return self._cents is not None and self.beliefs.needs_person(self._cents, limit)

    @cached_property
    def _forbidden(self) -> dict[int, str]:
        """By order, the rule that forbids what the customer wants."""
        case, kind, found = self.case, self.wish.kind, {}
        for order, is_wanted in ((case.order, kind == "cancel"), (case.second, kind == "cancel_and_return")):
            if is_wanted and order is not None:
                status = self.shown.records[order].get("status")
                if status not in ("pending", "cancelled", *(("packed",) if self.manual.packed else ())):
                    found[order] = "cancel_until"
        if case.order is None:
            return found
        if kind == "other_card" and not self.manual.other_card:
            found[case.order] = "other_card"
        if kind == "price_match" and self._is_beyond("match_days", case.details.get("date")):
            found[case.order] = "match_days"
        if kind == "lost" and not self._is_beyond("lost_days", self._shipment.get("sent"), included=True):
            found[case.order] = "lost_days"
        is_window = kind in RETURNS and case.meaning != "damaged"
        if is_window and self._is_beyond("return_days", self._shipment.get("delivered")):
            found[case.order] = "return_days"
        return found

    def _is_beyond(self, rule: str, since: Any, included: bool = False) -> bool:
        """Whether more days than the page states have passed since a day, or as many."""
        day, limit = read_day(str(since)), self.manual.numbers.get(rule)
        if day is None or limit is None or self.manual.today is None:
            return False
        days = (self.manual.today - day).days
        return days >= limit if included else days > limit

    def _end_early(self) -> list[str]:
        """Hand over what needs a person, as long as nothing was written."""
        is_denied = self._error is not None and self._error.rule == "approval_limit"
        if self.case.order is None or not (is_denied or self._needs_person) or self.case.order in self._forbidden:
            return []
        if self._declined or any(
            call.has("P") and self.manual.role_of(call.tool) != "draft_refund" for call in self.shown.calls
        ):
            return []
        return self._find("hand_over", self.case.order)

    @property
    def _declined(self) -> set[int]:
        return {call.get("O") for call in self.shown.calls if call.has("rule")}

    # Writing.

    def _write(self) -> list[str]:
        """The calls for the first deed that is not done."""
        for deed in self._deeds:
            if not any(map(deed.is_done, self.shown.calls)):
                return self._attempt(deed)
        return []

    @cached_property
    def _deeds(self) -> list[Deed]:
        """What has to be written, in order; what is forbidden, or was declined, is left out."""
        refusals = [
            self._deed("decline", order, "decline", order, rule, shows="declined")
            for order, rule in self._forbidden.items()
        ]
        left_out = self._declined.union(self._forbidden)
        return refusals + [deed for deed in self._wanted_deeds() if deed.order not in left_out]

    def _deed(
        self,
        family: str,
        order: int,
        role: str,
        *values: Any,
        shows: str = "",
        rule: str = "",
        also: Sequence[str] = (),
    ) -> Deed:
        """A deed with one way to do it."""
        return Deed(
            family,
            order,
            lambda call: self.manual.role_of(call.tool) == role and {v for _, v in call.values}.issuperset(values),
            tuple(Way(call) for call in self._find(role, *values, also=also)),
            lambda: not shows or bool(self.shown.records.get(order, {}).get(shows)),
            rule,
        )

    def _wanted_deeds(self) -> Iterator[Deed]:
        case, kind = self.case, self.wish.kind
        order = case.order or 0
        if kind in ("cancel", "cancel_and_return"):
            cancelled = order if kind == "cancel" else case.second or 0
            yield self._deed("cancel", cancelled, "cancel_order", cancelled, rule="cancel_until")._replace(
                shows=lambda: self.shown.records[cancelled].get("status") == "cancelled"
            )
        if kind == "address":
            yield from self._move_customer()
        if kind == "redirect":
            yield self._deed("redirect", order, "redirect_order", order, also=("text",))._replace(
                shows=lambda: self._is_at(self.shown.records[order])
            )
        if kind in RETURNS:
            yield from (deed for item in case.items for deed in self._return(item))
        if kind == "lost":
            yield self._deed("lost", order, "report_lost", self._shipment_id, rule="lost_days")
        if kind in REFUNDS:
            yield from self._refund()
        if kind in ("exchange", "missing_item"):
            yield self._send()
        if kind == "split_delivery":
            yield from self._split()

    def _is_at(self, record: Any) -> bool:
        """Whether the record has the address of the request."""
        return str(record.get("street", "")).lower() in self.wish.words

    def _move_customer(self) -> Iterator[Deed]:
        customer = self.case.customer or 0
        roles = [role for role in ("update_address", "update_street", "update_city") if role in self.manual.names]
        for role in roles:
            yield self._deed("address", 0, role, customer, also=("text",))._replace(
                shows=lambda: self._is_at(self.shown.records[customer])
            )

    def _return(self, item: Any) -> Iterator[Deed]:
        case, key = self.case, read_key(item["item_id"])
        order = case.order or 0
        if "register_return" in self.manual.names:
            yield self._deed("register", order, "register_return", key, rule="return_days")
        codes = [UseOfTool(f"code {case.meaning}", code) for code in (case.meaning, *REASONS)]
        role = "return_item" if "return_item" in self.manual.names else "complete_return"
        ways = tuple(
            Way(call, (choice,))
            for choice in self.beliefs.sort(list(dict.fromkeys(codes)))
            for call in self._find(role, key, choice.value)
        )
        yield Deed(
            "return",
            order,
            lambda call: call.has("reason") and call.get("I") == key,
            ways,
            lambda: item["status"] == "returned",
            "" if case.meaning == "damaged" else "return_days",
        )

    def _refund(self) -> Iterator[Deed]:
        case, cents, order = self.case, self._cents, self.case.order or 0
        payment = read_key((case.payment or {}).get("payment_id"))
        if payment is None or not cents or cents < 0:
            return
        amounts = {unit: round(cents / 100 * factor, 2) for unit, factor in UNITS.items()}
        units = [choice.value for choice in self.beliefs.sort([UseOfTool("unit", unit) for unit in UNITS])]
        forms = self.beliefs.sort([UseOfTool("card", LEFT_OUT), UseOfTool("card", NAMED)])
        cards = {LEFT_OUT: case.wanted_card, NAMED: case.wanted_card or case.own_card}
        is_split = "draft_refund" in self.manual.names
        if is_split:
            ways = [(unit, Way(call, (UseOfTool("unit", unit),))) for unit in units
                    for call in self._find("draft_refund", payment, amounts[unit])]  # fmt: skip
            yield self._of_refund("draft", order, [way for _, way in ways], lambda call: call.has("P", "amount"))
        found = []
        for unit in units:
            for form in forms:
                card = cards[form.value]
                given = [payment, *([] if is_split else [amounts[unit]]), *([] if card is None else [card])]
                role = "send_refund" if is_split else "refund"
                choices = (*(() if is_split else (UseOfTool("unit", unit),)), form)
                found += [Way(call, choices) for call in self._find(role, *given)]
        yield self._of_refund("refund", order, found, lambda call: call.has("P") and call.has("amount") != is_split)

    def _of_refund(self, family: str, order: int, ways: Sequence[Way], is_done: Callable[[Call], bool]) -> Deed:
        refunded = (self.case.payment or {}).get("refunded")
        rule = _DENIALS.get(self.wish.kind, "")
        return Deed(family, order, is_done, tuple(ways), lambda: family == "draft" or bool(refunded), rule)

    def _send(self) -> Deed:
        order, product = self.case.order or 0, self.case.product
        forms = {LEFT_OUT: (), NAMED: ("standard",)}
        ways = tuple(
            Way(call, (form,))
            for form in self.beliefs.sort([UseOfTool("speed", one) for one in forms])
            for call in self._find("send_item", order, product, *forms[form.value])
        )
        return Deed(
            "send",
            order,
            lambda call: call.has("G") and call.get("O") == order,
            ways,
            lambda: bool(self.case.details.get("sent", True)),
        )

    def _split(self) -> Iterator[Deed]:
        case, order = self.case, self.case.order or 0
        item = read_key(case.items[0]["item_id"]) if case.items else None
        if "ship_item" in self.manual.names:
            yield self._deed("ship", order, "ship_item", item, self.wish.day)
            return
        yield self._deed("create", order, "create_shipment", order, self.wish.day)
        shipments = [read_key(one["shipment_id"]) for one in case.details.get("shipments", ())]
        move = self._deed("move", order, "move_item", item, *shipments[1:2])
        # the new shipment has to be seen first
        again = tuple(Way(call) for call in self._find("get_order", order))
        yield move if len(shipments) > 1 else move._replace(ways=again, is_done=lambda call: False)

    def _attempt(self, deed: Deed) -> list[str]:
        """The calls for a deed, without those that are refused; a denial is answered by declining."""
        ways = list(deed.ways)
        refused = {way.call: error for way in ways if (error := self.beliefs.refusal(way.call)) is not None}
        if self._error is not None:
            just = self.beliefs.last_call or next((way.call for way in ways if way.call not in refused), None)
            self.is_blind = self.beliefs.last_call is None and self._error.code == "conflict"
            if just is not None:
                refused[just] = self._error
        for way in deed.ways:
            error = refused.get(way.call)
            if error is None or error.code not in _FINAL:
                continue
            if error.rule == "approval_limit" and self.case.order is not None:
                return self._find("hand_over", self.case.order)
            if deed.rule and error.code in _DENIED:
                return self._find("decline", deed.order, error.rule or deed.rule)
            ways = self._without(ways, way, error)
        return [way.call for way in ways or deed.ways]

    def _without(self, ways: Sequence[Way], refused: Way, error: DeskError) -> list[Way]:
        """The ways that an error leaves open: another form for a default, another unit for an amount."""
        if error.code == "redundant":
            barred = {UseOfTool("card", NAMED), UseOfTool("speed", NAMED)}
        else:
            barred = {choice for choice in refused.choices if choice.about == "unit"}
        return [way for way in ways if way.call != refused.call and not barred.intersection(way.choices)]

    # Checking.

    def _check(self) -> list[str]:
        """Read again what was written, where a way is not known to work; repeat what does not show."""
        if not self._checks:
            return []
        deeds = [deed for deed in self._deeds if deed.family not in ("draft", "register", "create", "lost")]
        doubtful = [deed for deed in deeds if not self._is_backed(deed)]
        deed = next((deed for deed in doubtful if not self._reads_since(deed) or not deed.shows()), None)
        if deed is None:
            return []
        if self._reads_since(deed) < READS:
            return self._find("get_order", deed.order) if deed.order else self._find("find_customer")
        return self._attempt(deed)

    def _is_backed(self, deed: Deed) -> bool:
        """Whether all that was chosen is known to work."""
        way = next((way for way in deed.ways if any(way.call == call.text for call in self.shown.calls)), None)
        choices = [] if way is None else [*way.choices]
        choices += [UseOfTool(f"lands {deed.family}", AT_ONCE)]
        return all(self.beliefs.rank(choice) == 0 for choice in choices)

    def _reads_since(self, deed: Deed) -> int:
        """How often the record was read since the deed was done last."""
        role, key = ("get_order", deed.order) if deed.order else ("find_customer", None)
        count = 0
        for call in reversed(self.shown.calls):
            if deed.is_done(call):
                return count
            is_read = self.manual.role_of(call.tool) == role
            count += is_read and (key is None or call.get("O") == key) and not family_of(call)
        return count
