"""The tools of a package under knob values: what clients see of them, how calls are read, how answers are shown."""

from __future__ import annotations

import inspect
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, TypeVar

from drift_envs.errors import KnobError
from drift_envs.knobs import KnobTable, Value, thaw
from drift_envs.tasks.tool_calls import CONFIRM, Refusal, fits, name_type, read_call, write_error

MOST_ANSWER = 16_000
"""The longest answer, as JSON."""

REQUIRED: Any = inspect.Parameter.empty
"""The default of an argument that has none."""


class PackageArgument(NamedTuple):
    """An argument of a tool.

    Args:
        name: its name in the package.
        schema: the JSON Schema of its values.
        default: the value that is taken where it is left out; `REQUIRED` if it may not be.
    """

    name: str
    schema: dict[str, Any]
    default: Any = REQUIRED

    @property
    def required(self) -> bool:
        """Whether it may not be left out."""
        return self.default is REQUIRED


class PackageTool(NamedTuple):
    """A tool.

    Args:
        name: its name in the package.
        about: what it does, as the package says.
        arguments: its arguments by name, in the package's order.
        engine: the class that executes it, where the package has several.
        is_write: whether it changes the database, where the package says so.
    """

    name: str
    about: str
    arguments: Mapping[str, PackageArgument]
    engine: str = ""
    is_write: bool = False


class PackageCall(NamedTuple):
    """A call by the names and units of the package.

    Args:
        tool: the tool.
        arguments: the arguments that are given.
    """

    tool: str
    arguments: dict[str, Any]


class OfferedTool(NamedTuple):
    """A tool by its present name, with its arguments by their present names."""

    name: str
    tool: PackageTool
    arguments: dict[str, PackageArgument]


Made = TypeVar("Made", bound="PackageInterface")


