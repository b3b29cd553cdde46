"""What clients see of the tools, names, schemas, forms of values and errors, and the knobs that change it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple

from drift_envs.checks import is_integer
from drift_envs.envs.tools.database import (
    CATALOGUE,
    EXTRAS,
    MERGERS,
    MOST_STALE,
    OPEN,
    ORDERINGS,
    POLICY,
    REASONS,
    RULES,
    SPEEDS,
    SPLITS,
    UNITS,
    Argument,
    RecordKind,
    ToolSpec,
    kind_of,
)
from drift_envs.errors import KnobError
from drift_envs.knobs import FrozenMapping, Knob, KnobTable, Value, draw_number, freeze, mapping_knob, parse_choices
from drift_envs.tasks.tool_calls import ERRORS, LOST_CALLS, NO_RECORD, Refusal, read_call, silent_knob, write_error

INTERFACE_KNOBS = ("names", "required", "types", "split", "merged", "gone", "errors")
"""The knobs on which the interface depends."""

DATE_FORMS = {
    "iso": ("%Y-%m-%d", "YYYY-MM-DD"),
    "day_first": ("%d.%m.%Y", "DD.MM.YYYY"),
    "month_first": ("%m/%d/%Y", "MM/DD/YYYY"),
}
ID_FORMS = ("string", "number")
TYPES = {"id": ID_FORMS, "date": tuple(DATE_FORMS)}
"""The forms of ids and dates; the first one is the default."""

MOST_TEXT = 80
"""The longest text in an argument."""

MOST_AMOUNT = 1_000_000

_BOUNDS = {
    "amount": f" from 0 to {MOST_AMOUNT}",
    "integer": f" from 0 to {MOST_AMOUNT}",
    "text": f" of at most {MOST_TEXT} printable ASCII characters",
}
"""What an error adds to the type of an argument."""
_CHOICES = {"reason": REASONS, "rule": RULES, "speed": SPEEDS}
_IDS = {kind.name.lower(): kind for kind in RecordKind}
_TEXT = re.compile(r"[ -~]+")


class ParsedCall(NamedTuple):
    """A call that fits its schema.

    Args:
        tool: the tool.
        arguments: its arguments as plain values, by the names of the catalogue.
        text: the call in the form in which every equal call is written.
    """

    tool: ToolSpec
    arguments: dict[str, Any]
    text: str


class _Offer(NamedTuple):
    """A tool on offer: its present name, and its arguments by their present names."""

    name: str
    tool: ToolSpec
    arguments: dict[str, Argument]


class ToolInterface:
    """The tools on offer.

    Args:
        knobs: the values of the knobs of `INTERFACE_KNOBS`.

    Example:
        >>> interface = make_interface({"names": {"find_customer": "lookup", "find_customer.email": "address"}})
        >>> interface.write("find_customer", {"email": "a@example.org"})
        '{"tool": "lookup", "arguments": {"address": "a@example.org"}}'
        >>> interface.parse(interface.write("get_order", {"order_id": 2003})).arguments
        {'order_id': 2003}
    """

    def __init__(self, knobs: Mapping[str, Value]) -> None:
        self._names: Mapping[str, str] = knobs.get("names", {})
        self._required: Mapping[str, str] = knobs.get("required", {})
        types = knobs.get("types", {})
        self._ids: str = types.get("id", ID_FORMS[0])
        self._date, self._date_words = DATE_FORMS[types.get("date", "iso")]
        self._errors: str = knobs.get("errors", ERRORS[0])
        self._offers = {offer.name: offer for offer in map(self._offer, self._choose_tools(knobs))}
        self._by_tool = {offer.tool.name: offer for offer in self._offers.values()}
        self._gone: dict[str, str] = dict(knobs.get("gone", {}))

    def _choose_tools(self, knobs: Mapping[str, Value]) -> list[ToolSpec]:
        split, merged = knobs.get("split", ()), knobs.get("merged", ())
        hidden = {part for parts in SPLITS.values() for part in parts} | set(MERGERS)
        hidden -= {part for tool in split for part in SPLITS[tool]} | set(merged)
        hidden |= set(split) | {part for tool in merged for part in MERGERS[tool]}
        return [tool for name, tool in CATALOGUE.items() if name not in hidden]

    def _offer(self, tool: ToolSpec) -> _Offer:
        arguments = list(tool.arguments)
        if tool.name in self._required:
            arguments.append(EXTRAS[self._required[tool.name]])
        named = {self._names.get(f"{tool.name}.{one.name}", one.name): one for one in arguments}
        return _Offer(self._names.get(tool.name, tool.name), tool, named)

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The tools on offer, as in the catalogue."""
        return tuple(offer.tool for offer in self._offers.values())

    def arguments_of(self, tool: str) -> tuple[Argument, ...]:
        """The arguments of a tool on offer, with those that it has come to require."""
        return tuple(self._by_tool[tool].arguments.values())

    @cached_property
    def description(self) -> tuple[Mapping[str, Any], ...]:
        """The tools with the JSON Schemas of their arguments, immutable."""
        found: tuple[Mapping[str, Any], ...] = freeze(
            [
                {
                    "name": offer.name,
                    "description": offer.tool.about,
                    "inputSchema": {
                        "type": "object",
                        "properties": {name: self._schema(one) for name, one in offer.arguments.items()},
                        "required": [name for name, one in offer.arguments.items() if one.required],
                    },
                }
                for offer in self._offers.values()
            ]
        )
        return found

    @cached_property
    def summary(self) -> str:
        """One line a tool: name, arguments with their types, description."""
        lines = []
        for offer in self._offers.values():
            arguments = ", ".join(
                f"{name}{'' if one.required else '?'}: {self._type_words(one)}" for name, one in offer.arguments.items()
            )
            lines.append(f"{offer.name}({arguments}) - {offer.tool.about}")
        return "\n".join(lines)

    def effect_of(self, name: str) -> str:
        """Whether the tool of this present name reads, writes or ends."""
        return self._offers[name].tool.effect

    def _type_words(self, one: Argument) -> str:
        if one.kind in _IDS:
            return f"{_IDS[one.kind].letter}-0000" if self._ids == "string" else "number"
        if one.kind in _CHOICES:
            return "|".join(_CHOICES[one.kind])
        return {"date": self._date_words, "amount": "number", "integer": "integer", "flag": "true"}.get(
            one.kind, "text"
        )

    def _schema(self, one: Argument) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": "string", "description": one.about}
        if one.kind in _IDS:
            if self._ids == "string":
                schema["pattern"] = f"^{_IDS[one.kind].letter}-[0-9]{{4}}$"
            else:
                schema["type"] = "integer"
        elif one.kind in _CHOICES:
            schema["enum"] = list(_CHOICES[one.kind])
        elif one.kind == "date":
            schema["description"] += f", {self._date_words}"
        elif one.kind == "text":
            schema["maxLength"] = MOST_TEXT
        elif one.kind == "flag":
            schema |= {"type": "boolean", "const": True}
        else:
            schema |= {"type": self._type_words(one), "minimum": 0, "maximum": MOST_AMOUNT}
        return schema

    def parse(self, text: str) -> ParsedCall | None:
        """Read a call.

        Args:
            text: the call as JSON.

        Returns:
            The call; `None` if its tool is gone and answers with nothing.

        Raises:
            Refusal: it is no call of a tool on offer, with arguments as its schema has them.
        """
        name, given = read_call(text)
        offer = self._offers.get(name)
        if offer is None:
            answer = self._gone.get(name)
            if answer == "mute":
                return None
            if answer == "named":
                raise Refusal("gone", f"this tool is gone, use {self._names[name]}")
            raise Refusal("unknown_tool", "there is no tool of this name")
        return self._read_arguments(offer, given)

    def _read_arguments(self, offer: _Offer, given: Mapping[str, Any]) -> ParsedCall:
        unexpected = [one for one in given if one not in offer.arguments]
        if unexpected:
            shown = ", ".join(json.dumps(one[:MOST_TEXT]) for one in unexpected[:5])
            raise Refusal("unexpected_argument", f"there is no argument {shown}")
        arguments: dict[str, Any] = {}
        for shown, one in offer.arguments.items():
            if shown in given:
                arguments[one.name] = self._read_value(shown, one, given[shown])
            elif one.required:
                raise Refusal("missing_argument", f"{shown} is missing")
        return ParsedCall(offer.tool, arguments, self.write(offer.tool.name, arguments))

    def _read_value(self, name: str, one: Argument, value: Any) -> Any:
        """The plain value of an argument."""
        read = {"date": self._read_date, "amount": _read_amount, "integer": _read_integer, "text": _read_text}
        found: Any
        if one.kind in _IDS:
            found = self._read_id(_IDS[one.kind], value)
        elif one.kind in _CHOICES:
            found = value if isinstance(value, str) and value in _CHOICES[one.kind] else None
        elif one.kind == "flag":
            found = value if value is True else None
        else:
            found = read[one.kind](value)
        if found is None:
            raise Refusal("invalid_value", f"{name} should be {self._type_words(one)}{_BOUNDS.get(one.kind, '')}")
        return found

    def _read_id(self, kind: RecordKind, value: Any) -> int | None:
        if self._ids == "string":
            if not isinstance(value, str) or re.fullmatch(rf"{kind.letter}-[0-9]{{4}}", value) is None:
                return None
            value = int(value[2:])
        if not isinstance(value, int) or isinstance(value, bool):
            return None
        if kind_of(value) is not kind:
            raise Refusal(*NO_RECORD)
        return value

    def _read_date(self, value: Any) -> date | None:
        try:
            found = datetime.strptime(value, self._date).date()
        except (TypeError, ValueError):
            return None
        return found if found.strftime(self._date) == value else None  # no other spelling of the same day

    def write(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """The text of a call.

        Args:
            tool: the tool, by its name in the catalogue.
            arguments: its arguments as plain values.
        """
        offer = self._by_tool[tool]
        shown = {
            name: self._show(one, arguments[one.name]) for name, one in offer.arguments.items() if one.name in arguments
        }
        return json.dumps({"tool": offer.name, "arguments": shown})

    def _show(self, one: Argument, value: Any) -> Any:
        if one.kind in _IDS:
            return self._show_id(value)
        return value.strftime(self._date) if one.kind == "date" else value

    def _show_id(self, key: int) -> int | str:
        kind = kind_of(key)
        return key if self._ids == "number" or kind is None else f"{kind.letter}-{key}"

    def show(self, value: Any) -> Any:
        """An answer in the present form of ids and dates.

        Args:
            value: an answer with plain values.
        """
        if isinstance(value, dict):
            return {key: self._show_id(one) if key.endswith("_id") else self.show(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self.show(one) for one in value]
        return value.strftime(self._date) if isinstance(value, date) else value

    def show_key(self, key: int) -> str:
        """The id of a record as a key of a JSON object."""
        return str(self._show_id(key))

    def show_error(self, refusal: Refusal, tool: str = "") -> dict[str, Any]:
        """A tool's error in the present form, with the present names of arguments.

        Args:
            refusal: the error; what it has in backquotes are arguments.
            tool: the tool that refuses, by its name in the catalogue, if it was reached.
        """
        names = {one.name: name for name, one in self._by_tool[tool].arguments.items()} if tool else {}
        message = re.sub(r"(?<=`)\w+(?=`)", lambda found: names.get(found[0], found[0]), refusal.message)
        return write_error(Refusal(refusal.code, message), self._errors)


def _read_amount(value: Any) -> float | None:
    fits = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= MOST_AMOUNT
    return round(float(value), 2) if fits else None


def _read_integer(value: Any) -> int | None:
    fits = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_AMOUNT
    return value if fits else None


def _read_text(value: Any) -> str | None:
    fits = isinstance(value, str) and len(value) <= MOST_TEXT and _TEXT.fullmatch(value) is not None
    return value if fits else None


def make_interface(knobs: Mapping[str, Value]) -> ToolInterface:
    """The interface for knob values; equal values share one.

    Args:
        knobs: canonical values of some or all knobs; the others have their default.
    """
    return _interface(tuple((name, freeze(knobs[name])) for name in INTERFACE_KNOBS if knobs.get(name)))


@lru_cache(maxsize=512)
def _interface(values: tuple[tuple[str, Value], ...]) -> ToolInterface:
    return ToolInterface(dict(values))


MOST_SHOPS = 1_000_000
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
    parse_choices(knob, {key: POLICY_BOUNDS[key] for key in POLICY if key not in _RANGES}, others)
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
    parse_choices("enum", dict.fromkeys(REASONS, REASONS), value)
    if len({value.get(code, code) for code in REASONS}) < len(REASONS):
        raise KnobError(f"`enum` should give every code another meaning. Received {dict(value)!r}")
    return FrozenMapping(value)


def _check_write(tool: str) -> None:
    if tool not in _WRITES:
        raise KnobError(f"`silent` should name tools that write: {', '.join(_WRITES)}. Received {tool!r}")


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


TOOLS_KNOBS = KnobTable(
    (
        Knob(
            "shop",
            0,
            (0, MOST_SHOPS),
            "number of the database; 0 draws one from the seed",
            "integer",
            draw=partial(draw_number, "shop", MOST_SHOPS),
        ),
        mapping_knob("names", "tool, or tool.argument: its new name", _parse_names),
        mapping_knob("required", "tool: the argument that it comes to require, email or confirm", _parse_required),
        mapping_knob("types", "id and date: the form of their values", partial(parse_choices, "types", TYPES)),
        Knob("split", (), None, "tools that are split into two", "rows", None, partial(_parse_list, "split", SPLITS)),
        Knob(
            "merged",
            (),
            None,
            "tools that take the place of two",
            "rows",
            None,
            partial(_parse_list, "merged", MERGERS),
        ),
        mapping_knob(
            "gone",
            "tool with a new name: whether its old name answers with the new one (named), or with nothing (mute)",
            partial(parse_choices, "gone", dict.fromkeys(CATALOGUE, ("named", "mute"))),
        ),
        Knob("errors", "words", ERRORS, "errors have a code and a message, a number, or no reason", "string"),
        mapping_knob("page", "rule of the policy: the value that the page states", partial(_parse_policy, "page")),
        mapping_knob("policy", "rule of the policy: the value in force", partial(_parse_policy, "policy")),
        Knob("units", "euros", tuple(UNITS), "what an amount that is given to a tool is counted in", "string"),
        mapping_knob(
            "defaults",
            "refund and send_item: what happens if the card or the speed is left out",
            partial(parse_choices, "defaults", DEFAULT_CHOICES),
        ),
        mapping_knob("enum", "reason code: what it means", _parse_enum),
        Knob("order", "newest", ORDERINGS, "which orders come first in lists", "string"),
        Knob("stale", 0, (0, MOST_STALE), "how many calls reads lag behind", "integer"),
        silent_knob(_check_write),
        LOST_CALLS,
    ),
    rule=_rule,
)
