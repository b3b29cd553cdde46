"""Environments whose tools and tasks are a package's: one episode, and the environment.

A package's published calls are the reference: carried through a drift, they solve their task.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from drift_envs.checks import check_flag, check_integer
from drift_envs.errors import ArgumentError
from drift_envs.knobs import Value
from drift_envs.tasks.package_tools import PackageCall, PackageInterface, is_error
from drift_envs.tasks.recurring_tasks import EpisodeEnv, TaskSequence
from drift_envs.tasks.tool_calls import CHARACTERS, MOST_CHARACTERS, Refusal


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
    _tasks: TaskSequence
    has_fixed_state = True
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

    def share_left_at_once(self) -> float:
        """The share of tasks that score 1 if every request is ended at once, under the present knobs. For evaluators.

        A mean score that is no higher shows nothing of an agent.

        Returns:
            0 to 1, of `task_pool`, or of all tasks of `place` where there is no pool.
        """
        tasks = self.task_pool or self.list_tasks(self.place)
        interface = self._make_interface(self.read_knobs())
        return sum(self._is_solved_at_once(number, interface) for number in tasks) / len(tasks)

    @classmethod
    @lru_cache(maxsize=8192)
    def _is_solved_at_once(cls, number: int, interface: Any) -> bool:
        episode = cls.episode_class(interface, cls.load_tasks()[number])
        finish = interface.write(PackageCall("finish", {}))
        while not episode.is_over:
            episode.act(finish)
        return bool(episode.score == 1.0)

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
