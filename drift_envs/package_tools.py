"""Environments with tools: calls as JSON, errors, schemas, and the base of those whose tools are a package's."""

from __future__ import annotations

import json
import math
import re
import string
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from drift_envs.checks import check_flag, check_integer, is_integer, is_number
from drift_envs.errors import KnobError
from drift_envs.knobs import FrozenMapping, Value
from drift_envs.recurring_tasks import EpisodeEnv, TaskEpisode, TaskSequence

ERRORS = ("words", "numbers", "terse")
"""Errors with a code and a message, with a number alone, or with no reason at all."""

ERROR_NUMBERS = {
    "invalid_call": 400,
    "unknown_tool": 404,
    "missing_argument": 421,
    "unexpected_argument": 422,
    "invalid_value": 423,
    "not_found": 440,
    "not_looked_up": 441,
    "conflict": 409,
    "redundant": 424,
    "policy": 403,
    "gone": 410,
}

MOST_CHARACTERS = 2000
"""The longest call that is read."""


class Refusal(Exception):
    """A tool's error, which a client gets as an answer.

    Args:
        code: its code, a key of `ERROR_NUMBERS`.
        message: the message.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


def write_error(refusal: Refusal, form: str) -> dict[str, Any]:
    """A tool's error in a form.

    Args:
        refusal: the error.
        form: one of `ERRORS`.

    Example:
        >>> write_error(Refusal("not_found", "there is no such record"), "numbers")
        {'error': 440}
    """
    if form == "words":
        return {"error": refusal.code, "message": refusal.message}
    return {"error": ERROR_NUMBERS[refusal.code] if form == "numbers" else "failed"}


def read_call(text: str) -> tuple[str, dict[str, Any]]:
    """The name and the arguments of a call.

    Args:
        text: the call as JSON.

    Raises:
        Refusal: it is no JSON object with `tool` and `arguments`.

    Example:
        >>> read_call('{"tool": "find_customer", "arguments": {"email": "a@example.org"}}')
        ('find_customer', {'email': 'a@example.org'})
    """
    if len(text) > MOST_CHARACTERS:
        raise Refusal("invalid_call", f"a call should have at most {MOST_CHARACTERS} characters")
    try:
        call = json.loads(text)
    except (ValueError, RecursionError):
        call = None
    if not isinstance(call, dict) or not isinstance(call.get("tool"), str) or set(call) - {"tool", "arguments"}:
        raise Refusal("invalid_call", 'a call should be JSON: {"tool": NAME, "arguments": {...}}')
    given = call.get("arguments", {})
    if not isinstance(given, dict):
        raise Refusal("invalid_call", "`arguments` should be an object")
    return call["tool"], given


MOST_NUMBER = 10**12
"""The largest number in an argument."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_PATH = re.compile(rf"{_NAME.pattern}(\.{_NAME.pattern})?")


def check_path(knob: str, path: Any, is_argument: bool) -> None:
    """Refuse what names no tool or argument.

    Args:
        knob: the name of the knob.
        path: a tool, or tool.argument.
        is_argument: whether only an argument is allowed.

    Raises:
        KnobError: it has another form.
    """
    if not isinstance(path, str) or _PATH.fullmatch(path) is None or (is_argument and "." not in path):
        form = "arguments such as 'create_ticket.priority'" if is_argument else "tools, or arguments as 'cd.folder'"
        raise KnobError(f"`{knob}` should name {form}. Received {path!r}")


def parse_names(value: Mapping[str, Any]) -> FrozenMapping:
    """Tools and arguments, and their new names.

    Args:
        value: the knob's value.

    Raises:
        KnobError: a name has another form.
    """
    for old, new in value.items():
        check_path("names", old, is_argument=False)
        if not isinstance(new, str) or _NAME.fullmatch(new) is None:
            raise KnobError(f"`names` should give {old!r} a name of letters, digits and `_`. Received {new!r}")
    return FrozenMapping(value)


def unique_names(values: Mapping[str, Value]) -> Iterator[tuple[str, str]]:
    """No two tools, and no two arguments of a tool, may get one name.

    Args:
        values: the values of all knobs.
    """
    given: dict[tuple[str, str], str] = {}
    for old, new in values["names"].items():
        place = old.rpartition(".")[0], new
        if place in given:
            yield "names", f"{given[place]} and {old} should not get one name. Received {new!r}"
        given[place] = old


