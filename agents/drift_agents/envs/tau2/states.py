"""States of tau2-bench's desks: calls and answers, when two states are the same, and words."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from drift_agents.envs.matching import ParsedMatching
from drift_agents.memory.transcript import truncate
from drift_agents.policy.ranked import PlainFacts

ROLES = (
    "find_user_id_by_email", "find_user_id_by_name_zip", "get_user_details", "get_order_details",
    "get_reservation_details", "get_product_details", "get_flight_status", "search_direct_flight",
    "search_onestop_flight", "list_all_airports", "list_all_product_types", "calculate", "transfer_to_human_agents",
    "modify_user_address", "modify_pending_order_address", "modify_pending_order_payment",
    "modify_pending_order_items", "cancel_pending_order", "return_delivered_order_items",
    "exchange_delivered_order_items", "update_reservation_passengers", "update_reservation_flights",
    "update_reservation_baggages", "cancel_reservation", "book_reservation", "send_certificate", "finish",
)  # fmt: skip
"""Common knowledge about such desks: usual names of tools, in the order in which they are used."""

_READS = ("find", "get", "search", "list")
_WRITES = ("modify", "cancel", "return", "exchange", "update", "book", "send")
_RECORD = re.compile(r"\d{7}|(?!HAT\d)[A-Z0-9]{6}|[a-z]+_[a-z]+_\d{3,5}")
"""Ids of orders without `#W`, of reservations, and of users."""

_DATES = {"%d.%m.%Y": re.compile(r"\d\d\.\d\d\.\d{4}"), "%m/%d/%Y": re.compile(r"\d\d/\d\d/\d{4}")}
_TOOL = re.compile(r"^(?P<name>\w+)\((?P<arguments>.*)\) - (?P<about>.*)$", re.MULTILINE)


class DeskCall(NamedTuple):
    """A call of a tool.

    Args:
        text: its JSON text.
        tool: the name of the tool.
        words: its values but numbers, ids without `#W` and dates as 2024-05-20.
        numbers: its numbers.
        arguments: how many arguments are given.

    Example:
        >>> call = read_call('{"tool": "void", "arguments": {"order_id": 2378156, "why": "no longer needed"}}')
        >>> sorted(call.words), call.record
        (['2378156', 'no longer needed'], '2378156')
    """

    text: str
    tool: str
    words: frozenset[str]
    numbers: tuple[float, ...]
    arguments: int

    @property
    def record(self) -> str:
        """The order or reservation, else the user that it is about; empty if it names none."""
        found = sorted(filter(_RECORD.fullmatch, self.words), key=lambda one: ("_" in one, one))
        return found[0] if found else ""


@lru_cache(maxsize=16384)
def read_call(text: str) -> DeskCall | None:
    """Parse a call; `None` if the text is none.

    Args:
        text: the JSON text.
    """
    try:
        shown = json.loads(text)
        given, tool = dict(shown["arguments"]), str(shown["tool"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    values = list(_read_values(given))
    numbers = tuple(sorted(one for one in values if not isinstance(one, str)))
    words = frozenset(one for one in values if isinstance(one, str))
    return DeskCall(text, tool, words, numbers, len(given) - sum(one is True for one in given.values()))


def _read_values(value: Any) -> Iterator[str | float]:
    """Texts and numbers; true and false only confirm."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _read_values(one)
    elif isinstance(value, str):
        form = next((form for form, pattern in _DATES.items() if pattern.fullmatch(value)), None)
        yield datetime.strptime(value, form).strftime("%Y-%m-%d") if form else value.removeprefix("#W")
    elif not isinstance(value, bool) and value is not None:
        yield str(value) if value >= 10**6 and isinstance(value, int) and value % 100 else value


class DeskManual(NamedTuple):
    """What the task says about the tools.

    Args:
        roles: by present name of a tool, the usual one.
        most: by usual name, the number of its arguments, without a confirmation.
        optional: the usual names of tools of which an argument can be left out.
    """

    roles: Mapping[str, str]
    most: Mapping[str, int]
    optional: frozenset[str]

    def role_of(self, call: DeskCall) -> str:
        """The usual name of a call's tool, now or earlier; empty if it is not known.

        Args:
            call: the call.
        """
        return self.roles.get(call.tool, call.tool if call.tool in ROLES else "")


def is_read(role: str) -> bool:
    """Whether a tool only reads.

    Args:
        role: its usual name.
    """
    return role.startswith(_READS)


def is_write(role: str) -> bool:
    """Whether a tool writes.

    Args:
        role: its usual name.
    """
    return role.startswith(_WRITES)


