"""What is read from `bfcl-eval`: tools, tasks, and engines that execute calls. Nothing of it is stored here.

Source: Patil et al., "The Berkeley Function Calling Leaderboard", 2025; package `bfcl-eval`, Apache-2.0.
"""

from __future__ import annotations

import ast
import copy
import inspect
import json
from collections.abc import Iterable, Iterator, Mapping
from decimal import localcontext
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from drift_envs.errors import ArgumentError, MissingDependencyError
from drift_envs.tasks.package_tools import REQUIRED, PackageArgument, PackageCall, PackageTool
from drift_envs.tasks.tool_calls import Refusal

CATEGORY = "multi_turn_base"
"""The category whose tasks are played; the others change what an agent is told, not what tools do."""

_CODE = "bfcl_eval.constants.executable_backend_config"
_DOCUMENTS = "multi_turn_func_doc"
_ENGINES = (
    "GorillaFileSystem",
    "MathAPI",
    "MessageAPI",
    "TicketAPI",
    "TradingBot",
    "TravelAPI",
    "TwitterAPI",
    "VehicleControlAPI",
)
_TYPES = {"dict": "object", "float": "number", "tuple": "array"}
"""JSON Schema's names of the package's types, where they differ."""

_ENUMS = {"book_flight.travel_class": ["economy", "business", "first"]}
"""Values that the engine checks with an error whose text differs between processes."""


class BfclTask(NamedTuple):
    """A multi-turn task.

    Args:
        number: the number in its name, as 17 in `multi_turn_base_17`.
        requests: what the user says, a text for each turn.
        engines: the classes whose tools it has.
        scenario: the engines' contents at the beginning; never changed.
        excluded: tools that it does not have.
        reference: the published calls of each turn.
    """

    number: int
    requests: tuple[str, ...]
    engines: tuple[str, ...]
    scenario: Mapping[str, Any]
    excluded: frozenset[str]
    reference: tuple[tuple[PackageCall, ...], ...]


FINISH = PackageTool("finish", "End this turn: its request is met, or cannot be met.", {})


def find_package() -> Path:
    """The folder of the package's data.

    Raises:
        MissingDependencyError: the package, or what its engines import, is not installed.
    """
    missing = [name for name in ("bfcl_eval", "mpmath") if find_spec(name) is None]
    if missing:
        names = " and ".join(f"`{name}`" for name in missing)
        raise MissingDependencyError(
            f'{names} should be installed, run `pip install ".[bfcl]"` in a checkout of drift-envs and '
            "`pip install --no-deps bfcl-eval`",
            missing,
            ["bfcl"],
        )
    return Path(str(import_module("bfcl_eval").__file__)).parent / "data"


@lru_cache(maxsize=1)
def load_tools() -> Mapping[str, PackageTool]:
    """The tools of all engines, and `FINISH`, by name.

    Raises:
        MissingDependencyError: the package is not installed.
    """
    folder, files = find_package() / _DOCUMENTS, import_module(_CODE).MULTI_TURN_FUNC_DOC_FILE_MAPPING
    tools = {FINISH.name: FINISH}
    for engine in _ENGINES:
        owner = _find_class(engine)
        for entry in _read_lines(folder / files[engine]):
            tools[entry["name"]] = _read_tool(engine, entry, getattr(owner, entry["name"]))
    return MappingProxyType(tools)


def _find_class(engine: str) -> Any:
    return getattr(import_module(import_module(_CODE).CLASS_FILE_PATH_MAPPING[engine]), engine)


def _read_lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _read_tool(engine: str, entry: Mapping[str, Any], method: Any) -> PackageTool:
    name, described = entry["name"], entry["parameters"]["properties"]
    arguments = {}
    for one in list(inspect.signature(method).parameters.values())[1:]:
        schema = _to_json_schema(described[one.name])
        if f"{name}.{one.name}" in _ENUMS:
            schema["enum"] = _ENUMS[f"{name}.{one.name}"]
        default = copy.deepcopy(one.default)  # engines change the lists that they have as defaults
        if default is not None and default is not REQUIRED:
            schema["default"] = default
        arguments[one.name] = PackageArgument(one.name, schema, default)
    return PackageTool(name, entry["description"].rpartition("Tool description: ")[2], arguments, engine)


def _to_json_schema(described: Mapping[str, Any]) -> dict[str, Any]:
    """JSON Schema of a type that the package describes."""
    schema: dict[str, Any] = {"type": _TYPES.get(described["type"], described["type"])}
    if "description" in described:
        schema["description"] = described["description"].strip()
    if "items" in described:
        schema["items"] = _to_json_schema(described["items"])
    if "properties" in described:
        schema["properties"] = {name: _to_json_schema(one) for name, one in described["properties"].items()}
        schema["additionalProperties"] = False
    return schema


def make_engine(engine: str, scenario: Mapping[str, Any]) -> Any:
    """A new engine.

    Args:
        engine: its class.
        scenario: its contents; they are copied.
    """
    made = _find_class(engine)()
    if hasattr(made, "_load_scenario"):
        made._load_scenario(copy.deepcopy(dict(scenario)), long_context=False)
    return made


