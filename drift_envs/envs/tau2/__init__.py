"""tau2-bench's airline and retail domains with knobs; needs the extra `tau2`, but for the knobs, which stand here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from drift_envs.checks import is_integer
from drift_envs.errors import KnobError
from drift_envs.knobs import FrozenMapping, Knob, KnobTable, Value
from drift_envs.package_tools import ERRORS, check_path, parse_names, unique_names

DOMAINS = ("retail", "airline")
CONFIRM = "confirm"
MOST_SILENT = 3

RULES = {
    "identify": "read the details of the user (get_user_details) before you change anything of theirs.",
    "look_up": "read an order or reservation (get_order_details, get_reservation_details) before you change it.",
}
"""Rules that the policy of the package does not have."""

TYPES = {"id": ("string", "number"), "date": ("iso", "day_first", "month_first")}
"""The forms of the ids of orders, items and products, and of dates, the package's first."""

UNITS = {"money": {"dollars": 1, "cents": 100}}
"""The units of amounts, each with its number in one of the first unit, which is the package's."""


def _parse_choices(knob: str, choices: Mapping[str, Any], value: Mapping[str, Any]) -> FrozenMapping:
    """A mapping whose values are each one of a few."""
    for key, one in value.items():
        if key not in choices:
            raise KnobError(f"`{knob}` should name one of {', '.join(choices)}. Received {key!r}")
        if not any(type(one) is type(choice) and one == choice for choice in choices[key]):
            known = ", ".join(map(str, choices[key]))
            raise KnobError(f"`{knob}` should give {key!r} one of {known}. Received {one!r}")
    return FrozenMapping(value)


def _parse_required(value: Mapping[str, Any]) -> FrozenMapping:
    """Tools, and the argument that each has come to require."""
    for tool in value:
        check_path("required", tool, is_argument=False)
    return _parse_choices("required", dict.fromkeys(value, (CONFIRM,)), value)


def _parse_defaults(value: Mapping[str, Any]) -> FrozenMapping:
    """Arguments that can be left out, and what a tool takes then."""
    for path, one in value.items():
        check_path("defaults", path, is_argument=True)
        if not isinstance(one, (str, int)):
            raise KnobError(f"`defaults` should give {path!r} a text or a whole number. Received {one!r}")
    return FrozenMapping(value)


def _parse_silent(value: Mapping[str, Any]) -> FrozenMapping:
    """Tools, and how many of their first writes in an episode do nothing."""
    for tool, count in value.items():
        check_path("silent", tool, is_argument=False)
        if not is_integer(count) or not 0 <= count <= MOST_SILENT:
            raise KnobError(
                f"`silent` should give {tool!r} a whole number in the interval [0, {MOST_SILENT}]. Received {count!r}"
            )
    return FrozenMapping(value)


def _mapping(name: str, doc: str, parse: Callable[[Any], Value]) -> Knob:
    return Knob(name, FrozenMapping(), None, doc, "mapping", None, parse)


_FLAGS = dict.fromkeys(RULES, (True, False))

TAU2_KNOBS = KnobTable(
    (
        Knob("domain", DOMAINS[0], DOMAINS, "the domain of the next task", "string"),
        _mapping("names", "tool, or tool.argument: its new name", parse_names),
        _mapping("required", "tool: the argument that it comes to require, confirm", _parse_required),
        _mapping("types", "id and date: the form of their values", partial(_parse_choices, "types", TYPES)),
        Knob("errors", "words", ERRORS, "errors have words, a number, or no reason", "string"),
        _mapping("page", "rule: whether the policy page states it", partial(_parse_choices, "page", _FLAGS)),
        _mapping("policy", "rule: whether it is in force", partial(_parse_choices, "policy", _FLAGS)),
        _mapping("units", "money: what amounts are counted in", partial(_parse_choices, "units", UNITS)),
        _mapping("defaults", "tool.argument: the value that is taken where it is left out", _parse_defaults),
        _mapping("silent", "tool: how many of its first writes in an episode report success and do nothing",
                 _parse_silent),
        Knob("transient", 0.0, (0.0, 1.0), "probability that a call is lost and answered as if no record were there"),
    ),
    rule=unique_names,
)  # fmt: skip
