"""The planner for tau2-bench's desks: beliefs about tools from records, and what it calls next."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from drift_agents.envs.tau2.states import (
    ROLES,
    DeskCall,
    DeskManual,
    ShownTau2,
    is_read,
    is_write,
    read_call,
    read_manual,
    read_tau2_state,
)
from drift_agents.errors import ArgumentError
from drift_agents.policy.base import ParsedPlanner, Reply
from drift_agents.policy.planner import GenericPlanner
from drift_agents.prompt.view import PromptView, Recollection, believe_newer
from drift_envs.checks import check_flag


class Tau2Planner(ParsedPlanner[ShownTau2]):
    """Identifies the user, writes, checks and ends; records of the prompt decide how tools are used.

    * Tools are found by the words of their descriptions, so that a new name is no obstacle.
    * Calls about records that neither the request nor a read has named are those of other users.
    * What met this request before is done again, in its order; else every write that is about the user's records.
    * What can be done in several ways (the unit of an amount, an argument that can be left out) is done as it is known
      to have worked. A write that is not known to have an effect at once is checked by reading, and repeated.
    * A call that the policy refuses is preceded by the read that the error names.

    What was seen before memory was found wrong does not count as known.

    Args:
        conflict: how several outcomes of one (state, action) are weighed (`drift_agents.prompt.view`).
        checks: whether it reads again what was written in a way that is not known to work.

    Raises:
        ArgumentError: if an option is outside its range.

    Example:
        >>> at = '{"domain": "airline", "request": "Cancel EHGLP3.", "records": {}, "made": [], "answer": {}}'
        >>> calls = [f'{{"tool": "void", "arguments": {{"number": "{one}"}}}}' for one in ("AB12CD", "EHGLP3")]
        >>> view = PromptView("void(number: string) - Cancel the whole reservation.", at, tuple(calls))
        >>> Tau2Planner().decide(view, np.random.default_rng(0)).text == calls[1]
        True
    """

    name, shows = "tau2", "one of tau2-bench"
    parse = staticmethod(read_tau2_state)

    def __init__(self, *, conflict: str = "majority", checks: bool = True) -> None:
        super().__init__(conflict=conflict)
        self.checks = check_flag("checks", checks)
        self._generic = GenericPlanner(conflict=conflict)

    def _choose(self, shown: ShownTau2, view: PromptView, rng: np.random.Generator) -> str:
        manual = read_manual(view.task)
        plan = _Plan(view, shown, manual, Tau2Beliefs(view, shown.request, manual, self.conflict), rng, self.checks)
        call = next(plan.calls(), None)
        return self._generic.decide(view, rng).text if call is None else call.text


class Leaving:
    r"""Ends every request of tau2-bench at once: the score that nothing earns.

    Some published actions change nothing, so that 19 of 50 airline and 7 of 114 retail tasks score 1 for it: what an
    agent can do begins above that.

    Example:
        >>> actions = ('{"tool": "get_order", "arguments": {"order_id": "#W1"}}', '{"tool": "end", "arguments": {}}')
        >>> view = PromptView("get_order(order_id: string) - Get an order.\nend() - Finish the request.", "{}", actions)
        >>> Leaving().decide(view, np.random.default_rng(0)).text == actions[1]
        True
    """

    name = "leaving"

    def decide(self, view: PromptView, rng: np.random.Generator) -> Reply:
        """The shortest call that ends the request, by the description of its tool.

        Raises:
            ArgumentError: if the view offers none.
        """
        manual = read_manual(view.task)
        calls = (read_call(action) for action in view.actions)
        ends = [call.text for call in calls if call is not None and manual.role_of(call) == "finish"]
        if not ends:
            raise ArgumentError(
                f"`view` should offer a call that ends a request of tau2-bench. Received {view.actions!r:.200}"
            )
        return Reply(min(ends, key=len))


REPEATS = 3
"""How often a write that does not show is repeated."""

_QUESTION = re.compile(r"how (much|many)|total|number|price|tell you|want to know|what is|confirm", re.I)
_FIRST = re.compile(r"first call (?P<call>\{.*\})$")
_FINDS = ("find_user_id_by_email", "find_user_id_by_name_zip")
_DETAILS = ("get_user_details", "get_order_details", "get_reservation_details")
_DENIED = ("policy", 403, "failed")
_SHOWS = {
    "cancel": "cancelled",
    "return": "return requested",
    "exchange": "exchange requested",
    "modify_pending_order_items": "modified",
    "book": "HATHA",
    "send": "certificate",
}
"""By the beginning of a usual name, what a record shows when the write was done; else the values of the call."""


class _Plan:
    """The calls that make sense now, the best one first."""

    def __init__(
        self,
        view: PromptView,
        shown: ShownTau2,
        manual: DeskManual,
        beliefs: Tau2Beliefs,
        rng: np.random.Generator,
        checks: bool,
    ) -> None:
        self._shown, self._manual, self._beliefs, self._rng, self._checks = shown, manual, beliefs, rng, checks
        calls = [call for call in map(read_call, view.actions) if call is not None]
        self._offered = sorted(calls, key=self._order)
        self._made = {(manual.role_of(call), call.words) for call in shown.made}
        self._is_lost = "error" in shown.answer and shown.answer not in beliefs.refused.values()
        """Whether nothing shows which call was refused just now."""

    def _order(self, call: DeskCall) -> int:
        role = self._manual.role_of(call)
        return ROLES.index(role) if role else len(ROLES)

    @cached_property
    def _seen(self) -> str:
        """What the request and reads have shown, now or when the request was met before."""
        success = self._beliefs.success
        before = " ".join(call.text for call in success[0]) if success else ""
        return f"{self._shown.request} {json.dumps(dict(self._shown.records))} {before}"

    def calls(self) -> Iterator[DeskCall]:
        """Yield them."""
        found = (call for step in (self._obey, self._identify, self._write, self._check, self._end) for call in step())
        return (call for call in found if call.text not in self._beliefs.refused)

    def _obey(self) -> Iterator[DeskCall]:
        """The reads that the policy demands, where a call was refused just now or is known to be refused here."""
        for answer in (self._shown.answer, *self._beliefs.refused.values()):
            if answer.get("error") in _DENIED:
                named = _FIRST.search(str(answer.get("message", "")))
                if named:
                    yield from (call for call in self._offered if call.text == named["call"])
                else:
                    yield from self._new_reads(_DETAILS)

    def _new_reads(self, roles: Sequence[str]) -> Iterator[DeskCall]:
        """Reads that were not made, about what was seen."""
        for call in self._offered:
            role = self._manual.role_of(call)
            if role in roles and (role, call.words) not in self._made and all(one in self._seen for one in call.words):
                yield call

    def _identify(self) -> Iterator[DeskCall]:
        made = {role for role, _ in self._made}
        if self._beliefs.success is None and _DETAILS[0] not in made:
            yield from self._new_reads(_DETAILS[:1] if made.intersection(_FINDS) else (*_FINDS, _DETAILS[0]))

    def _write(self) -> Iterator[DeskCall]:
        """The best ways of the deeds that are not done."""
        deeds = self._deeds()
        left = [deed for deed in deeds if not any(self._is_same(deed[0], call) for call in self._shown.made)]
        for deed in left:
            left_ways = [call for call in deed if call.text not in self._beliefs.refused]
            ways = sorted(left_ways, key=lambda call: (self._beliefs.cost(call), call.arguments, sum(call.numbers)))
            yield from [ways[int(self._rng.integers(len(ways)))]] if ways and self._is_lost else ways

    def _deeds(self) -> list[list[DeskCall]]:
        """What has to be written, each with the calls that may do it."""
        deeds: list[list[DeskCall]] = []
        for call in self._offered:
            if is_write(self._manual.role_of(call)) and call.record and call.record in self._seen:
                known = next((deed for deed in deeds if self._is_same(deed[0], call)), None)
                deeds.append([call]) if known is None else known.append(call)
        success = self._beliefs.success
        if success is None:
            failed = any(self._beliefs.has_failed(call.words) for call in self._ends)
            return [deeds[at] for at in self._rng.permutation(len(deeds))] if failed else deeds
        places = [[i for i, call in enumerate(success[0]) if self._is_same(deed[0], call)] for deed in deeds]
        return [deed for _, deed in sorted(((at[0], deed) for at, deed in zip(places, deeds, strict=True) if at),
                                           key=lambda pair: pair[0])]  # fmt: skip

    def _is_same(self, one: DeskCall, other: DeskCall) -> bool:
        """Whether two calls do the same, each in its way and in the words of its time."""
        roles = {self._manual.role_of(one), self._manual.role_of(other)} - {""}
        is_part = one.words <= other.words or other.words <= one.words
        units = zip(one.numbers, other.numbers, strict=False)
        return len(roles) < 2 and is_part and one.record == other.record and all(_is_unit(a, b) for a, b in units)

    def _check(self) -> Iterator[DeskCall]:
        """Read again what was written in a way that is not known to work, and write again what does not show."""
        made = self._shown.made
        for place, call in enumerate(made if self._checks else ()):
            role = self._manual.role_of(call)
            again = [at for at, one in enumerate(made) if self._is_same(call, one)]
            if not is_write(role) or again[-1] != place or self._beliefs.rank(ToolWay(f"lands {role}", AT_ONCE)) == 0:
                continue
            reads = [one for one in self._offered if one.words == {call.record} and is_read(self._manual.role_of(one))]
            if not any(one.words == {call.record} and is_read(self._manual.role_of(one)) for one in made[place:]):
                yield from reads
            elif not self._shows(role, call) and len(again) < REPEATS:
                yield from (one for one in self._offered if one.text == call.text)

    def _shows(self, role: str, call: DeskCall) -> bool:
        record = next((one for key, one in self._shown.records.items() if key.removeprefix("#W") == call.record), None)
        text = json.dumps(record)
        wanted = next(([word] for start, word in _SHOWS.items() if role.startswith(start)), call.words)
        return record is None or all(one in text for one in wanted)

    @cached_property
    def _ends(self) -> list[DeskCall]:
        return [call for call in self._offered if self._manual.role_of(call) == "finish"]

    def _end(self) -> Iterator[DeskCall]:
        """End as it worked; else with a message of which all was read, or with none if nothing is asked."""
        ends, success = self._ends, self._beliefs.success
        if success is not None and success[1] is not None:
            yield from (call for call in ends if call.words == success[1].words)
        asks = bool(_QUESTION.search(self._shown.request))

        def cost(call: DeskCall) -> tuple[bool, bool, bool]:
            parts = [part for word in call.words for part in word.split("; ")]
            is_read_off = bool(parts) and all(
                re.search(rf"(?<![\w.]){re.escape(part)}(?![\w.])", self._seen, re.I) for part in parts
            )
            return self._beliefs.has_failed(call.words), not is_read_off, bool(parts) != asks

        if asks and success is None and not any(call.words and not cost(call)[1] for call in ends):
            yield from self._new_reads((*_DETAILS[1:], "get_product_details"))
        yield from sorted(ends, key=cost)


def _is_unit(one: float, other: float) -> bool:
    return one in (other, 100 * other) or other == 100 * one


LEFT_OUT, NAMED, AT_ONCE = "left out", "named", "at once"
_PAYING = ("book_reservation", "send_certificate")
_LEAST_CENTS = 3000
"""Whole hundreds from here on are taken to be cents."""


class ToolWay(NamedTuple):
    """One way of using a tool.

    Args:
        about: what is chosen: `unit`, or `argument` or `lands` with the usual name of a tool.
        value: what was chosen.
    """

    about: str
    value: str


def ways_of(call: DeskCall, manual: DeskManual) -> Iterator[ToolWay]:
    """The ways of using tools that a call shows.

    Args:
        call: the call.
        manual: what the task says about the tools.
    """
    role = manual.role_of(call)
    if role in manual.optional and is_write(role):
        yield ToolWay(f"argument {role}", LEFT_OUT if call.arguments < manual.most[role] else NAMED)
    if role in _PAYING and (amounts := [one for one in call.numbers if one > 10]):
        is_cents = max(amounts) >= _LEAST_CENTS and all(one % 100 == 0 for one in amounts)
        yield ToolWay("unit", "cents" if is_cents else "dollars")


class _Ended(NamedTuple):
    """An episode that has ended: its calls, the last one, whether it met the request, and how often and when."""

    request: str
    made: tuple[DeskCall, ...]
    last_call: DeskCall | None
    worked: bool
    support: float
    last: int


class Tau2Beliefs:
    """Which ways of using tools worked, what met this request, which calls are refused here.

    What was last seen before memory was contradicted counts only where nothing newer is known, and is not trusted.

    Args:
        view: the prompt.
        request: the present request.
        manual: what the task says about the tools.
        conflict: how contradicting evidence is weighed (`drift_agents.prompt.view`).
    """

    def __init__(self, view: PromptView, request: str, manual: DeskManual, conflict: str) -> None:
        self._conflict, self._here, self._manual = conflict, view.here, manual
        self._doubt = view.trusted_since
        ended = sorted(filter(None, map(_read_end, (*view.elsewhere, *view.here))), key=lambda one: one.last)
        self._own = [one for one in ended if one.request == request]
        self._known: dict[ToolWay, list[tuple[bool, float, int]]] = {}
        for one in ended:
            for way, worked in self._read_ways(one):
                self._known.setdefault(way, []).append((worked, one.support, one.last))

    def _read_ways(self, one: _Ended) -> Iterator[tuple[ToolWay, bool]]:
        """Where a write was neither read again nor repeated, a failure only tells that it may have done nothing."""
        places = {call.text: place for place, call in enumerate(one.made)}
        for text, count in Counter(call.text for call in one.made).items():
            place = places[text]
            call = one.made[place]
            role = self._manual.role_of(call)
            if is_write(role):
                is_checked = any(later.words == {call.record} for later in one.made[place + 1 :])
                yield ToolWay(f"lands {role}", AT_ONCE), count == 1 and (one.worked or is_checked)
                if one.worked or count > 1 or is_checked:
                    yield from ((way, one.worked) for way in ways_of(call, self._manual))

    def rank(self, way: ToolWay) -> float:
        """0 for one that is known to work, 1 for one that may (0.5 if it did before), 2 for one that is known not to.

        Args:
            way: the way.
        """
        known = self._known.get(way)
        if not known:
            return 1
        believed, is_trusted = believe_newer(known, self._doubt, self._conflict)
        return 1 - believed / 2 if not is_trusted else 0 if believed else 2

    def cost(self, call: DeskCall) -> float:
        """The sum of the ranks of the ways that a call uses; how often it was in vain, if this request was never met.

        Args:
            call: the call.
        """
        in_vain = 0 if self.success else sum(call.text in (made.text for made in one.made) for one in self._own)
        return in_vain + sum(map(self.rank, ways_of(call, self._manual)))

    @property
    def success(self) -> tuple[tuple[DeskCall, ...], DeskCall | None] | None:
        """The calls that have last met this request, and the one that ended it; `None` if none are known."""
        found = [one for one in self._own if one.worked]
        return (found[-1].made, found[-1].last_call) if found else None

    def has_failed(self, message: frozenset[str]) -> bool:
        """Whether this request was ended with a message in vain, as far as is known since the last contradiction.

        Args:
            message: the words of the call that ended it.
        """
        return any(
            not one.worked and one.last >= self._doubt and one.last_call is not None and one.last_call.words == message
            for one in self._own
        )

    @cached_property
    def refused(self) -> dict[str, Mapping[str, Any]]:
        """By text, the calls that are known to be refused in this state, with what they were answered."""
        answers: dict[str, Mapping[str, Any]] = {}
        for item in sorted(self._here, key=lambda item: item.last):
            after = read_tau2_state(item.outcome.state) if item.last >= self._doubt else None
            if after is not None:
                answers[item.action] = after.answer
        return {text: answer for text, answer in answers.items() if "error" in answer}


def _read_end(item: Recollection) -> _Ended | None:
    before = read_tau2_state(item.state) if item.outcome.ended else None
    if before is None:
        return None
    return _Ended(
        before.request, before.made, read_call(item.action), item.outcome.score > 0.5, item.support, item.last
    )
