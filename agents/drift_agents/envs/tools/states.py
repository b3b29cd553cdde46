"""States of the service desk: calls, answers and errors, when two states are the same, and words."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Mapping
from datetime import date, datetime
from functools import lru_cache
from typing import Any, NamedTuple

from drift_agents.envs.matching import ParsedMatching
from drift_agents.memory.transcript import truncate
from drift_agents.policy.ranked import PlainFacts

_CODES = {403: "policy", 409: "conflict", 424: "redundant", 440: "not_found", 441: "not_looked_up"}
"""Numbers of errors that matter here; they resemble those of the web."""
_RULE = re.compile(r"the rule (\w+)")


class DeskError(NamedTuple):
    """An error of a tool.

    Args:
        code: the code in words, or what stands in its place.
        rule: the rule of the policy that it names, or an empty text.
    """

    code: str
    rule: str = ""


def read_error(answer: Mapping[str, Any]) -> DeskError | None:
    """The error in an answer; `None` if it is none.

    Args:
        answer: the answer.

    Example:
        >>> read_error({"error": "policy", "message": "the rule return_days does not allow this"})
        DeskError(code='policy', rule='return_days')
        >>> read_error({"error": 424}), read_error({"ok": True})
        (DeskError(code='redundant', rule=''), None)
    """
    if "error" not in answer:
        return None
    code = answer["error"]
    rule = _RULE.search(str(answer.get("message", "")))
    return DeskError(_CODES.get(code, str(code)) if isinstance(code, int) else str(code), rule[1] if rule else "")


REASONS = ("changed_mind", "damaged", "wrong_size")
"""Reason codes of returns."""
_SPEEDS = ("standard", "express")
_RULES = ("cancel_until", "return_days", "match_days", "lost_days", "other_card")
_LETTERS = "COIPKSG"
"""Of ids: customer, order, item, payment, card, shipment, product; numbers in this order from 1000 on."""
_ID = re.compile(rf"[{_LETTERS}]-(\d{{4}})")
_DATES = ("%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%d %B %Y")


class Call(NamedTuple):
    """A call of a tool.

    Args:
        text: its JSON text.
        tool: the name of the tool.
        values: kind and value of each argument: the letter of an id with its number, `amount`, `page`, `flag`,
            `email`, `date`, `reason`, `speed`, `rule` or `text`.

    Example:
        >>> call = read_call('{"tool": "refund", "arguments": {"payment_id": "P-4001", "amount": 24.0}}')
        >>> call.get("P"), call.get("amount"), call.get("K")
        (4001, 24.0, None)
    """

    text: str
    tool: str
    values: tuple[tuple[str, Any], ...]

    def get(self, kind: str) -> Any:
        """The first value of a kind; `None` if there is none."""
        return next((value for name, value in self.values if name == kind), None)

    def has(self, *kinds: str) -> bool:
        """Whether it has values of these kinds."""
        return {name for name, _ in self.values}.issuperset(kinds)


@lru_cache(maxsize=8192)
def read_call(text: str) -> Call | None:
    """Parse a call; `None` if the text is none.

    Args:
        text: the JSON text.
    """
    try:
        return as_call(json.loads(text), text)
    except (ValueError, RecursionError):
        return None


def as_call(data: Any, text: str = "") -> Call | None:
    """A call from parsed JSON; `None` if it is none.

    Args:
        data: the parsed call.
        text: its JSON text.
    """
    if not isinstance(data, Mapping) or not isinstance(data.get("tool"), str):
        return None
    given = data.get("arguments", {})
    if not isinstance(given, Mapping):
        return None
    return Call(text or json.dumps(data), data["tool"], tuple(map(_read_value, given.values())))


def _read_value(value: Any) -> tuple[str, Any]:
    if value is True:
        return "flag", value
    if isinstance(value, float):
        return "amount", value
    key = read_key(value)
    if key is not None:
        return _LETTERS[key // 1000 - 1], key
    if not isinstance(value, str):
        return ("page", value) if isinstance(value, int) else ("text", str(value))
    for kind, known in (("reason", REASONS), ("speed", _SPEEDS), ("rule", _RULES)):
        if value in known:
            return kind, value
    if "@" in value:
        return "email", value
    day = read_day(value)
    return ("text", value) if day is None else ("date", day)


def read_key(value: Any) -> int | None:
    """The number of an id, as a number or a text; `None` if it is no id.

    Example:
        >>> read_key("O-2054"), read_key(2054), read_key("2054"), read_key(3)
        (2054, 2054, 2054, None)
    """
    if isinstance(value, str):
        found = _ID.fullmatch(value)
        value = int(found[1]) if found else int(value) if re.fullmatch(r"\d{4}", value) else None
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 1000 <= value < 1000 * (len(_LETTERS) + 1) else None


@lru_cache(maxsize=4096)
def read_day(text: str) -> date | None:
    """A day in any form; `None` if the text is none.

    Example:
        >>> read_day("2026-06-03") == read_day("03.06.2026") == read_day("06/03/2026") == read_day("3 June 2026")
        True
    """
    for form in _DATES:
        try:
            return datetime.strptime(text, form).date()
        except ValueError:
            continue
    return None


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


class ToolsMatching(ParsedMatching[ShownDesk]):
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
    parse = staticmethod(read_desk_state)

    def key(self, shown: ShownDesk) -> Hashable:
        """Shop, request and calls."""
        return shown.shop, shown.request, tuple(call.text for call in shown.calls)

    def is_same(self, one: ShownDesk, other: ShownDesk) -> bool:
        """Whether the answers are the same."""
        return one.answer == other.answer

    def is_relevant(self, here: ShownDesk, there: ShownDesk) -> bool:
        """Those of the same request, and those where something was written.

        What reads have shown for other requests says nothing about this one; what a write did, and how a request
        ended, says how tools work.
        """
        return here.request == there.request or any(map(is_write, there.calls))


_WRITTEN = ({"amount"}, {"I"}, {"G", "O"}, {"C", "text"}, {"O", "text"}, {"O", "date"}, {"O", "rule"}, {"P"})
"""Kinds of values that no call has which only reads."""


def is_write(call: Call) -> bool:
    """Whether a call wrote to the database, by the kinds of its values, whatever the tools are called.

    A cancelled order and a lost parcel are not recognised: their calls have an id alone, as reads do.

    Args:
        call: the call.
    """
    return any(call.has(*kinds) for kinds in _WRITTEN)


_SHOWN = 240
"""Characters of an answer that records show."""


class ToolsFacts(PlainFacts):
    """The calls so far and the last answer.

    Example:
        >>> state = '{"shop": 7, "request": "I am Bo, bo@example.org. Stop my order.", "records": {}, '
        >>> state += '"calls": [{"tool": "get_order", "arguments": {"order_id": "O-2054"}}], "answer": {"ok": true}}'
        >>> ToolsFacts().describe_state(state)
        'get_order(O-2054) and the answer {"ok": true}, for "I am Bo, bo@example.org. Stop my order."'
    """

    best_score = 1.0
    cut_states = ('{"shop": ', "a state of the desk")

    def describe_state(self, state: str) -> str:
        """The calls, the last answer and the request; another text as it is."""
        shown = read_desk_state(state)
        if shown is None:
            return state
        answer = truncate(json.dumps(dict(shown.answer)), _SHOWN)
        words = "; ".join(map(_describe_call, shown.calls)) or "no call"
        return f'{words} and the answer {answer}, for "{shown.request}"'


def _describe_call(call: Call) -> str:
    given = json.loads(call.text).get("arguments", {})
    return f"{call.tool}({', '.join(map(str, given.values()))})"