def fits(schema: Mapping[str, Any], value: Any) -> bool:
    """Whether a value is one of a schema, and its numbers are within `MOST_NUMBER`.

    Args:
        schema: the JSON Schema, without references.
        value: the value as JSON.

    Example:
        >>> fits({"type": "array", "items": {"type": "integer"}}, [1, 2]), fits({"type": "integer"}, True)
        (True, False)
    """
    if "enum" in schema:
        return any(type(value) is type(one) and value == one for one in schema["enum"])
    kind = schema["type"]
    if kind in ("integer", "number"):
        has_type = is_integer(value) if kind == "integer" else is_number(value)
        return has_type and math.isfinite(value) and abs(value) <= MOST_NUMBER
    if kind == "array":
        return isinstance(value, list) and all(fits(schema["items"], one) for one in value)
    if kind == "object":
        parts = schema["properties"]
        return (
            isinstance(value, dict)
            and all(name in value for name in schema.get("required", ()))
            and all(name in parts and fits(parts[name], one) for name, one in value.items())
        )
    return isinstance(value, {"string": str, "boolean": bool}[kind])


def name_type(schema: Mapping[str, Any]) -> str:
    """The type of a schema for an error.

    Args:
        schema: the JSON Schema.

    Example:
        >>> name_type({"type": "integer"}), name_type({"enum": ["yes", "no"]})
        ('a whole number', '"yes" or "no"')
    """
    words = {"integer": "a whole number", "number": "a number", "array": "a list", "object": "an object"}
    if "enum" in schema:
        return " or ".join(json.dumps(one) for one in schema["enum"])
    return {**words, "string": "a text", "boolean": "true or false"}[schema["type"]]


def measure(text: str) -> int:
    """The length of a text whose characters beyond ASCII are escaped, as observations have them.

    Args:
        text: the text.
    """
    return len(text) if text.isascii() else sum(1 if one < "\x80" else 6 if one < "\U00010000" else 12 for one in text)


CHARACTERS = string.ascii_letters + string.digits + string.punctuation + " "
"""Every character that an observation can have."""

MAX_LENGTH = 262_144
"""No observation is longer."""

_MOST_STATES = 2_000
"""How many states evaluators can ask about."""


class ToolsEpisode(TaskEpisode, Protocol):
    """The state of an episode, whose tools are replaced when knobs change."""

    interface: Any


PackageEpisode = TypeVar("PackageEpisode", bound=ToolsEpisode)


class PackageToolsEnv(EpisodeEnv[PackageEpisode], Generic[PackageEpisode]):
    """The base of environments where calls as JSON do the tasks of a package.

    A subclass makes the sequence of tasks and the tools for knob values, and says which numbers tasks have.

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
        pool = check_integer("pool", pool, 1, self.most_tasks, optional=True)
        tasks = self._make_tasks(pool, order, conditions, check_flag("affected", affected))
        super().__init__(render_mode, observation_mode, tasks, (MAX_LENGTH, MOST_CHARACTERS), CHARACTERS)
        self._is_seeded = False
        self._states: dict[str, tuple[int, dict[str, Any]]] = {}

    @abstractmethod
    def _make_tasks(
        self, size: int | None, order: str, conditions: Sequence[Mapping[str, Value]], affected: bool
    ) -> TaskSequence:
        """The sequence of tasks."""

    @abstractmethod
    def _make_interface(self, knobs: Mapping[str, Value], episode: PackageEpisode | None = None) -> Any:
        """The tools for knob values, of an episode that goes on if one is given."""

    @abstractmethod
    def _check_number(self, number: int) -> None:
        """Raise an `ArgumentError` if no task has this number."""

    @property
    def _place(self) -> int:
        """The place of the next episode, where tasks have one."""
        return 0

    @property
    def task_pool(self) -> tuple[int, ...] | None:
        """The numbers of the recurring tasks, or `None` for all tasks of the place. For evaluators."""
        return self._tasks.pool(self._place)

    def other_tasks(self, count: int) -> tuple[int, ...]:
        """The numbers of tasks outside `task_pool`, drawn by the same rules. For evaluators.

        Args:
            count: how many.

        Raises:
            ArgumentError: there are too few.
        """
        return self._tasks.others(self._place, count)

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
            self._check_number(index)
        super().reset(seed=seed)
        if (seed is not None and not self._keeps_tasks) or not self._is_seeded:
            self._tasks.seed(int(self.np_random.integers(2**31)))
            self._is_seeded = True
        self._keeps_tasks = False
        self.goal_index = self._tasks.next(self._place) if index is None else index
        self._current = self._start(self.goal_index)
        return self._observe(), self._make_info()

    def _observe(self) -> str:
        shown = super()._observe()
        if self.observation_mode == "state":
            self._states.pop(shown, None)  # the last entry is the newest
            self._states[shown] = int(self.goal_index or 0), self.episode.save()
            if len(self._states) > _MOST_STATES:
                del self._states[next(iter(self._states))]
        return shown

    def find_state(self, state: str) -> tuple[int, dict[str, Any]] | None:
        """The task and the episode behind a state that was shown; `None` if it was not. For evaluators.

        Args:
            state: the state.
        """
        return self._states.get(state)

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
            self._current.interface = self._make_interface(knobs, self._current)

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the states for an evaluator."""
        return {**super().__getstate__(), "_states": {}}
