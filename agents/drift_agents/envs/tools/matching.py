"""When two states of the service desk, and what they lead to, count as the same.

* `ToolsMatching` - the request and the calls so far; outcomes by their answers
* `ShownDesk`, `read_desk_state` - a state of the desk as its JSON text shows it
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from drift_agents.envs.tools.call import Call, as_call, read_key
from drift_agents.matching import Exact
from drift_agents.types import Experience, Transition


class ShownDesk(NamedTuple):
    """A state of the desk, parsed from its JSON text.

    Args:
        shop: the number of the database.
        request: the request in words.
        records: what was looked up, by the number of its id, in the order in which it was first shown.
        calls: the calls that were answered without an error.
        answer: the last answer.
    """

    shop: int
    request: str
    records: Mapping[int, Mapping[str, Any]]
    calls: tuple[Call, ...]
    answer: Mapping[str, Any]


@lru_cache(maxsize=2048)
def read_desk_state(state: str) -> ShownDesk | None:
    """Parse a state; `None` if the text is no state of the desk.

    Args:
        state: the text state.

    Example:
        >>> text = '{"shop": 7, "request": "Stop it.", "records": {"O-2054": {"status": "packed"}}, '
        >>> shown = read_desk_state(text + '"calls": [{"tool": "get_order", "arguments": {}}], "answer": {}}')
        >>> shown.records[2054]["status"], shown.calls[0].tool
        ('packed', 'get_order')
    """
    try:
        shown = json.loads(state)
        records = {read_key(key): dict(fields) for key, fields in shown["records"].items()}
        calls = tuple(map(as_call, shown["calls"]))
        answer = dict(shown["answer"])
        number, request = int(shown["shop"]), str(shown["request"])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    if None in records or None in calls:
        return None
    return ShownDesk(number, request, records, calls, answer)  # type: ignore[arg-type]


class ToolsMatching:
    """The request and the calls that were answered without an error; outcomes by their answers.

    A call that was refused changed nothing, so the last answer belongs to the outcome and not to the state. What was
    looked up follows from the calls.

    Texts that are no states of the desk are compared as they are.

    Example:
        >>> rule = ToolsMatching()
        >>> one = '{"shop": 7, "request": "Stop it.", "records": {}, "calls": [], "answer": {}}'
        >>> rule.state_key(one) == rule.state_key(one.replace('"answer": {}', '"answer": {"error": 440}'))
        True
        >>> rule.state_key(one) == rule.state_key(one.replace("Stop", "Send"))
        False
    """

    name = "tools"

    def __init__(self) -> None:
        self._plain = Exact()

    def state_key(self, state: str) -> Hashable:
        """Shop, request and calls."""
        shown = read_desk_state(state)
        if shown is None:
            return self._plain.state_key(state)
        return (shown.shop, shown.request, tuple(call.text for call in shown.calls))

    def same_outcome(self, a: Transition, b: Transition) -> bool:
        """Whether score, end and answer are the same."""
        if a.outcome.score != b.outcome.score or a.outcome.ended != b.outcome.ended:
            return False
        one, other = read_desk_state(a.outcome.state), read_desk_state(b.outcome.state)
        if one is None or other is None:
            return self._plain.same_outcome(a, b)
        return one.answer == other.answer

    def learn(self, experience: Experience) -> None:
        """Do nothing: the rule is fixed."""

    def related(self, state: str, other: str) -> bool:
        """Whether records of `other` are relevant in `state`: for the same request, or where something was written.

        What reads have shown for other requests says nothing about this one; what a write did, and how a request
        ended, says how tools work.

        Args:
            state: the present state.
            other: a state with records.
        """
        here, there = read_desk_state(state), read_desk_state(other)
        if here is None or there is None or here.request == there.request:
            return True
        return any(is_write(call) for call in there.calls)


_WRITTEN = ({"amount"}, {"I"}, {"G", "O"}, {"C", "text"}, {"O", "text"}, {"O", "date"}, {"O", "rule"}, {"P"})
"""Kinds of values that no call has which only reads."""


def is_write(call: Call) -> bool:
    """Whether a call wrote to the database, by the kinds of its values, whatever the tools are called.

    A cancelled order and a lost parcel are not recognised: their calls have an id alone, as reads do.

    Args:
        call: the call.
    """
    return any(call.has(*kinds) for kinds in _WRITTEN)
