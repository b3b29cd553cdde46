"""What environments of ALFWorld's kind share: its six types of tasks in numbered places, their pools, and `info`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from drift_envs.checks import check_flag, check_integer
from drift_envs.errors import ArgumentError
from drift_envs.knobs import Value
from drift_envs.tasks.recurring_tasks import (
    CommandEnv,
    CommandEpisode,
    Conditions,
    NumberedTasks,
    TaskSequence,
    freeze_conditions,
    take_turns,
)

TASK_TYPES = (
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
)
"""The six types, by ALFWorld's names."""

_LIGHT, _TWO = TASK_TYPES[1], TASK_TYPES[5]

NEEDS = {TASK_TYPES[2]: "clean", TASK_TYPES[3]: "heat", TASK_TYPES[4]: "cool"}
"""By type of task, what an appliance has to do to the thing."""

MARKS = {"clean": "clean", "heat": "hot", "cool": "cold"}
"""What holds of a thing after an appliance has done this to it."""

LIMIT = 50
"""The steps of an episode, as in ALFWorld."""

MAX_LENGTH = 16_384
"""No observation is longer."""

MAX_ACTION = 100
"""No command is longer."""

NOTHING = "Nothing happens."
"""The answer to a command that has no effect."""


class HouseholdTask(NamedTuple):
    """One task.

    Args:
        type: one of `TASK_TYPES`.
        thing: the word for the kind of things that are wanted.
        target: the kind of receptacle where they are to be put, or the kind of lamp under which they are looked at.
    """

    type: str
    thing: str
    target: str

    @property
    def need(self) -> str | None:
        """What an appliance has to do to it: `heat`, `cool`, `clean` or nothing."""
        return NEEDS.get(self.type)

    @property
    def mark(self) -> str | None:
        """What has to hold of the thing: `hot`, `cold`, `clean` or nothing."""
        return None if self.need is None else MARKS[self.need]

    @property
    def number(self) -> int:
        """How many things are wanted."""
        return 2 if self.type == _TWO else 1

    @property
    def is_light(self) -> bool:
        """Whether the thing is to be looked at under a lamp."""
        return self.type == _LIGHT


_TRIES = 120
"""How many tasks are tried for each that is wanted, if there are enough others."""

LEAST_LOSS = 0.05
"""The least loss of the plans that were best before a drift, for a task that counts as affected."""


class HouseholdEpisode(CommandEpisode, ABC):
    """The state of an episode: the task, the last answer, and the score.

    Args:
        task: the task.
        wording: in which wording it is said.
    """

    score: float = 0.0

    def __init__(self, task: HouseholdTask, wording: int) -> None:
        self.task, self.wording = task, wording
        self.answer = ""
        self._says = ""
        """The answer, where nothing else in a JSON state shows it."""

    @property
    @abstractmethod
    def task_text(self) -> str:
        """The task in words."""

    @property
    def is_over(self) -> bool:
        """Whether the task is done."""
        return self.score > 0.0

    def lose(self) -> str:
        """Answer as if a command had had no effect."""
        self.answer = self._says = NOTHING
        return NOTHING

    def write_answer(self) -> str:
        """The last answer; before the first command, what is seen first."""
        return self.answer


Episode = TypeVar("Episode", bound=HouseholdEpisode)