@lru_cache(maxsize=64)
def read_manual(task: str) -> DeskManual:
    """Parse the task.

    Args:
        task: the task in words: request, policy page and tools.

    Example:
        >>> read_manual("void(number: string, why?: string) - Cancel a pending order.").roles
        {'void': 'cancel_pending_order'}
    """
    tools = [(one["name"], one["arguments"], one["about"]) for one in _TOOL.finditer(task)]
    pairs = [(_resemblance(role, name, about), role, name) for name, _, about in tools for role in ROLES]
    roles: dict[str, str] = {}
    for likeness, role, name in sorted(pairs, key=lambda pair: -pair[0]):
        if likeness > 0.6 and name not in roles and role not in roles.values():
            roles[name] = role
    given = {roles[name]: arguments for name, arguments, _ in tools if name in roles}
    most = {role: text.count(": ") - text.count("confirm") for role, text in given.items()}
    return DeskManual(roles, most, frozenset(role for role, text in given.items() if "?: " in text))


def _resemblance(role: str, name: str, about: str) -> float:
    """The share of the words of a usual name that a tool's name and description have; equal names count more."""
    words = {one.rstrip("s") for one in re.findall(r"[a-z]+", f"{name.replace('_', ' ')} {about}".lower())}
    usual = {one.rstrip("s") for one in role.split("_")}
    return len(usual & words) / len(usual) + (role == name) + len(usual) / 100


class ShownTau2(NamedTuple):
    """A state, parsed from its JSON text.

    Args:
        request: the request in words.
        records: what reads have shown, by id.
        made: the calls that were answered without an error.
        answer: the last answer.
    """

    request: str
    records: Mapping[str, Any]
    made: tuple[DeskCall, ...]
    answer: Mapping[str, Any]


@lru_cache(maxsize=4096)
def read_tau2_state(state: str) -> ShownTau2 | None:
    """Parse a state; `None` if the text is no state of these desks.

    Args:
        state: the text state.

    Example:
        >>> text = '{"domain": "retail", "request": "Stop it.", "records": {}, "made": [], "answer": {}}'
        >>> read_tau2_state(text).request
        'Stop it.'
    """
    try:
        shown = json.loads(state)
        calls = [read_call(json.dumps(one)) for one in shown["made"]]
        request, records, answer = str(shown["request"]), dict(shown["records"]), dict(shown["answer"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    made = tuple(one for one in calls if one is not None)
    return ShownTau2(request, records, made, answer) if len(made) == len(calls) else None


class Tau2Matching(ParsedMatching[ShownTau2]):
    """The request and the calls that were answered without an error; outcomes by their answers.

    A call that was refused changed nothing, so the last answer belongs to the outcome and not to the state. What was
    read follows from the calls. Texts that are no states are compared as they are.

    Example:
        >>> rule = Tau2Matching()
        >>> one = '{"domain": "retail", "request": "Stop it.", "records": {}, "made": [], "answer": {}}'
        >>> rule.state_key(one) == rule.state_key(one.replace('"answer": {}', '"answer": {"error": 440}'))
        True
        >>> rule.state_key(one) == rule.state_key(one.replace("Stop", "Send"))
        False
    """

    name = "tau2"
    parse = staticmethod(read_tau2_state)

    def key(self, shown: ShownTau2) -> Hashable:
        """Request and calls."""
        return shown.request, tuple(call.text for call in shown.made)

    def is_same(self, one: ShownTau2, other: ShownTau2) -> bool:
        """Whether the answers are the same."""
        return one.answer == other.answer

    def is_relevant(self, here: ShownTau2, there: ShownTau2) -> bool:
        """Those of the same request, and those where enough was done to end."""
        return here.request == there.request or len(there.made) > 1


_SHOWN = 240
"""Characters of an answer that records show."""


class Tau2Facts(PlainFacts):
    """The calls so far and the last answer.

    Example:
        >>> state = '{"domain": "airline", "request": "Stop it.", "records": {}, "made": [{"tool": '
        >>> state += '"cancel_reservation", "arguments": {"reservation_id": "EHGLP3"}}], "answer": {"ok": true}}'
        >>> Tau2Facts().describe_state(state)
        'cancel_reservation("EHGLP3") and the answer {"ok": true}'
    """

    best_score = 1.0
    cut_states = ('{"domain": ', "a state of the desk")

    def describe_state(self, state: str) -> str:
        """The calls and the last answer; another text as it is."""
        shown = read_tau2_state(state)
        if shown is None:
            return state
        answer = truncate(json.dumps(dict(shown.answer)), _SHOWN)
        given = [(call.tool, json.loads(call.text)["arguments"].values()) for call in shown.made]
        words = "; ".join(f"{tool}({', '.join(map(json.dumps, values))})" for tool, values in given) or "no call"
        return f"{words} and the answer {answer}"
