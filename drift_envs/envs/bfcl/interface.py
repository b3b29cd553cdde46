"""The tools as clients see them: present names, schemas and errors, and calls to and from those of the package."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from drift_envs.checks import is_number
from drift_envs.envs.bfcl import BFCL_KNOBS, CONFIRM, QUANTITIES, UNITS
from drift_envs.envs.bfcl.package import FINISH, BfclTask, EngineCall, PackageArgument, PackageTool, load_tools
from drift_envs.errors import KnobError
from drift_envs.knobs import Value, thaw
from drift_envs.package_tools import MOST_CHARACTERS, Refusal, fits, measure, name_type, read_call, write_error

MOST_ANSWER = 16_000
"""The longest answer, as JSON."""

_SMALL = {"precision": 100, "decimal_places": 100, "exponent": 100}
"""Arguments of the calculator with smaller bounds, since its time and memory grow with them."""

_PLACES = 6
"""The decimal places of numbers in the package's units."""


class _Offer(NamedTuple):
    """A tool by its present name, with its arguments by their present names."""

    name: str
    tool: PackageTool
    arguments: dict[str, PackageArgument]


class BfclInterface:
    """The tools under knob values.

    Built by `make_interface`. Copies of an interface are the same object, since it never changes.

    Args:
        values: the values of all knobs, as JSON.

    Raises:
        KnobError: a knob names a tool or an argument that there is not, or gives two of them one name.
    """

    def __init__(self, values: str) -> None:
        self._values, knobs, tools = values, json.loads(values), load_tools()
        self._names: Mapping[str, str] = knobs["names"]
        self._required: Mapping[str, str] = knobs["required"]
        self._errors: str = knobs["errors"]
        self._factors = {
            path: UNITS[quantity][unit] for quantity, unit in knobs["units"].items() for path in QUANTITIES[quantity]
        }
        self._defaults: dict[str, Any] = knobs["defaults"]
        self._check_paths(tools)
        self._offers: dict[str, _Offer] = {}
        for tool in tools.values():
            offer = self._make_offer(tool)
            if offer.name in self._offers:
                raise KnobError(
                    f"`names`: two tools should not have one name. Received {offer.name!r} for "
                    f"{self._offers[offer.name].tool.name} and {tool.name}"
                )
            self._offers[offer.name] = offer
        self._by_tool = {offer.tool.name: offer for offer in self._offers.values()}

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        """A copy is the interface of the same knobs."""
        return _interface, (self._values,)

    def _check_paths(self, tools: Mapping[str, PackageTool]) -> None:
        arguments = {f"{tool.name}.{name}": one for tool in tools.values() for name, one in tool.arguments.items()}
        for path in self._names:
            if path not in tools and path not in arguments:
                raise KnobError(f"`names` should name tools or arguments of the package. Received {path!r}")
        for path in self._required:
            if path not in tools:
                raise KnobError(f"`required` should name tools of the package. Received {path!r}")
        for path, value in self._defaults.items():
            one = arguments.get(path)
            if one is None or one.default is None or one.required:
                raise KnobError(f"`defaults` should name arguments with a default that can be given. Received {path!r}")
            if not fits(one.schema, value):
                raise KnobError(f"`defaults` should give {path!r} a value of its schema. Received {value!r}")

    def _make_offer(self, tool: PackageTool) -> _Offer:
        arguments = dict(tool.arguments)
        if tool.name in self._required:
            schema = {"type": "boolean", "enum": [True], "description": "Whether the call is meant."}
            arguments[CONFIRM] = PackageArgument(CONFIRM, schema)
        named = {self._names.get(f"{tool.name}.{name}", name): one for name, one in arguments.items()}
        if len(named) < len(arguments):
            raise KnobError(f"`names`: two arguments of {tool.name} should not have one name. Received {list(named)}")
        return _Offer(self._names.get(tool.name, tool.name), tool, named)

    def offers_of(self, task: BfclTask) -> list[_Offer]:
        """The tools of a task, `finish` last.

        Args:
            task: the task.
        """
        found = [
            offer
            for offer in self._offers.values()
            if offer.tool.engine in task.engines and offer.tool.name not in task.excluded
        ]
        return [*found, self._by_tool[FINISH.name]]

    def describe(self, task: BfclTask) -> list[dict[str, Any]]:
        """The tools of a task with the JSON Schemas of their arguments.

        Args:
            task: the task.
        """
        return [
            {
                "name": offer.name,
                "description": offer.tool.about,
                "inputSchema": {
                    "type": "object",
                    "properties": {name: thaw(one.schema) for name, one in offer.arguments.items()},
                    "required": [name for name, one in offer.arguments.items() if one.required],
                    "additionalProperties": False,
                },
            }
            for offer in self.offers_of(task)
        ]

    def summarize(self, task: BfclTask) -> str:
        """The tools of a task, one line each: name, arguments with their types, description.

        Args:
            task: the task.
        """
        lines = []
        for offer in self.offers_of(task):
            arguments = ", ".join(
                f"{name}{'' if one.required else '?'}: {one.schema['type']}" for name, one in offer.arguments.items()
            )
            lines.append(f"{offer.name}({arguments}) - {offer.tool.about}")
        return "\n".join(lines)

    def list_calls(self, task: BfclTask) -> list[str]:
        """The calls of a task's tools that need no argument, as text.

        Args:
            task: the task.
        """
        return [
            json.dumps({"tool": offer.name, "arguments": {}})
            for offer in self.offers_of(task)
            if not any(one.required for one in offer.arguments.values())
        ]

    def parse(self, text: str, task: BfclTask) -> EngineCall:
        """A call as the engine takes it.

        Args:
            text: the call as JSON, by present names.
            task: the task, whose tools can be called.

        Returns:
            The call by the package's names and units, with all arguments.

        Raises:
            Refusal: it is no call of a tool of the task, with arguments as its schema has them.
        """
        if measure(text) > MOST_CHARACTERS:
            raise Refusal("invalid_call", f"a call should have at most {MOST_CHARACTERS} characters")
        name, given = read_call(text)
        offer = self._offers.get(name)
        if offer is None or offer not in self.offers_of(task):
            raise Refusal("unknown_tool", "there is no tool of this name")
        unexpected = [one for one in given if one not in offer.arguments]
        if unexpected:
            raise Refusal("unexpected_argument", f"there is no argument {json.dumps(unexpected[0][:80])}")
        arguments: dict[str, Any] = {}
        for shown, one in offer.arguments.items():
            if shown in given:
                arguments[one.name] = self._read(offer.tool, shown, one, given[shown])
            elif one.required:
                raise Refusal("missing_argument", f"{shown} is missing")
            else:
                arguments[one.name] = self._default_of(offer.tool, one)
        if offer.tool.name in self._required:
            del arguments[CONFIRM]
        return EngineCall(offer.tool.name, arguments)

    def _default_of(self, tool: PackageTool, one: PackageArgument) -> Any:
        return self._defaults.get(f"{tool.name}.{one.name}", one.default)

    def _read(self, tool: PackageTool, shown: str, one: PackageArgument, value: Any) -> Any:
        """The value of an argument in the package's unit."""
        if not fits(one.schema, value) or (one.name in _SMALL and abs(value) > _SMALL[one.name]):
            raise Refusal("invalid_value", f"{shown} should be {name_type(one.schema)}")
        factor = self._factors.get(f"{tool.name}.{one.name}", 1)
        return value if factor == 1 else round(value / factor, _PLACES)

    def write(self, call: EngineCall) -> str:
        """The text of a call of the package under these knobs: what was meant before a drift, said after it.

        Arguments that are left out and now have another default are given.

        Args:
            call: the call by the package's names and units.

        Raises:
            Refusal: the text would be too long to be read.
        """
        offer = self._by_tool[call.tool]
        shown: dict[str, Any] = {}
        for name, one in offer.arguments.items():
            if one.name == self._required.get(call.tool):
                shown[name] = True
            elif one.name in call.arguments:
                shown[name] = self._show(call.tool, one, call.arguments[one.name])
            elif self._default_of(offer.tool, one) != one.default:
                shown[name] = one.default
        text = json.dumps({"tool": offer.name, "arguments": shown})
        if len(text) > MOST_CHARACTERS:
            raise Refusal("invalid_call", f"a call should have at most {MOST_CHARACTERS} characters")
        return text

    def _show(self, tool: str, one: PackageArgument, value: Any) -> Any:
        factor = self._factors.get(f"{tool}.{one.name}", 1)
        return value if factor == 1 or not is_number(value) else round(value * factor, 2 * _PLACES)

    def show_refusal(self, refusal: Refusal) -> dict[str, Any]:
        """An error of this layer in the present form.

        Args:
            refusal: the error.
        """
        return write_error(refusal, self._errors)

    def show_answer(self, answer: Any) -> dict[str, Any]:
        """An engine's answer as an object; its errors in the present form.

        Args:
            answer: the answer as plain data.
        """
        shown = answer if isinstance(answer, dict) else {"result": answer}
        if self._errors != "words" and is_error(answer):
            return write_error(Refusal("conflict", ""), self._errors)
        if len(json.dumps(shown)) > MOST_ANSWER:
            return self.show_refusal(Refusal("conflict", f"the answer has more than {MOST_ANSWER} characters"))
        return shown


def is_error(answer: Any) -> bool:
    """Whether an engine's answer is an error: an object with `error`, or a list that begins with one.

    Args:
        answer: the answer as plain data.

    Example:
        >>> is_error({"error": "No such file."}), is_error(["Error: log in."]), is_error({"result": 4})
        (True, True, False)
    """
    first = answer[0] if isinstance(answer, list) and answer else answer
    return "error" in first if isinstance(first, dict) else isinstance(first, str) and first.startswith("Error")


def make_interface(knobs: Mapping[str, Value]) -> BfclInterface:
    """The interface for knob values; equal values share one.

    Args:
        knobs: canonical values of some or all knobs; the others have their default.

    Raises:
        KnobError: a knob names a tool or an argument that there is not, or gives two of them one name.
        MissingDependencyError: the package is not installed.
    """
    values = {name: thaw(knobs.get(name, knob.default)) for name, knob in BFCL_KNOBS.items()}
    return _interface(json.dumps(values))  # as JSON, true is not 1


@lru_cache(maxsize=256)
def _interface(values: str) -> BfclInterface:
    return BfclInterface(values)
