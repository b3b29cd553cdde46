"""The engines of one task: they execute calls, and their state is read as plain data.

* `Engines` - the engines of a task, with the calls that they have executed
* `State` - the public attributes of every engine, as plain data
* `replay_reference` - the state after each turn of a task's published calls
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping
from decimal import localcontext
from functools import lru_cache
from importlib import import_module
from typing import Any

from drift_envs.envs.bfcl.package import BfclTask, EngineCall, load_tasks, load_tools, make_engine
from drift_envs.tool_calls import Refusal

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

    def __init__(self, task: BfclTask, history: Iterable[EngineCall] = ()) -> None:
        self.task = task
        self.history: tuple[EngineCall, ...] = ()
        """The calls that were executed."""
        self.instances: dict[str, Any] = {}
        """The package's objects, by their class."""
        self._begin()
        for call in history:
            self.execute(call)

    def _begin(self) -> None:
        self.instances = {name: make_engine(name, self.task.scenario.get(name, {})) for name in self.task.engines}

    def execute(self, call: EngineCall) -> Any:
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

    def _call_engine(self, call: EngineCall) -> Any:
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
