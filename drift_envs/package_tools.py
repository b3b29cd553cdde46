"""Environments whose tasks and tools are those of a package: calls as JSON, and evaluators that find a state again.

* `PackageToolsEnv` - the base class
* `ToolsEpisode` - the protocol of its episodes
"""

from __future__ import annotations

import string
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from drift_envs.checks import check_flag, check_integer
from drift_envs.knobs import Value
from drift_envs.recurring_tasks import EpisodeEnv, TaskEpisode
from drift_envs.task_sequence import TaskSequence
from drift_envs.tool_calls import MOST_CHARACTERS

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
