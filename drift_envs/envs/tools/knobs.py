"""The knobs of the service desk, with the rules between their values.

* `TOOLS_KNOBS` - the table
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from drift_envs.checks import is_integer
from drift_envs.envs.tools.catalogue import CATALOGUE, EXTRAS, MERGERS, REASONS, SPEEDS, SPLITS
from drift_envs.envs.tools.interface import TYPES
from drift_envs.envs.tools.rules import OPEN, ORDERINGS, POLICY, UNITS
from drift_envs.envs.tools.state import MOST_STALE
from drift_envs.errors import KnobError
from drift_envs.knobs import FrozenMapping, Knob, KnobTable, Value
from drift_envs.tool_calls import ERRORS

MOST_SHOPS = 1_000_000
MOST_SILENT = 3
_NAME = re.compile(r"[a-z][a-z_]{0,31}")
_PATHS = frozenset(CATALOGUE) | {f"{tool.name}.{one.name}" for tool in CATALOGUE.values() for one in tool.arguments}
_WRITES = tuple(tool.name for tool in CATALOGUE.values() if tool.effect == "write" and tool.family == tool.name)

DEFAULT_CHOICES: dict[str, tuple[str, ...]] = {"refund": ("original", "credit"), "send_item": SPEEDS}
"""What a tool may do when its card or its speed is left out."""

POLICY_BOUNDS: dict[str, tuple[Any, ...]] = {
    "cancel_until": OPEN,
    "return_days": (1, 90),
    "restocking_fee": tuple(range(0, 55, 5)),
    "match_days": (1, 90),
    "lost_days": (1, 90),
    "other_card": (True, False),
    "approval_limit": (10, 1000),
}
"""By rule of the policy, the values to choose from, or the bounds of whole numbers."""

_RANGES = ("return_days", "match_days", "lost_days", "approval_limit")


def _parse_choices(knob: str, choices: Mapping[str, tuple[Any, ...]], value: Mapping[str, Any]) -> FrozenMapping:
    """A mapping whose values are each one of a few."""
    for key, one in value.items():
        if key not in choices:
            raise KnobError(f"`{knob}` should name one of {', '.join(choices)}. Received {key!r}")
        if not any(one == choice and type(one) is type(choice) for choice in choices[key]):
            allowed = ", ".join(map(repr, choices[key]))
            raise KnobError(f"`{knob}` should give {key!r} one of {allowed}. Received {one!r}")
    return FrozenMapping(value)


def _parse_policy(knob: str, value: Mapping[str, Any]) -> FrozenMapping:
    """Rules of the policy and their values."""
    for rule in _RANGES:
        low, high = POLICY_BOUNDS[rule]
        if rule in value and not (is_integer(value[rule]) and low <= value[rule] <= high):
            raise KnobError(
                f"`{knob}` should give {rule!r} a whole number in the interval [{low}, {high}]. "
                f"Received {value[rule]!r}"
            )
    others = {key: one for key, one in value.items() if key not in _RANGES}
    _parse_choices(knob, {key: POLICY_BOUNDS[key] for key in POLICY if key not in _RANGES}, others)
    return FrozenMapping(value)


def _parse_names(value: Mapping[str, Any]) -> FrozenMapping:
    """Tools and arguments, and their new names."""
    for old, new in value.items():
        if old not in _PATHS:
            raise KnobError(f"`names` should name tools such as 'refund', or arguments such as 'refund.amount'. "
                            f"Received {old!r}")  # fmt: skip
        if not isinstance(new, str) or _NAME.fullmatch(new) is None:
            raise KnobError(f"`names` should give {old!r} a name of lower-case letters. Received {new!r}")
    return FrozenMapping(value)


def _parse_required(value: Mapping[str, Any]) -> FrozenMapping:
    """Tools, and the argument that each has come to require."""
    for tool, extra in value.items():
        if tool not in CATALOGUE or "email" in (one.name for one in CATALOGUE[tool].arguments):
            raise KnobError(f"`required` should name tools without an email address. Received {tool!r}")
        if extra not in EXTRAS:
            raise KnobError(f"`required` should give {tool!r} one of {', '.join(EXTRAS)}. Received {extra!r}")
        if extra == "email" and not any(one.name.endswith("_id") for one in CATALOGUE[tool].arguments):
            raise KnobError(
                f"`required` should give {tool!r}, which concerns no customer, `confirm`. Received {extra!r}"
            )
    return FrozenMapping(value)


def _parse_list(knob: str, known: Mapping[str, Any], value: Any) -> tuple[str, ...]:
    for name in value:
        if name not in known:
            raise KnobError(f"`{knob}` should list some of {', '.join(known)}. Received {name!r}")
    return tuple(dict.fromkeys(value))


def _parse_enum(value: Mapping[str, Any]) -> FrozenMapping:
    """Reason codes and what they mean; no meaning may be lost."""
    _parse_choices("enum", dict.fromkeys(REASONS, REASONS), value)
    if len({value.get(code, code) for code in REASONS}) < len(REASONS):
        raise KnobError(f"`enum` should give every code another meaning. Received {dict(value)!r}")
    return FrozenMapping(value)


def _parse_silent(value: Mapping[str, Any]) -> FrozenMapping:
    """Tools, and how many of their first writes do nothing."""
    for tool, count in value.items():
        if tool not in _WRITES:
            raise KnobError(f"`silent` should name tools that write: {', '.join(_WRITES)}. Received {tool!r}")
        if not is_integer(count) or not 0 <= count <= MOST_SILENT:
            raise KnobError(
                f"`silent` should give {tool!r} a whole number in the interval [0, {MOST_SILENT}]. Received {count!r}"
            )
    return FrozenMapping(value)


def _draw_shop(arguments: Mapping[str, Any], below: Value | None, rng: np.random.Generator) -> Value:
    if arguments:
        raise KnobError(f"`shop`: `draw` takes no arguments here. Received {dict(arguments)!r}")
    found = int(rng.integers(1, MOST_SHOPS))
    return found + (below is not None and found == below)


def _rule(values: Mapping[str, Value]) -> Iterator[tuple[str, str]]:
    """No two tools, and no two arguments of a tool, may have one name; what is gone needs a successor."""
    names, required = values["names"], values["required"]
    seen: dict[str, str] = {}
    for name, tool in CATALOGUE.items():
        shown = names.get(name, name)
        if shown in seen:
            yield "names", f"two tools should not have one name. Received {shown!r} for {seen[shown]} and {name}"
        seen[shown] = name
        own = [names.get(f"{name}.{one.name}", one.name) for one in tool.arguments]
        own += [required[name]] if name in required else []
        if len(set(own)) < len(own):
            yield "names", f"two arguments of a tool should not have one name. Received {', '.join(own)} for {name}"
    for name in values["gone"]:
        if names.get(name, name) == name:
            yield "gone", f"{name!r} should have a successor: its new name in `names`"


_NONE = FrozenMapping()


def _mapping(name: str, doc: str, parse: Callable[[Any], Value]) -> Knob:
    return Knob(name, _NONE, None, doc, "mapping", None, parse)


TOOLS_KNOBS = KnobTable(
    (
        Knob("shop", 0, (0, MOST_SHOPS), "number of the database; 0 draws one from the seed", "integer",
             draw=_draw_shop),
        _mapping("names", "tool, or tool.argument: its new name", _parse_names),
        _mapping("required", "tool: the argument that it comes to require, email or confirm", _parse_required),
        _mapping("types", "id and date: the form of their values", partial(_parse_choices, "types", TYPES)),
        Knob("split", (), None, "tools that are split into two", "rows", None, partial(_parse_list, "split", SPLITS)),
        Knob("merged", (), None, "tools that take the place of two", "rows", None,
             partial(_parse_list, "merged", MERGERS)),
        _mapping("gone", "tool with a new name: whether its old name answers with the new one (named), or with "
                 "nothing (mute)", partial(_parse_choices, "gone", dict.fromkeys(CATALOGUE, ("named", "mute")))),
        Knob("errors", "words", ERRORS, "errors have a code and a message, a number, or no reason", "string"),
        _mapping("page", "rule of the policy: the value that the page states", partial(_parse_policy, "page")),
        _mapping("policy", "rule of the policy: the value in force", partial(_parse_policy, "policy")),
        Knob("units", "euros", tuple(UNITS), "what an amount that is given to a tool is counted in", "string"),
        _mapping("defaults", "refund and send_item: what happens if the card or the speed is left out",
                 partial(_parse_choices, "defaults", DEFAULT_CHOICES)),
        _mapping("enum", "reason code: what it means", _parse_enum),
        Knob("order", "newest", ORDERINGS, "which orders come first in lists", "string"),
        Knob("stale", 0, (0, MOST_STALE), "how many calls reads lag behind", "integer"),
        _mapping("silent", "tool: how many of its first writes in an episode report success and do nothing",
                 _parse_silent),
        Knob("transient", 0.0, (0.0, 1.0), "probability that a call is lost and answered as if no record were there"),
    ),
    rule=_rule,
)  # fmt: skip
