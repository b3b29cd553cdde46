"""The oracle of environments with a package's tools: the published calls, carried through every drift."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from drift_envs.oracle.base import KnobSource, completion_probability
from drift_envs.oracle.recurring import Carried, EpisodeOracle
from drift_envs.package_tools import PackageInterface, PackageToolsEnv


class PublishedOracle(EpisodeOracle[PackageInterface, int]):
    """The oracle of environments with a package's tools.

    A state is the JSON text of an observation that the environment has shown; it stands for the calls by which it was
    reached last. Responses are exact: an engine of the oracle's own repeats these calls, and executes the action under
    the knobs of the tick. Actions are the published calls, written for the tick; they score 1.0, which no policy
    exceeds. Other calls can be right too, so that `effect` says what becomes of the published ones alone.

    Args:
        source: the knobs at any tick.
        base: returns the environment whose states it is asked about.
        limit: the step limit of an episode.

    Raises:
        ArgumentError: `limit` is not positive.
    """

    compares_scores = True
    repeats_lost = True

    def __init__(self, source: KnobSource, base: Callable[[], PackageToolsEnv[Any]], limit: int) -> None:
        super().__init__(source, limit)
        self._base = base

    @abstractmethod
    def _write_plan(self, task: int, setting: Any) -> Sequence[str]:
        """The published calls of a task as texts, to its end."""

    @abstractmethod
    def _replay(self, task: int, old: Any, new: Any) -> float:
        """The score of a task's published calls, written for one interface and sent to another."""

    def setting(self, tick: int) -> PackageInterface:
        """The tools at a tick.

        Args:
            tick: the tick.
        """
        return self._base().interface_class.of(self._source.knobs_at(tick))

    def _list_tasks(self, setting: Any) -> Sequence[int]:
        """All tasks that can be scored."""
        found: Sequence[int] = self._base().list_tasks()
        return found

    def _tasks(self, setting: PackageInterface) -> Sequence[int]:
        pool = self._base().task_pool
        return self._list_tasks(setting) if pool is None else pool

    def _task_value(self, setting: PackageInterface, task: int, lost: float) -> float:
        length = len(self._write_plan(task, setting))
        return self._replay(task, setting, setting) * completion_probability(length, self._limit, lost)

    def _carry(self, old: PackageInterface, new: PackageInterface, task: int) -> Carried:
        """The magnitude counts calls that only one of the two plans has."""
        before, after = self._write_plan(task, old), self._write_plan(task, new)
        compared = max(len(before), len(after))
        common = sum((Counter(before) & Counter(after)).values())
        return Carried(self._replay(task, old, new), len(before), compared - common, compared)

    def _restore(self, state: Any, tick: int) -> Any:
        """An episode at a state that was shown, under the knobs of the tick."""
        return self._base().restore_episode(str(state), self._source.knobs_at(tick))
