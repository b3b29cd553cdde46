"""What is believed about tools and requests, from the recollections of a prompt; conflicts settled.

* `Tau2Beliefs` - which ways of using tools worked, what met this request, which calls are refused here
* `ToolWay`, `ways_of` - one way of using a tool, and those that a call uses
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from drift_agents.envs.tau2.call import DeskCall, DeskManual, is_write, read_call
from drift_agents.envs.tau2.matching import read_tau2_state
from drift_agents.prompt.conflict import settle
from drift_agents.prompt.view import PromptView, Recollection

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
        conflict: how contradicting evidence is weighed (`drift_agents.prompt.conflict`).
    """

    def __init__(self, view: PromptView, request: str, manual: DeskManual, conflict: str) -> None:
        self._conflict, self._here, self._manual = conflict, view.here, manual
        self._doubt = -1 if view.doubt_since is None else view.doubt_since
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
        fresh = [one for one in known if one[2] >= self._doubt]
        totals: dict[bool, tuple[float, int]] = {}
        for worked, support, last in fresh or known:
            before = totals.get(worked, (0.0, -1))
            totals[worked] = before[0] + support, max(before[1], last)
        shares = settle([(worked, *seen) for worked, seen in totals.items()], self._conflict)
        believed = max(shares, key=lambda pair: (pair[1], totals[pair[0]][1]))[0]
        return 1 - believed / 2 if not fresh else 0 if believed else 2

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