class HouseholdEnv(CommandEnv[HouseholdTask, Episode]):
    """The base of environments with ALFWorld's tasks and commands.

    A subclass lists, solves and draws tasks, begins an episode, and brings it to the present knobs.

    Args:
        render_mode: one of `metadata["render_modes"]`, or `None`.
        observation_mode: `text` or `state`.
        pool: the number of recurring tasks; `None` draws from all tasks of the place.
        order: `shuffled` (each task once in every round of the pool) or `fixed`.
        conditions: knob values under each of which every task of the pool can be done.
        affected: whether tasks come first that every change between two conditions affects, or that none does.

    Raises:
        ArgumentError: an argument breaks a rule.
    """

    observation_modes = ("text", "state")
    tasks: ClassVar[NumberedTasks[HouseholdTask]]
    make_setting: ClassVar[Any]
    """A place under knob values, from its number and the values; equal values share one."""
    solve_task: ClassVar[Any]
    """All plans that do a task in the fewest steps, from a setting and the task, up to `limit` steps."""
    replay_plans: ClassVar[Any]
    """The best score that these plans of one setting reach in another, from both settings and the task."""
    model_knobs: ClassVar[tuple[str, ...]]
    """The knobs on which a place depends, beside its number."""
    wordings: ClassVar[int]
    """In how many wordings a task can be said."""
    characters: ClassVar[str]
    """Every character that an observation can have."""
    elsewhere: ClassVar[int]
    """The key of the random stream of tasks in other places."""
    _wording = 0

    def __init__(
        self,
        render_mode: str | None = None,
        *,
        observation_mode: str = "text",
        pool: int | None = None,
        order: str = "shuffled",
        conditions: Sequence[Mapping[str, Value]] = (),
        affected: bool = True,
    ) -> None:
        self._check_conditions(conditions)
        self._conditions: Conditions = freeze_conditions(conditions, self.model_knobs)
        draw = partial(self.draw_tasks, conditions=self._conditions, affected=check_flag("affected", affected))
        tasks = TaskSequence(pool, order, draw, self.tasks.numbers)
        super().__init__(render_mode, observation_mode, tasks, (MAX_LENGTH, MAX_ACTION), self.characters)

    def _check_conditions(self, conditions: Sequence[Mapping[str, Value]]) -> None:
        """Refuse conditions that no place can have."""

    @classmethod
    def suits(cls, setting: Any, task: HouseholdTask) -> bool:
        """Whether a task may be one of those that come first in a pool."""
        return True

    @classmethod
    @lru_cache(maxsize=512)
    def draw_tasks(
        cls,
        place: int,
        count: int,
        seed: int,
        without: tuple[int, ...] = (),
        *,
        conditions: Conditions,
        affected: bool = True,
    ) -> tuple[int, ...]:
        """Draw tasks of a place that can be done with score 1.0 under all conditions.

        Tasks that every drift affects come first: the plans that were best before it reach at most 95 % of the best
        score after it. For a control, those that no drift affects. If there are too few, others fill the pool. Types
        take turns.

        Args:
            place: the number of the place.
            count: how many.
            seed: of the stream.
            without: the numbers of tasks that are excluded.
            conditions: knob values under which each can be done, in temporal order.
            affected: whether every drift has to affect the tasks that come first, or none.

        Returns:
            The numbers of the tasks.

        Raises:
            ArgumentError: if the place has too few such tasks.
            KnobError: if no place can have the values of a condition.
        """
        own = cls.tasks.list_all(place)
        order = take_turns([task.type for task in own], TASK_TYPES, np.random.default_rng(seed))
        settings = [cls.make_setting(place, dict(condition)) for condition in conditions]
        changes = [(old, new) for old, new in pairwise(settings) if old is not new]

        first: list[int] = []
        others: list[int] = []
        for tried, index in enumerate(order):
            if len(first) == count or (tried >= _TRIES * count and len(first) + len(others) >= count):
                break
            number, task = cls.tasks.number(place, index), own[index]
            if number in without or not all(cls.solve_task(one, task).score == 1.0 for one in settings):
                continue
            hits = (cls.replay_plans(old, new, task) <= 1.0 - LEAST_LOSS for old, new in changes)
            is_first = all(cls.suits(one, task) for one in settings) and all(hit == affected for hit in hits)
            (first if is_first else others).append(number)
        found = (first + others)[:count]
        if len(found) < count:
            raise ArgumentError(
                f"{cls.tasks.place} {place} should have {count} tasks that can be done in every phase of the "
                f"schedule. Found {len(found)}"
            )
        return tuple(found)

    def task_options(self) -> dict[str, Any] | None:
        """The reset options with which another instance starts the same task, said in the same words."""
        options = super().task_options()
        return None if options is None else {**options, "wording": self.episode.wording}

    def _make_setting(self, place: int) -> Any:
        """A place under the present knobs."""
        return self.make_setting(place, {name: getattr(self, f"_{name}") for name in self.model_knobs})

    @property
    def task(self) -> HouseholdTask:
        """The task of the present episode. For evaluators.

        Raises:
            StateError: before the first `reset`.
        """
        return self.episode.task

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode, see `CommandEnv.reset`.

        Args:
            seed: seeds the environment's generator, and draws a new pool of tasks and, unless a knob says which, a
                new place.
            options: `goal_index` is the number of the task; by default the next one. `wording` is which of the
                wordings says it, 0 by default.

        Returns:
            What is seen first, and `info`.

        Raises:
            ArgumentError: no task or wording has this number, or there is no such option.
        """
        options = dict(options or {})
        self._wording = check_integer("wording", options.pop("wording", 0), 0, self.wordings - 1)
        return super().reset(seed=seed, options=options)

    def tasks_elsewhere(self, count: int, places: int = 3) -> tuple[int, ...]:
        """The numbers of tasks in other places, which take turns, drawn by the same rules. For evaluators.

        Args:
            count: how many.
            places: in how many places they are.
        """
        stream = self._tasks.stream
        numbers = self._draw_elsewhere(np.random.default_rng(stream(self.elsewhere)), min(places, count))
        found = [
            self.draw_tasks(
                number,
                count // len(numbers) + (position < count % len(numbers)),
                stream(self.elsewhere + position),
                conditions=self._conditions,
            )
            for position, number in enumerate(numbers)
        ]
        return tuple(tasks[turn] for turn in range(max(map(len, found))) for tasks in found if turn < len(tasks))

    @abstractmethod
    def _draw_elsewhere(self, rng: np.random.Generator, count: int) -> list[int]:
        """The numbers of so many other places."""

    def _find_task(self, number: int) -> tuple[int, HouseholdTask]:
        return self.tasks.find(number)

    @abstractmethod
    def _list_actions(self, episode: Episode) -> list[str]:
        """The commands to choose from."""

    def _make_info(self) -> dict[str, Any]:
        episode = self.episode
        actions = [] if episode.is_over else self._list_actions(episode)
        return {"task": episode.task_text, "actions": actions, "score": episode.score}
