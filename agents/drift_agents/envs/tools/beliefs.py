"""What is believed about tools, from the recollections of a prompt: which ways of using them worked."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from drift_agents.envs.tools.desk import Case, read_wish
from drift_agents.envs.tools.states import REASONS, Call, DeskError, read_call, read_desk_state, read_error, read_key
from drift_agents.prompt.view import PromptView, Recollection, believe_newer

UNITS = {"euros": 1.0, "cents": 100.0, "dollars": 1.25}
"""By unit, the amount that is given to a tool for one euro, the most natural one first."""
LEFT_OUT, NAMED = "left out", "named"
AT_ONCE = "at once"
"""A write that has an effect the first time."""
_CLOSE = 0.16
"""How far the logarithm of an amount may lie from that of a unit: a fee of some per cent is part of it."""


class UseOfTool(NamedTuple):
    """One way of using a tool.

    Args:
        about: what is chosen: `unit`, `card`, `speed`, `code` with a meaning, or `lands` with a family of calls.
        value: what was chosen.
    """

    about: str
    value: str


class _Sighting(NamedTuple):
    value: Any
    support: float
    last: int


class DeskBeliefs:
    """Which choices worked, which amounts need a person, which calls are refused here.

    What was last seen before memory was contradicted counts only where nothing newer is known, and is not trusted.

    Args:
        view: the prompt.
        conflict: how contradicting evidence is weighed (`drift_agents.prompt.view`).
    """

    def __init__(self, view: PromptView, conflict: str) -> None:
        self._conflict = conflict
        self._doubt = view.trusted_since
        self._works: dict[UseOfTool, list[_Sighting]] = {}
        self._people: list[tuple[int, _Sighting]] = []
        for item in (*view.elsewhere, *view.here):
            for about, value in read_evidence(item):
                sighting = _Sighting(value, item.support, item.last)
                if isinstance(about, UseOfTool):
                    self._works.setdefault(about, []).append(sighting)
                else:
                    self._people.append((about, sighting))
        self._here = view.here
        self.last_call = next((item.action for item in view.here if item.last == view.step - 1), None)
        """The call before this decision, where memory shows it."""

    def rank(self, choice: UseOfTool) -> int:
        """0 for one that is known to work, 1 for one that may, 2 for one that is known not to.

        Args:
            choice: the choice.
        """
        known = self._works.get(choice)
        if not known:
            return 1
        value, is_trusted = self._settle(known)
        return 1 if not is_trusted else 0 if value else 2

    def sort(self, choices: Sequence[UseOfTool]) -> list[UseOfTool]:
        """Choices, the most believable first; the given order decides between equal ones.

        Args:
            choices: the choices, the most natural one first.
        """
        return sorted(choices, key=lambda one: (self.rank(one), not self._worked_before(one)))

    def _worked_before(self, choice: UseOfTool) -> bool:
        known = self._works.get(choice)
        return known is not None and bool(self._settle(known)[0])

    def needs_person(self, cents: int, limit: int) -> bool:
        """Whether a refund has to be handed over to a person: as the page says, or as is known beyond that.

        Args:
            cents: what is to be refunded.
            limit: the limit of the policy page, in euros.
        """
        if cents > 100 * limit:
            return True
        known = [seen for at, seen in self._people if (at <= cents if seen.value else at >= cents)]
        value, is_trusted = self._settle(known) if known else (False, False)
        return bool(value) and is_trusted

    def refusal(self, call: str) -> DeskError | None:
        """The error with which a call is known to be refused in this state.

        Args:
            call: the call as text.
        """
        known = [
            _Sighting(None if item.outcome.ended else _error_after(item.outcome.state), item.support, item.last)
            for item in self._here
            if item.action == call
        ]
        if not known:
            return None
        value, is_trusted = self._settle(known)
        return value if is_trusted else None

    def _settle(self, known: list[_Sighting]) -> tuple[Any, bool]:
        """The believed value, and whether it was seen since memory was contradicted."""
        return believe_newer(known, self._doubt, self._conflict)


def _error_after(state: str) -> DeskError | None:
    shown = read_desk_state(state)
    return None if shown is None else read_error(shown.answer)


def family_of(call: Call) -> str:
    """What a call writes, by the kinds of its values, whatever the tools are called; empty for other calls.

    Args:
        call: the call.

    Example:
        >>> family_of(read_call('{"tool": "pay", "arguments": {"id": "P-4001", "sum": 24.0}}'))
        'refund'
    """
    families = {
        "return": ("I", "reason"),
        "send": ("O", "G"),
        "refund": ("P", "amount"),
        "address": ("C", "text"),
        "redirect": ("O", "text"),
        "move": ("I", "S"),
        "ship": ("I", "date"),
        "create": ("O", "date"),
        "decline": ("O", "rule"),
    }
    return next((family for family, kinds in families.items() if call.has(*kinds)), "")


def unit_of(amount: float, cents: int) -> str | None:
    """The unit in which an amount was given; `None` if it fits none.

    Args:
        amount: the amount that a tool was given.
        cents: what it should come to.

    Example:
        >>> unit_of(24.0, 2400), unit_of(2400.0, 2400), unit_of(30.0, 2400), unit_of(7.0, 2400)
        ('euros', 'cents', 'dollars', None)
    """
    if amount <= 0 or cents <= 0:
        return None
    off = {unit: abs(math.log(100 * amount / cents / factor)) for unit, factor in UNITS.items()}
    unit = min(off, key=lambda one: off[one])
    return unit if off[unit] <= _CLOSE else None


Evidence = tuple[UseOfTool | int, bool]
"""A choice and whether it worked, or an amount in cents and whether it needs a person."""


@lru_cache(maxsize=8192)
def read_evidence(item: Recollection) -> tuple[Evidence, ...]:
    """What one recollection shows about tools.

    Args:
        item: the recollection.
    """
    before, after, call = read_desk_state(item.state), read_desk_state(item.outcome.state), read_call(item.action)
    wish = None if before is None else read_wish(before.request)
    if before is None or after is None or wish is None or call is None:
        return ()
    case, error = Case(before, wish), read_error(after.answer)
    if item.outcome.ended:
        return tuple(_read_end(case, call, item.outcome.score))
    if error is not None:
        return tuple(_read_refusal(case, call, error))
    if "payments" in after.answer:
        return tuple(_read_effects(Case(after, wish)))
    return tuple(_read_acceptance(case, call))


def _read_end(case: Case, call: Call, score: float) -> Iterator[Evidence]:
    """The score tells whether all choices worked."""
    worked = score > 0.5
    if call.has("O"):
        if (cents := case.cents()) is not None and (worked or not any(map(family_of, case.shown.calls))):
            yield cents, worked
        return
    for choice in _choices(case):
        yield choice, worked


def _choices(case: Case) -> Iterator[UseOfTool]:
    """The choices in the calls of an episode."""
    counts = Counter((family_of(call), call.values) for call in case.shown.calls)
    for (family, values), count in counts.items():
        call = Call("", "", values)
        if family == "refund" and (cents := case.cents()) and (unit := unit_of(call.get("amount"), cents)):
            yield UseOfTool("unit", unit)
        if family == "return":
            yield UseOfTool(f"code {case.meaning}", call.get("reason"))
        if family == "send":
            yield UseOfTool("speed", NAMED if call.has("speed") else LEFT_OUT)
        if call.has("P") and case.wanted_card is None and (call.has("K") or _pays(call, case)):
            yield UseOfTool("card", NAMED if call.has("K") else LEFT_OUT)
        if family and count == 1:
            yield UseOfTool(f"lands {family}", AT_ONCE)


def _pays(call: Call, case: Case) -> bool:
    """Whether a call about a payment pays, and is no draft that another call pays."""
    return not call.has("amount") or all(one.has("amount") for one in case.shown.calls if one.has("P"))


def _read_refusal(case: Case, call: Call, error: DeskError) -> Iterator[Evidence]:
    """A default that was named is refused, and so is an amount that needs a person."""
    about = "speed" if call.has("speed") else "card" if call.has("K") else ""
    if error.code == "redundant" and about:
        yield UseOfTool(about, NAMED), False
        yield UseOfTool(about, LEFT_OUT), True
    if call.has("P") and error.rule == "approval_limit" and (cents := case.cents()) is not None:
        yield cents, True


def _read_acceptance(case: Case, call: Call) -> Iterator[Evidence]:
    """Only what is no default may be named, and only what did nothing is accepted again."""
    if call.has("K", "P") and call.get("K") == case.own_card:
        yield UseOfTool("card", NAMED), True
        yield UseOfTool("card", LEFT_OUT), False
    if call.get("speed") == "standard":
        yield UseOfTool("speed", NAMED), True
        yield UseOfTool("speed", LEFT_OUT), False
    if call.has("P") and (cents := case.cents()) is not None:
        yield cents, False
    family = family_of(call)
    if family == "return" and any(one.values == call.values for one in case.shown.calls):
        yield UseOfTool("lands return", AT_ONCE), False


def _read_effects(case: Case) -> Iterator[Evidence]:
    """An order that was read again shows what the writes before have done."""
    shown = case.details
    for call in case.shown.calls:
        family = family_of(call)
        if family == "return":
            for item in shown.get("items", ()):
                if read_key(item["item_id"]) == call.get("I") and item["status"] == "returned":
                    yield from _only(f"code {item['reason']}", str(call.get("reason")), REASONS)
        if family == "refund":
            for payment in shown.get("payments", ()):
                if read_key(payment["payment_id"]) == call.get("P"):
                    yield from _read_refunds(call, payment["refunded"])
    for sent in shown.get("sent", ()):
        if not any(call.has("speed") for call in case.shown.calls):
            yield from _only("speed", LEFT_OUT if sent["speed"] == "standard" else NAMED, (LEFT_OUT, NAMED))


def _read_refunds(call: Call, refunds: Sequence[Mapping[str, Any]]) -> Iterator[Evidence]:
    for paid in refunds:
        unit = unit_of(call.get("amount"), round(100 * paid["amount"]))
        if unit is not None:
            yield from _only("unit", unit, UNITS)
        if not call.has("K"):
            works = NAMED if paid["to"] == "store credit" else LEFT_OUT
            yield from _only("card", works, (LEFT_OUT, NAMED))


def _only(about: str, value: str, among: Iterable[str]) -> Iterator[Evidence]:
    """Of several choices, one works and the others do not."""
    return ((UseOfTool(about, one), one == value) for one in among)
