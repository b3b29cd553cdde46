"""Environments whose tools and tasks are a package's: the tools under knob values, one episode, and the environment.

A package's published calls are the reference: carried through a drift, they solve their task.
"""

from __future__ import annotations

import inspect
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from drift_envs.checks import check_flag, check_integer
from drift_envs.errors import ArgumentError, KnobError
from drift_envs.knobs import KnobTable, Value, thaw
from drift_envs.recurring_tasks import EpisodeEnv, TaskSequence
from drift_envs.tool_calls import (
    CHARACTERS,
    CONFIRM,
    MOST_CHARACTERS,
    Refusal,
    fits,
    name_type,
    read_call,
    write_error,
)

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


class PackageEpisode(ABC):
    """The state of an episode.

    Args:
        interface: the tools; replaced from outside when knobs change.
        task: the task.
    """

    interface: Any
    is_over: Any
    score: Any
    _saved: ClassVar[tuple[str, ...]]
    """What a copy is made of, beside the engine's history."""

    def __init__(self, interface: Any, task: Any) -> None:
        self.interface, self.task = interface, task
        self.calls: tuple[str, ...] = ()
        """The calls that were answered without an error, as text."""
        self.answer: dict[str, Any] = {}
        self._described: tuple[Any, list[dict[str, Any]], str] | None = None

    @property
    @abstractmethod
    def request(self) -> str:
        """What the user said last."""

    @property
    @abstractmethod
    def history(self) -> tuple[PackageCall, ...]:
        """The calls that the engine has executed."""

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tools with the JSON Schemas of their arguments; objects of this episode alone."""
        return self._describe()[1]

    @property
    def tools_text(self) -> str:
        """The form of a call, and the tools in words."""
        return self._describe()[2]

    def _describe(self) -> tuple[Any, list[dict[str, Any]], str]:
        """The interface, its tools, and the text about them, which are made once for an interface."""
        found = self._described
        if found is None or found[0] is not self.interface:
            finish = self.interface.write(PackageCall("finish", {}))
            lines = f"Tools, called by JSON as {finish}:\n{self.interface.summarize(self.task)}"
            found = self._described = self.interface, self.interface.describe(self.task), lines
        return found

    @property
    def task_text(self) -> str:
        """The request and the tools in words."""
        return f"{self.request}\n\n{self.tools_text}"

    def act(self, text: str) -> str:
        """Execute a call.

        Args:
            text: the call as JSON.

        Returns:
            The answer as JSON.
        """
        try:
            if self.is_over:
                raise Refusal("conflict", "the conversation was ended")
            call = self.interface.parse(text, self.task)
            answer = self._execute(call)
        except Refusal as refusal:
            self.answer = self.interface.show_refusal(refusal)
            return self.write_answer()
        self.answer = self.interface.show_answer(answer)
        if not is_error(answer):
            self.calls = (*self.calls, json.dumps(json.loads(text)))
            self._note(call)
        return self.write_answer()

    @abstractmethod
    def _execute(self, call: PackageCall) -> Any:
        """The answer to a call; a `Refusal` if it is not executed."""

    def _note(self, call: PackageCall) -> None:  # noqa: B027 - nothing is kept by default
        """Keep what a call without an error has shown."""

    def write_answer(self) -> str:
        """The last answer as JSON; before the first call, the request."""
        return json.dumps(self.answer or ({"answer": None} if self.calls else {"request": self.request}))

    @abstractmethod
    def write_state(self) -> str:
        """The state as JSON."""

    def save(self) -> dict[str, Any]:
        """The state as plain data."""
        return {**{name: getattr(self, name) for name in self._saved}, "history": self.history}

    def load(self, saved: Mapping[str, Any]) -> None:
        """Restore a state.

        Args:
            saved: from `save`.
        """
        for name in self._saved:
            setattr(self, name, saved[name])
        self._replay(saved["history"])

    @abstractmethod
    def _replay(self, history: Sequence[PackageCall]) -> None:
        """Replace the engine by one that has executed these calls."""


MAX_LENGTH = 262_144
"""No observation is longer."""

_MOST_STATES = 2_000
"""How many states evaluators can ask about."""

Episode = TypeVar("Episode", bound=PackageEpisode)


class PackageToolsEnv(EpisodeEnv[Episode], Generic[Episode]):
    """The base of environments where calls as JSON do the tasks of a package.

    A subclass names the classes of its interface and its episodes, draws, lists and finds tasks, and writes `info`.

    Args:
        render_mode: `ansi` or `None`.
        observation_mode: `answer` or `state`.
        pool: the number of recurring tasks; `None` draws from all tasks of the place.
        order: `shuffled` (each task once in every round of the pool) or `fixed`.
        conditions: knob values under each of which the published calls, carried through the drift, are right.
        affected: whether tasks come first that changes between two conditions affect, or those that none does.

    Raises:
        ArgumentError: an argument breaks a rule.
        KnobError: a condition names a tool or an argument that there is not.
        MissingDependencyError: the package is not installed.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012 - as Gymnasium declares it
    observation_modes = ("answer", "state")
    most_tasks: ClassVar[int]
    """The largest number of a task."""
    others: ClassVar[int]
    """The key of the random stream of tasks outside the pool."""
    interface_class: ClassVar[type[PackageInterface]]
    episode_class: ClassVar[type[Episode]]  # type: ignore[misc]
    find_package: ClassVar[Any]
    """Raises a `MissingDependencyError` if the package cannot be used."""
    load_tasks: ClassVar[Any]
    """The package's tasks, by number."""
    plan_reference: ClassVar[Any]
    """The published calls of a task, by its number, for an interface, with the end."""

    def __init__(
        self,
        render_mode: str | None = None,
        *,
        observation_mode: str = "answer",
        pool: int | None = None,
        order: str = "shuffled",
        conditions: Sequence[Mapping[str, Value]] = (),
        affected: bool = True,
    ) -> None:
        self.find_package()
        pool = check_integer("pool", pool, 1, self.most_tasks, optional=True)
        affected = check_flag("affected", affected)
        interfaces = tuple(map(self.interface_class.of, conditions)) or (self.interface_class.of({}),)
        draw = partial(self.draw_tasks, interfaces=interfaces, affected=affected)
        tasks = TaskSequence(pool, order, draw, self.list_tasks, self.others)
        super().__init__(render_mode, observation_mode, tasks, (MAX_LENGTH, MOST_CHARACTERS), CHARACTERS)
        self._is_seeded = False
        self._states: dict[str, tuple[int, dict[str, Any]]] = {}

    @abstractmethod
    def find_task(self, number: int) -> Any:
        """A task by its number.

        Args:
            number: the number.

        Raises:
            ArgumentError: there is no such task.
        """

    @classmethod
    def list_all(cls, place: Any) -> Iterable[int]:
        """The numbers of the package's tasks of a place, in order."""
        found: Iterable[int] = cls.load_tasks()
        return found

    @classmethod
    def is_played(cls, number: int) -> bool:
        """Whether a task can be scored."""
        return True

    @classmethod
    @lru_cache(maxsize=16)
    def list_tasks(cls, place: Any = 0) -> tuple[int, ...]:
        """The numbers of the tasks of a place that can be scored, in order.

        Args:
            place: the place, where tasks have one.
        """
        return tuple(filter(cls.is_played, cls.list_all(place)))

    @classmethod
    @lru_cache(maxsize=8192)
    def write_reference(cls, number: int, interface: Any) -> tuple[str, ...]:
        """The published calls of a task as texts for an interface, with the end.

        Args:
            number: the number of the task.
            interface: the tools for which they are written.
        """
        return tuple(map(interface.write, cls.plan_reference(number, interface)))

    @classmethod
    @lru_cache(maxsize=8192)
    def carry_reference(cls, number: int, before: Any, after: Any) -> float:
        """The score of a task's published calls as they were right before, sent after.

        Args:
            number: the number of the task.
            before: the interface for which they are written.
            after: the interface that executes them.
        """
        episode = cls.episode_class(after, cls.load_tasks()[number])
        for text in cls.write_reference(number, before):
            episode.act(text)
        return float(episode.score)

    @classmethod
    @lru_cache(maxsize=128)
    def draw_tasks(
        cls,
        place: Any,
        count: int,
        seed: int,
        without: tuple[int, ...] = (),
        *,
        interfaces: tuple[Any, ...],
        affected: bool = True,
    ) -> tuple[int, ...]:
        """Draw tasks whose published calls, carried through the drifts, are right under all conditions.

        Those that the most drifts affect come first: the calls that were right before score nothing after. For a
        control, those that the fewest affect.

        Args:
            place: the place, where tasks have one.
            count: how many.
            seed: of the stream.
            without: the numbers of tasks that are excluded.
            interfaces: those of the conditions, in temporal order.
            affected: whether drifts should affect the tasks that come first.

        Raises:
            ArgumentError: there are too few such tasks.
        """
        order = np.random.default_rng(seed).permutation([one for one in cls.list_all(place) if one not in without])
        settings = [one.at(place) for one in interfaces]
        changes = [(old, new) for old, new in pairwise(settings) if old is not new]
        hits: dict[int, int] = {}
        for number in map(int, order):
            if sum(one == len(changes) for one in hits.values()) >= count:
                break
            if cls.is_played(number) and all(cls.carry_reference(number, one, one) == 1.0 for one in settings):
                lost = sum(cls.carry_reference(number, old, new) < 1.0 for old, new in changes)
                hits[number] = lost if affected else len(changes) - lost
        if len(hits) < count:
            raise ArgumentError(f"`pool` should be at most {len(hits)}, the tasks that there are. Received {count}")
        return tuple(sorted(hits, key=lambda number: -hits[number])[:count])

    @property
    def place(self) -> Any:
        """The place of the next episode, where tasks have one. For evaluators."""
        return 0

    @property
    def task_pool(self) -> tuple[int, ...] | None:
        """The numbers of the recurring tasks, or `None` for all tasks of the place. For evaluators."""
        return self._tasks.pool(self.place)

    def other_tasks(self, count: int) -> tuple[int, ...]:
        """The numbers of tasks outside `task_pool`, drawn by the same rules. For evaluators.

        Args:
            count: how many.

        Raises:
            ArgumentError: there are too few.
        """
        return self._tasks.others(self.place, count)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode.

        Args:
            seed: seeds the environment's generator, and draws a new pool of tasks.
            options: `goal_index` is the number of the task; by default the next one.

        Returns:
            What is seen first, and `info`.

        Raises:
            ArgumentError: no task has this number, or there is no such option.
        """
        index = self._read_goal_index(options or {}, self.most_tasks)
        if index is not None:
            self.find_task(index)  # refuses a number that no task has
        super().reset(seed=seed)
        if (seed is not None and not self._keeps_tasks) or not self._is_seeded:
            self._tasks.seed(int(self.np_random.integers(2**31)))
            self._is_seeded = True
        self._keeps_tasks = False
        self.goal_index = self._tasks.next(self.place) if index is None else index
        self._current = self._start(self.goal_index)
        return self._observe(), self._make_info()

    def reference(self, number: int) -> tuple[str, ...]:
        """The published calls of a task as texts under the present knobs, with the end. For evaluators.

        Args:
            number: the number of the task.

        Raises:
            ArgumentError: there is no such task.
        """
        return self.write_reference(number, self._make_interface(self.read_knobs(), self.find_task(number)))

    def make_episode(self, number: int, knobs: Mapping[str, Value]) -> Episode:
        """A new episode of a task under knob values. For evaluators.

        Args:
            number: the number of the task.
            knobs: the values.

        Raises:
            ArgumentError: there is no such task.
        """
        task = self.find_task(number)
        return self.episode_class(self._make_interface(knobs, task), task)

    def _make_interface(self, knobs: Mapping[str, Value], task: Any = None) -> PackageInterface:
        """The tools for knob values, of a task if one is given."""
        return self.interface_class.of(knobs)

    def _start(self, number: int) -> Episode:
        return self.make_episode(number, self.read_knobs())

    def _list_actions(self, episode: Episode) -> Sequence[str]:
        """Calls to choose from."""
        return ()

    def _make_info(self) -> dict[str, Any]:
        episode = self.episode
        actions = [] if episode.is_over else list(self._list_actions(episode))
        return {"task": episode.task_text, "actions": actions, "score": episode.score, "tools": episode.tools}

    def _observe(self) -> str:
        shown = super()._observe()
        if self.observation_mode == "state":
            self._states.pop(shown, None)  # the last entry is the newest
            self._states[shown] = int(self.goal_index or 0), self.episode.save()
            if len(self._states) > _MOST_STATES:
                del self._states[next(iter(self._states))]
        return shown

    def restore_episode(self, state: str, knobs: Mapping[str, Value]) -> Episode:
        """The episode behind a state that was shown, under knob values. For evaluators.

        Args:
            state: the state.
            knobs: the values.

        Raises:
            ArgumentError: the state was not shown, or is no longer kept.
        """
        found = self._states.get(state)
        if found is None:
            raise ArgumentError(f"`state` should be one that this environment has shown. Received {state[:200]!r}")
        episode = self.make_episode(found[0], knobs)
        episode.load(found[1])
        return episode

    def set_knobs(self, values: Mapping[str, Value]) -> None:
        """Set these knobs to canonical values, all at once.

        Args:
            values: canonical values, by knob.

        Raises:
            KnobError: a value names a tool or an argument that there is not; nothing is changed then.
        """
        knobs = {**self.read_knobs(), **values}
        self._make_interface(knobs)
        super().set_knobs(values)
        if self._current is not None:
            self._current.interface = self._make_interface(knobs, self._current.task)

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the states for an evaluator."""
        return {**super().__getstate__(), "_states": {}}
