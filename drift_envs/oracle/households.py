"""The oracle of environments with ALFWorld's tasks: shortest plans by search, and states that name what they show."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping, Set
from functools import lru_cache
from typing import Any, ClassVar

from drift_envs.errors import ArgumentError
from drift_envs.knobs import Value
from drift_envs.oracle.base import completion_probability
from drift_envs.oracle.recurring import CommandOracle, Plans, Setting
from drift_envs.tasks.households import HouseholdEnv, HouseholdTask

SAMPLE = 20
"""The number of tasks that are evaluated if the environment draws from all tasks of the place."""


class HouseholdOracle(CommandOracle[Setting, HouseholdTask]):
    """The oracle of environments with ALFWorld's tasks, see `CommandOracle`.

    A state is the JSON text of an observation; place and task in it say which. Names of furniture in it are those of
    the tick at which it was shown.
    """

    env_class: ClassVar[type[HouseholdEnv[Any]]]
    say: ClassVar[Any]
    """A task in words, from the task, a setting and the wording."""

    @abstractmethod
    def _names(self, setting: Setting) -> Set[str]:
        """The names of furniture."""

    def _make_setting(self, place: int, knobs: Mapping[str, Value]) -> Setting:
        made: Setting = self.env_class.make_setting(place, knobs)
        return made

    def _solve(self, setting: Setting, task: HouseholdTask) -> Plans[Any, Any]:
        """The shortest plans of a task from the start."""
        found: Plans[Any, Any] = self.env_class.solve_task(setting, task, limit=self._limit)
        return found

    @abstractmethod
    def _restore_at(self, setting: Setting, task: HouseholdTask, state: str, names: Setting, wording: int) -> Any:
        """An episode at a state whose names are those of another setting."""

    def action(self, state: Any, tick: int, left: int | None = None) -> str:
        """The first command of a shortest plan from here; `look` where the task cannot be done any more.

        Args:
            state: the JSON text.
            tick: the tick.
            left: the remaining steps (default: the limit).
        """
        plan: list[str] = self._restore(state, tick).plan(self._limit if left is None else left)
        return plan[0] if plan else "look"

    def _tasks(self, setting: Setting) -> list[HouseholdTask]:
        place = self._place(setting)
        pool = self._pool(place)
        tasks = self.env_class.tasks
        return [tasks.find(number)[1] for number in (tasks.numbers(place)[:SAMPLE] if pool is None else pool)]

    def _task_value(self, setting: Setting, task: HouseholdTask, lost: float) -> float:
        plans = self._solve(setting, task)
        return plans.score * completion_probability(plans.length, self._limit, lost)

    def _restore(self, state: Any, tick: int) -> Any:
        knobs: Mapping[str, Value] = self._source.knobs_at(tick)
        self._note(knobs)
        try:
            shown = json.loads(state)
            number, text = int(shown["house"]), str(shown["task"])
        except (TypeError, KeyError, ValueError) as error:
            raise ArgumentError(
                f"`state` should be a JSON text with `house` and `task`. Received {str(state)[:200]!r}"
            ) from error
        places = {str(shown.get("at")), *map(str, shown.get("visited", ()))} - {"nothing"}
        known = [self._make_setting(number, one) for one in (knobs, *self._known.values())]
        # The names of this tick first; those of another tick where the text has furniture that is not called so.
        for strict in (True, False):
            for names in known:
                found = _find_task(type(self), names, number, text)
                if found is not None and (not strict or places <= self._names(names)):
                    return self._restore_at(known[0], found[0], state, names, found[1])
        raise ArgumentError(f"`state` should have a task of {self.env_class.tasks.place} {number}. Received {text!r}")


@lru_cache(maxsize=4096)
def _find_task(cls: type[HouseholdOracle[Any]], names: Any, number: int, text: str) -> tuple[HouseholdTask, int] | None:
    """The task of a text and its wording, if furniture is called so; the first one of several."""
    words = text.split()
    known = [task for task in cls.env_class.tasks.list_all(number) if task.thing in words]
    ways = ((task, wording) for wording in range(cls.env_class.wordings) for task in known)
    return next(((task, wording) for task, wording in ways if cls.say(task, names, wording) == text), None)
