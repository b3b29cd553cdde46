"""tau2-bench's tools as clients see them: names, schemas and errors, and calls to and from those of the package."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, ClassVar

from drift_envs.envs.tau2.package import DOMAINS, FINISH, load_policy, load_tools
from drift_envs.errors import KnobError
from drift_envs.knobs import FrozenMapping, Knob, KnobTable, mapping_knob, parse_choices
from drift_envs.tasks.package_tools import PackageArgument, PackageCall, PackageInterface, PackageTool
from drift_envs.tasks.tool_calls import (
    CONFIRM,
    ERRORS,
    LOST_CALLS,
    Refusal,
    check_path,
    fits,
    parse_names,
    parse_required,
    silent_knob,
    unique_names,
)

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
        silent_knob(partial(check_path, "silent", is_argument=False)),
        LOST_CALLS,
    ),
    rule=unique_names,
)


_IDS = {"order_id": ("#W", 7), "product_id": ("", 10), "item_ids": ("", 10), "new_item_ids": ("", 10)}
"""Ids that are a number with leading text and this many digits."""

_DATES = ("date", "dob")
_FORMS = {"iso": "%Y-%m-%d", "day_first": "%d.%m.%Y", "month_first": "%m/%d/%Y"}
_SHOWN = {"iso": "YYYY-MM-DD", "day_first": "DD.MM.YYYY", "month_first": "MM/DD/YYYY"}
_AMOUNT = "amount"
_SLOW_SUM = re.compile(r"\*\s*\*|[\d).]\s*\(")
"""Powers take any time, and what reads like a call of a number makes Python warn."""


class Tau2Interface(PackageInterface):
    """The tools of a domain under knob values, see `PackageInterface`."""

    table: ClassVar[KnobTable] = TAU2_KNOBS
    confirms = "Whether the user has confirmed the change."

    def __init__(self, values: str) -> None:
        knobs = json.loads(values)
        self.place: str = knobs["domain"]
        self._form = knobs["types"].get("date", "iso")
        self._factor = UNITS["money"][knobs["units"].get("money", "dollars")]
        super().__init__(values)
        page = "\n".join(f"- {rule}: {RULES[rule]}" for rule, is_stated in knobs["page"].items() if is_stated)
        self.page = load_policy(self.place) + (f"\n\n## Further rules\n\n{page}" if page else "")
        """The policy page."""

    def at(self, place: str) -> Tau2Interface:
        """The interface for the same knobs in a domain.

        Args:
            place: the domain.
        """
        return self if place == self.place else Tau2Interface.of({**self.knobs, "domain": place})

    def _own_tools(self) -> Mapping[str, PackageTool]:
        return load_tools(self.place)

    def _known_tools(self) -> Mapping[str, PackageTool]:
        """Knobs may name what any domain has."""
        return {name: tool for domain in DOMAINS for name, tool in load_tools(domain).items()}

    def _check_paths(self, tools: Mapping[str, PackageTool]) -> None:
        super()._check_paths(tools)
        for path in self.knobs["silent"]:
            if path not in tools or not tools[path].is_write:
                raise KnobError(f"`silent` should name tools of the package that write. Received {path!r}")

    def _check_default(self, path: str, argument: PackageArgument | None, value: Any) -> None:
        if argument is None or not fits(argument.schema, value):
            raise KnobError(f"`defaults` should give an argument a value of its schema. Received {path}: {value!r}")

    def _translate(self, name: str, schema: dict[str, Any]) -> dict[str, Any]:
        changed = dict(schema)
        if name in _IDS and self.knobs["types"].get("id") == "number":
            changed["description"] = "A whole number, without `#` and letters."
            changed |= {"items": {"type": "integer"}} if schema["type"] == "array" else {"type": "integer"}
        elif name in _DATES and self._form != "iso":
            changed["description"] = f"A date in the form {_SHOWN[self._form]}."
        elif "items" in schema and "properties" in schema["items"]:
            parts = {key: self._translate(key, one) for key, one in schema["items"]["properties"].items()}
            changed["items"] = {**schema["items"], "properties": parts}
        return changed

    def _shorten(self, about: str) -> str:
        """The first sentence."""
        return f"{about.partition('. ')[0].rstrip('.')}."

    def effect_of(self, name: str) -> str:
        """Whether a tool reads, writes or ends: `read`, `write`, `end`.

        Args:
            name: its present name.
        """
        tool = self._offers[name].tool
        return "end" if tool is FINISH else "write" if tool.is_write else "read"

    def parse(self, text: str, task: Any = None) -> PackageCall:
        """A call as the package takes it, see `PackageInterface`; sums that take any time are refused."""
        call = super().parse(text, task)
        if call.tool == "calculate" and _SLOW_SUM.search(call.arguments["expression"]):
            raise Refusal("invalid_value", "the expression should have no powers, and an operator before a parenthesis")
        return call

    def _read(self, tool: str, one: PackageArgument, shown: str, value: Any) -> Any:
        return self._read_value(one.name, shown, value)

    def _read_value(self, name: str, shown: str, value: Any) -> Any:
        """A value, or a part of one, in the package's form and unit."""
        if isinstance(value, list):
            return [self._read_value(name, shown, one) for one in value]
        if isinstance(value, dict):
            return {key: self._read_value(key, key, one) for key, one in value.items()}
        if name in _IDS and isinstance(value, int):
            return f"{_IDS[name][0]}{value:0{_IDS[name][1]}d}"
        if name in _DATES and self._form != "iso":
            try:
                return datetime.strptime(value, _FORMS[self._form]).strftime(_FORMS["iso"])
            except ValueError as error:
                raise Refusal("invalid_value", f"{shown} should be a date, {_SHOWN[self._form]}") from error
        if name == _AMOUNT and self._factor != 1:
            if value % self._factor:
                raise Refusal("invalid_value", f"{shown} should come to a whole number of dollars")
            return value // self._factor
        return value

    def write(self, call: PackageCall, *, factor: int | None = None, short: bool = True) -> str:
        """The text of a call of the package under these knobs: what was meant before a drift, said after it.

        Arguments whose value is taken where they are left out are left out.

        Args:
            call: the call by the package's names and units.
            factor: what amounts are multiplied with; by default as the knobs say.
            short: whether such arguments are left out.
        """
        offer = self._by_tool[call.tool]
        shown: dict[str, Any] = {}
        for name, one in offer.arguments.items():
            if one.name == CONFIRM and one.name not in call.arguments:
                shown[name] = True
            elif one.name in call.arguments:
                value = call.arguments[one.name]
                if one.required or value != one.default or not short:
                    shown[name] = self._show(one.name, value, self._factor if factor is None else factor)
        return json.dumps({"tool": offer.name, "arguments": shown})

    def _show(self, name: str, value: Any, factor: int) -> Any:
        if isinstance(value, list):
            return [self._show(name, one, factor) for one in value]
        if isinstance(value, dict):
            return {key: self._show(key, one, factor) for key, one in value.items()}
        if name in _IDS and self.knobs["types"].get("id") == "number":
            digits = value.removeprefix(_IDS[name][0])
            return int(digits) if digits.isdigit() else value
        if name in _DATES:
            return datetime.strptime(value, _FORMS["iso"]).strftime(_FORMS[self._form])
        return value * factor if name == _AMOUNT else value

    def write_ways(self, calls: Iterable[PackageCall]) -> list[str]:
        """The texts of calls in every unit, and with and without what can be left out, sorted.

        Args:
            calls: the calls by the package's names and units.
        """
        ways = set()
        for call in calls:
            offer, shorter = self._by_tool[call.tool], call
            if offer.tool is not FINISH:
                needed = {one.name for one in offer.arguments.values() if one.required}
                shorter = call._replace(arguments={key: one for key, one in call.arguments.items() if key in needed})
            for factor in UNITS["money"].values() if f'"{_AMOUNT}"' in json.dumps(call.arguments) else (1,):
                ways |= {self.write(one, factor=factor, short=call.tool == FINISH.name) for one in (call, shorter)}
        for offer in self._offers.values():
            if not any(one.required for one in offer.arguments.values()):
                ways.add(self.write(PackageCall(offer.tool.name, {})))
        return sorted(ways)
