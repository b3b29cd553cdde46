"""The tools as clients see them: present names, schemas and errors, and calls to and from those of the package."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from drift_envs.envs.tau2 import CONFIRM, DOMAINS, RULES, TAU2_KNOBS, UNITS
from drift_envs.envs.tau2.package import FINISH, PackageCall, Tau2Tool, load_policy, load_tools
from drift_envs.errors import KnobError
from drift_envs.knobs import Value, thaw
from drift_envs.package_tools import MOST_CHARACTERS, Refusal, fits, measure, name_type, read_call, write_error

MOST_ANSWER = 16_000
"""The longest answer, as JSON."""

_IDS = {"order_id": ("#W", 7), "product_id": ("", 10), "item_ids": ("", 10), "new_item_ids": ("", 10)}
"""Ids that are a number with leading text and this many digits."""

_DATES = ("date", "dob")
_FORMS = {"iso": "%Y-%m-%d", "day_first": "%d.%m.%Y", "month_first": "%m/%d/%Y"}
_SHOWN = {"iso": "YYYY-MM-DD", "day_first": "DD.MM.YYYY", "month_first": "MM/DD/YYYY"}
_AMOUNT = "amount"
_SLOW_SUM = re.compile(r"\*\s*\*|[\d).]\s*\(")
"""Powers take any time, and what reads like a call of a number makes Python warn."""

_CONFIRM = {"type": "boolean", "enum": [True], "description": "Whether the user has confirmed the change."}


class _Offer(NamedTuple):
    """A tool by its present name, with the schemas of its arguments by their present names."""

    name: str
    tool: Tau2Tool
    arguments: dict[str, dict[str, Any]]
    package: dict[str, str]
    """By present name of an argument, that of the package."""
    required: list[str]


class Tau2Interface:
    """The tools of a domain under knob values.

    Built by `make_interface`. Copies of an interface are the same object, since it never changes.

    Args:
        values: the values of all knobs, as JSON.

    Raises:
        KnobError: a knob names a tool or an argument that there is not, or gives two of them one name.
    """

    def __init__(self, values: str) -> None:
        self._values, self.knobs = values, json.loads(values)
        self.domain: str = self.knobs["domain"]
        self._form = self.knobs["types"].get("date", "iso")
        self._factor = UNITS["money"][self.knobs["units"].get("money", "dollars")]
        self._check_paths()
        offers = [self._make_offer(tool) for tool in load_tools(self.domain).values()]
        self._offers = {offer.name: offer for offer in offers}
        if len(self._offers) < len(offers):
            raise KnobError(f"`names`: two tools should not have one name. Received {[one.name for one in offers]}")
        self._by_tool = {offer.tool.name: offer for offer in offers}
        page = "\n".join(f"- {rule}: {RULES[rule]}" for rule, is_stated in self.knobs["page"].items() if is_stated)
        self.page = load_policy(self.domain) + (f"\n\n## Further rules\n\n{page}" if page else "")
        """The policy page."""

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        """A copy is the interface of the same knobs."""
        return _interface, (self._values,)

    def _check_paths(self) -> None:
        """Knobs may name what any domain has."""
        tools = {name: tool for domain in DOMAINS for name, tool in load_tools(domain).items()}
        schemas = {f"{tool.name}.{name}": one for tool in tools.values() for name, one in tool.arguments.items()}
        for path in self.knobs["names"]:
            if path not in tools and path not in schemas:
                raise KnobError(f"`names` should name tools or arguments of the package. Received {path!r}")
        for path in self.knobs["required"]:
            if path not in tools:
                raise KnobError(f"`required` should name tools of the package. Received {path!r}")
        for path in self.knobs["silent"]:
            if path not in tools or not tools[path].is_write:
                raise KnobError(f"`silent` should name tools of the package that write. Received {path!r}")
        for path, value in self.knobs["defaults"].items():
            if path not in schemas or not fits(schemas[path], value):
                raise KnobError(f"`defaults` should give an argument a value of its schema. Received {path}: {value!r}")

    def _make_offer(self, tool: Tau2Tool) -> _Offer:
        schemas = {name: self._translate(name, schema) for name, schema in tool.arguments.items()}
        optional = {path.partition(".")[2] for path in self.knobs["defaults"] if path.partition(".")[0] == tool.name}
        if tool is FINISH:
            optional = set(tool.arguments)
        if tool.name in self.knobs["required"]:
            schemas[CONFIRM] = dict(_CONFIRM)
        shown = {name: self.knobs["names"].get(f"{tool.name}.{name}", name) for name in schemas}
        if len(set(shown.values())) < len(shown):
            raise KnobError(f"`names`: two arguments of {tool.name} should not have one name. Received {shown}")
        return _Offer(
            self.knobs["names"].get(tool.name, tool.name),
            tool,
            {shown[name]: schema for name, schema in schemas.items()},
            {new: name for name, new in shown.items()},
            [shown[name] for name in schemas if name not in optional],
        )

    def _translate(self, name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        """The present schema of an argument."""
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

    def describe(self) -> list[dict[str, Any]]:
        """The tools with the JSON Schemas of their arguments; objects of the caller's own."""
        return [
            {
                "name": offer.name,
                "description": offer.tool.about,
                "inputSchema": {
                    "type": "object",
                    "properties": thaw(offer.arguments),
                    "required": list(offer.required),
                    "additionalProperties": False,
                },
            }
            for offer in self._offers.values()
        ]

    def effect_of(self, name: str) -> str:
        """Whether a tool reads, writes or ends: `read`, `write`, `end`.

        Args:
            name: its present name.
        """
        tool = self._offers[name].tool
        return "end" if tool is FINISH else "write" if tool.is_write else "read"

    @cached_property
    def summary(self) -> str:
        """The tools, one line each: name, arguments with their types, the first sentence of the description."""
        lines = []
        for offer in self._offers.values():
            arguments = ", ".join(
                f"{name}{'' if name in offer.required else '?'}: {one['type']}" for name, one in offer.arguments.items()
            )
            lines.append(f"{offer.name}({arguments}) - {offer.tool.about.partition('. ')[0].rstrip('.')}.")
        return "\n".join(lines)

    def parse(self, text: str) -> PackageCall:
        """A call as the package takes it.

        Args:
            text: the call as JSON, by present names.

        Returns:
            The call by the package's names and units, with all arguments.

        Raises:
            Refusal: it is no call of a tool, with arguments as its schema has them.
        """
        if measure(text) > MOST_CHARACTERS:
            raise Refusal("invalid_call", f"a call should have at most {MOST_CHARACTERS} characters")
        name, given = read_call(text)
        offer = self._offers.get(name)
        if offer is None:
            raise Refusal("unknown_tool", "there is no tool of this name")
        for shown in given:
            if shown not in offer.arguments:
                raise Refusal("unexpected_argument", f"there is no argument {json.dumps(shown[:80])}")
        arguments: dict[str, Any] = {}
        for shown, schema in offer.arguments.items():
            own = offer.package[shown]
            if shown in given:
                if not fits(schema, given[shown]):
                    raise Refusal("invalid_value", f"{shown} should be {name_type(schema)}")
                arguments[own] = self._read(own, shown, given[shown])
            elif shown in offer.required:
                raise Refusal("missing_argument", f"{shown} is missing")
            else:
                arguments[own] = self.knobs["defaults"].get(f"{offer.tool.name}.{own}", "")
        arguments.pop(CONFIRM, None)
        if offer.tool.name == "calculate" and _SLOW_SUM.search(arguments["expression"]):
            raise Refusal("invalid_value", "the expression should have no powers, and an operator before a parenthesis")
        return PackageCall(offer.tool.name, arguments)

    def _read(self, name: str, shown: str, value: Any) -> Any:
        """The value of an argument in the package's form and unit."""
        if isinstance(value, list):
            return [self._read(name, shown, one) for one in value]
        if isinstance(value, dict):
            return {key: self._read(key, key, one) for key, one in value.items()}
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
        for name in offer.arguments:
            own = offer.package[name]
            if own == CONFIRM and own not in call.arguments:
                shown[name] = True
            elif own in call.arguments:
                value = call.arguments[own]
                usual = "" if offer.tool is FINISH else self.knobs["defaults"].get(f"{call.tool}.{own}")
                if name in offer.required or value != usual or not short:
                    shown[name] = self._show(own, value, self._factor if factor is None else factor)
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
                needed = {offer.package[name] for name in offer.required}
                shorter = call._replace(arguments={key: one for key, one in call.arguments.items() if key in needed})
            for factor in UNITS["money"].values() if f'"{_AMOUNT}"' in json.dumps(call.arguments) else (1,):
                ways |= {self.write(one, factor=factor, short=call.tool == FINISH.name) for one in (call, shorter)}
        empty = [offer.tool for offer in self._offers.values() if not offer.required]
        return sorted(ways | {self.write(PackageCall(tool.name, {})) for tool in empty})

    def show_refusal(self, refusal: Refusal) -> dict[str, Any]:
        """An error of this layer in the present form.

        Args:
            refusal: the error.
        """
        return write_error(refusal, self.knobs["errors"])

    def show_answer(self, answer: dict[str, Any]) -> dict[str, Any]:
        """The package's answer; its errors in the present form.

        Args:
            answer: the answer.
        """
        if self.knobs["errors"] != "words" and "error" in answer:
            return self.show_refusal(Refusal("conflict", ""))
        if len(json.dumps(answer)) > MOST_ANSWER:
            return self.show_refusal(Refusal("conflict", f"the answer has more than {MOST_ANSWER} characters"))
        return answer


def make_interface(knobs: Mapping[str, Value], domain: str | None = None) -> Tau2Interface:
    """The interface for knob values; equal values share one.

    Args:
        knobs: canonical values of some or all knobs; the others have their default.
        domain: the domain, where it is not that of the knobs.

    Raises:
        KnobError: a knob names a tool or an argument that there is not, or gives two of them one name.
        MissingDependencyError: the package is not installed.
    """
    values = {name: thaw(knobs.get(name, knob.default)) for name, knob in TAU2_KNOBS.items() if name != "transient"}
    return _interface(json.dumps({**values, "domain": domain or values["domain"]}))


@lru_cache(maxsize=256)
def _interface(values: str) -> Tau2Interface:
    return Tau2Interface(values)
