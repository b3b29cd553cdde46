"""tau2-bench's airline and retail domains with knobs; needs the extra `tau2`, but for the knobs, which stand here."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from drift_envs.errors import KnobError
from drift_envs.knobs import FrozenMapping, Knob, KnobTable, mapping_knob, parse_choices
from drift_envs.tool_calls import ERRORS, check_path, parse_names, parse_required, parse_silent, unique_names

DOMAINS = ("retail", "airline")

RULES = {
    "identify": "read the details of the user (get_user_details) before you change anything of theirs.",
    "look_up": "read an order or reservation (get_order_details, get_reservation_details) before you change it.",
}
"""Rules that the policy of the package does not have."""

TYPES = {"id": ("string", "number"), "date": ("iso", "day_first", "month_first")}
"""The forms of the ids of orders, items and products, and of dates, the package's first."""

UNITS = {"money": {"dollars": 1, "cents": 100}}
"""The units of amounts, each with its number in one of the first unit, which is the package's."""


def _parse_defaults(value: Mapping[str, Any]) -> FrozenMapping:
    """Arguments that can be left out, and what a tool takes then."""
    for path, one in value.items():
        check_path("defaults", path, is_argument=True)
        if not isinstance(one, (str, int)):
            raise KnobError(f"`defaults` should give {path!r} a text or a whole number. Received {one!r}")
    return FrozenMapping(value)


def _parse_silent_tools(value: Mapping[str, Any]) -> FrozenMapping:
    for tool in value:
        check_path("silent", tool, is_argument=False)
    return parse_silent(value)


_FLAGS = dict.fromkeys(RULES, (True, False))
_UNITS = {"money": tuple(UNITS["money"])}

TAU2_KNOBS = KnobTable(
    (
        Knob("domain", DOMAINS[0], DOMAINS, "the domain of the next task", "string"),
        mapping_knob("names", "tool, or tool.argument: its new name", parse_names),
        mapping_knob("required", "tool: the argument that it comes to require, confirm", parse_required),
        mapping_knob("types", "id and date: the form of their values", partial(parse_choices, "types", TYPES)),
        Knob("errors", "words", ERRORS, "errors have words, a number, or no reason", "string"),
        mapping_knob("page", "rule: whether the policy page states it", partial(parse_choices, "page", _FLAGS)),
        mapping_knob("policy", "rule: whether it is in force", partial(parse_choices, "policy", _FLAGS)),
        mapping_knob("units", "money: what amounts are counted in", partial(parse_choices, "units", _UNITS)),
        mapping_knob("defaults", "tool.argument: the value that is taken where it is left out", _parse_defaults),
        mapping_knob(
            "silent",
            "tool: how many of its first writes in an episode report success and do nothing",
            _parse_silent_tools,
        ),
        Knob("transient", 0.0, (0.0, 1.0), "probability that a call is lost and answered as if no record were there"),
    ),
    rule=unique_names,
)