class PackageInterface(ABC):
    """The tools under knob values, as clients see them; built by `of`, and never changed.

    Args:
        values: the values of all knobs, as JSON.

    Raises:
        KnobError: a knob names a tool or an argument that there is not, or gives two of them one name.
    """

    table: ClassVar[KnobTable]
    confirms: ClassVar[str]
    """The description of the argument `CONFIRM`."""
    place: Any = 0
    """The place whose tools these are, where tasks have one."""

    def __init__(self, values: str) -> None:
        self._values, self.knobs = values, json.loads(values)
        self._check_paths(self._known_tools())
        self._offers: dict[str, OfferedTool] = {}
        for tool in self._own_tools().values():
            offer = self._make_offer(tool)
            if offer.name in self._offers:
                raise KnobError(
                    f"`names`: two tools should not have one name. Received {offer.name!r} for "
                    f"{self._offers[offer.name].tool.name} and {tool.name}"
                )
            self._offers[offer.name] = offer
        self._by_tool = {offer.tool.name: offer for offer in self._offers.values()}

    @classmethod
    def of(cls: type[Made], knobs: Mapping[str, Value]) -> Made:
        """The interface for knob values; equal values share one.

        Args:
            knobs: canonical values of some or all knobs; the others have their default.

        Raises:
            KnobError: a knob names a tool or an argument that there is not, or gives two of them one name.
            MissingDependencyError: the package is not installed.
        """
        values = {name: thaw(knobs.get(name, knob.default)) for name, knob in cls.table.items() if name != "transient"}
        made: Made = _share_interface(cls, json.dumps(values))  # as JSON, true is not 1
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy is the interface of the same knobs."""
        return _share_interface, (type(self), self._values)

    def at(self: Made, place: Any) -> Made:
        """The interface for the same knobs at a place.

        Args:
            place: the place.
        """
        return self

    @abstractmethod
    def _own_tools(self) -> Mapping[str, PackageTool]:
        """The tools that are offered."""

    def _known_tools(self) -> Mapping[str, PackageTool]:
        """The tools that knobs may name."""
        return self._own_tools()

    def _check_paths(self, tools: Mapping[str, PackageTool]) -> None:
        """Refuse knobs that name what there is not."""
        arguments = {f"{tool.name}.{name}": one for tool in tools.values() for name, one in tool.arguments.items()}
        for path in self.knobs["names"]:
            if path not in tools and path not in arguments:
                raise KnobError(f"`names` should name tools or arguments of the package. Received {path!r}")
        for path in self.knobs["required"]:
            if path not in tools:
                raise KnobError(f"`required` should name tools of the package. Received {path!r}")
        for path, value in self.knobs["defaults"].items():
            self._check_default(path, arguments.get(path), value)

    @abstractmethod
    def _check_default(self, path: str, argument: PackageArgument | None, value: Any) -> None:
        """Refuse a default of an argument that there is not, or that it cannot have."""

    def _make_offer(self, tool: PackageTool) -> OfferedTool:
        defaults, names = self.knobs["defaults"], self.knobs["names"]
        arguments = [
            one._replace(
                schema=self._translate(name, one.schema), default=defaults.get(f"{tool.name}.{name}", one.default)
            )
            for name, one in tool.arguments.items()
        ]
        if tool.name in self.knobs["required"]:
            schema = {"type": "boolean", "enum": [True], "description": self.confirms}
            arguments.append(PackageArgument(CONFIRM, schema))
        named = {names.get(f"{tool.name}.{one.name}", one.name): one for one in arguments}
        if len(named) < len(arguments):
            raise KnobError(f"`names`: two arguments of {tool.name} should not have one name. Received {list(named)}")
        return OfferedTool(names.get(tool.name, tool.name), tool, named)

    def _translate(self, name: str, schema: dict[str, Any]) -> dict[str, Any]:
        """The present schema of an argument."""
        return schema

    def offers_of(self, task: Any) -> Sequence[OfferedTool]:
        """The tools of a task, the one that ends it last.

        Args:
            task: the task.
        """
        return list(self._offers.values())

    def describe(self, task: Any = None) -> list[dict[str, Any]]:
        """The tools with the JSON Schemas of their arguments; objects of the caller's own.

        Args:
            task: the task, where tasks differ in their tools.
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

    def summarize(self, task: Any = None) -> str:
        """The tools, one line each: name, arguments with their types, description.

        Args:
            task: the task, where tasks differ in their tools.
        """
        lines = []
        for offer in self.offers_of(task):
            arguments = ", ".join(
                f"{name}{'' if one.required else '?'}: {one.schema['type']}" for name, one in offer.arguments.items()
            )
            lines.append(f"{offer.name}({arguments}) - {self._shorten(offer.tool.about)}")
        return "\n".join(lines)

    def _shorten(self, about: str) -> str:
        """What a line says of a tool."""
        return about

    def parse(self, text: str, task: Any = None) -> PackageCall:
        """A call as the package takes it.

        Args:
            text: the call as JSON, by present names.
            task: the task, where tasks differ in their tools.

        Returns:
            The call by the package's names and units, with all arguments.

        Raises:
            Refusal: it is no call of a tool of the task, with arguments as its schema has them.
        """
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
                if not fits(one.schema, given[shown]):
                    raise Refusal("invalid_value", f"{shown} should be {name_type(one.schema)}")
                arguments[one.name] = self._read(offer.tool.name, one, shown, given[shown])
            elif one.required:
                raise Refusal("missing_argument", f"{shown} is missing")
            else:
                arguments[one.name] = one.default
        if offer.tool.name in self.knobs["required"]:
            del arguments[CONFIRM]
        return PackageCall(offer.tool.name, arguments)

    @abstractmethod
    def _read(self, tool: str, one: PackageArgument, shown: str, value: Any) -> Any:
        """The value of an argument, which fits its schema, in the package's form and unit."""

    @abstractmethod
    def write(self, call: PackageCall) -> str:
        """The text of a call of the package under these knobs: what was meant before a drift, said after it."""

    def show_refusal(self, refusal: Refusal) -> dict[str, Any]:
        """An error of this layer in the present form.

        Args:
            refusal: the error.
        """
        return write_error(refusal, self.knobs["errors"])

    def show_answer(self, answer: Any) -> dict[str, Any]:
        """An engine's answer as an object; its errors in the present form.

        Args:
            answer: the answer as plain data.
        """
        if self.knobs["errors"] != "words" and is_error(answer):
            return self.show_refusal(Refusal("conflict", ""))
        shown = answer if isinstance(answer, dict) else {"result": answer}
        if len(json.dumps(shown)) > MOST_ANSWER:
            return self.show_refusal(Refusal("conflict", f"the answer has more than {MOST_ANSWER} characters"))
        return shown


@lru_cache(maxsize=512)
def _share_interface(cls: Any, values: str) -> Any:
    return cls(values)


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