@lru_cache(maxsize=1)
def load_tasks() -> Mapping[int, BfclTask]:
    """The tasks with a published call sequence for each turn, by number.

    Raises:
        MissingDependencyError: the package is not installed.
    """
    folder, name = find_package(), f"BFCL_v4_{CATEGORY}.json"
    published = {entry["id"]: entry["ground_truth"] for entry in _read_lines(folder / "possible_answer" / name)}
    tasks = {}
    for entry in _read_lines(folder / name):
        turns = published[entry["id"]]
        task = BfclTask(
            number=int(entry["id"].rpartition("_")[2]),
            requests=tuple("\n".join(one["content"] for one in turn) for turn in entry["question"]),
            engines=tuple(entry["involved_classes"]),
            scenario=entry["initial_config"],
            excluded=frozenset(entry.get("excluded_function", ())),
            reference=tuple(tuple(parse_published_call(text, load_tools()) for text in turn) for turn in turns),
        )
        if len(task.requests) == len(task.reference):
            tasks[task.number] = task
    return MappingProxyType(tasks)


def parse_published_call(text: str, tools: Mapping[str, PackageTool]) -> PackageCall:
    """A published call; nothing is evaluated but literals.

    Args:
        text: the call in Python, as `cd(folder='temp')`.
        tools: the tools, by name.

    Raises:
        ArgumentError: it is not a call of a tool with literals.

    Example:
        >>> tools = {"cd": PackageTool("cd", "", {"folder": PackageArgument("folder", {"type": "string"})})}
        >>> parse_published_call("cd('temp')", tools)
        PackageCall(tool='cd', arguments={'folder': 'temp'})
    """
    try:
        node = ast.parse(text, mode="eval").body
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            raise ValueError("no call by name")
        names = tuple(tools[node.func.id].arguments)
        found = dict(zip(names[: len(node.args)], map(ast.literal_eval, node.args), strict=True))
        found |= {str(one.arg): ast.literal_eval(one.value) for one in node.keywords}
        if set(found) - set(names):
            raise ValueError("unknown arguments")
    except (SyntaxError, ValueError, TypeError, KeyError, RecursionError, MemoryError) as error:
        raise ArgumentError(
            f"a published call should be a tool with literals, as `cd(folder='temp')`. Received {text[:200]!r}"
        ) from error
    return PackageCall(node.func.id, found)


State = dict[str, dict[str, Any]]

MOST_NODES = 5_000
"""The largest number of values in the state of an engine."""

MOST_LEVELS = 60
"""The deepest nesting of its values."""

MOST_ERROR = 500
"""The longest text of an engine's exception."""

_FAILURES = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What an engine raises where a call does not suit it; BFCL answers with the text of the exception, too."""


class Engines:
    """The engines of a task.

    Args:
        task: the task.
        history: calls to execute first, for copies.
    """

    def __init__(self, task: BfclTask, history: Iterable[PackageCall] = ()) -> None:
        self.task = task
        self.history: tuple[PackageCall, ...] = ()
        """The calls that were executed."""
        self.instances: dict[str, Any] = {}
        """The package's objects, by their class."""
        self._begin()
        for call in history:
            self.execute(call)

    def _begin(self) -> None:
        self.instances = {name: make_engine(name, self.task.scenario.get(name, {})) for name in self.task.engines}

    def execute(self, call: PackageCall) -> Any:
        """Execute a call.

        Args:
            call: a call of a tool of this task, with all arguments.

        Returns:
            The engine's answer as plain data, of its own kind.

        Raises:
            Refusal: the state would become too large, or contain itself; nothing was executed.
        """
        answer = self._call_engine(call)
        try:
            self.read_state()
        except _TooLargeError as error:
            self._begin()
            for earlier in self.history:
                self._call_engine(earlier)
            raise Refusal("conflict", "the records would become too large") from error
        self.history = (*self.history, call)
        return answer

    def _call_engine(self, call: PackageCall) -> Any:
        method = getattr(self.instances[load_tools()[call.tool].engine], call.tool)
        precision = import_module("mpmath").mp
        try:
            # Engines set the precision of `decimal` and `mpmath` for the whole process.
            with localcontext(), precision.workdps(precision.dps):
                # Engines keep and change lists that they are given.
                answer = method(**copy.deepcopy(call.arguments))
                return json.loads(json.dumps(answer, default=str))
        except _FAILURES as error:
            return {"error": f"Error during execution: {error}"[:MOST_ERROR]}

    def read_state(self) -> State:
        """The state that BFCL's checker compares: every public attribute of every engine, as plain data."""
        return {name: _read_public(engine, [MOST_NODES], 0) for name, engine in self.instances.items()}


class _TooLargeError(Exception):
    """A state has too many values, or contains itself."""


def _read_public(thing: Any, left: list[int], level: int) -> dict[str, Any]:
    """The public attributes of an object, without what leads back to its owner."""
    return {
        name: _read_plain(value, left, level)
        for name, value in vars(thing).items()
        if not name.startswith("_") and name != "parent"
    }


def _read_plain(value: Any, left: list[int], level: int) -> Any:
    """Plain data for a value; `left` counts down what may still be read."""
    left[0] -= 1
    if left[0] < 0 or level > MOST_LEVELS:
        raise _TooLargeError
    if isinstance(value, Mapping):
        return {key: _read_plain(one, left, level + 1) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_read_plain(one, left, level + 1) for one in value]
    if isinstance(value, (set, frozenset)):
        return frozenset(value)
    return _read_public(value, left, level + 1) if hasattr(value, "__dict__") else value


@lru_cache(maxsize=512)
def replay_reference(number: int) -> tuple[State, ...]:
    """The state before the first turn of a task and after each turn, if its published calls are executed.

    Args:
        number: the number of the task.
    """
    task = load_tasks()[number]
    engines = Engines(task)
    states = [engines.read_state()]
    for turn in task.reference:
        for call in turn:
            arguments = {name: one.default for name, one in load_tools()[call.tool].arguments.items()}
            engines.execute(call._replace(arguments={**arguments, **call.arguments}))
        states.append(engines.read_state())
    return tuple(states)
