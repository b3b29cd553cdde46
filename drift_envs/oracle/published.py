"""The oracle of environments with a package's tools: the published calls, carried through every drift."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from drift_envs.oracle.base import KnobSource, completion_probability
from drift_envs.oracle.recurring import Carried, EpisodeOracle
from drift_envs.tasks.package_env import PackageToolsEnv
from drift_envs.tasks.package_tools import PackageInterface


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

    def setting(self, tick: int) -> PackageInterface:
        """The tools at a tick.

        Args:
            tick: the tick.
        """
        return self._base().interface_class.of(self._source.knobs_at(tick))

    def _tasks(self, setting: PackageInterface) -> Sequence[int]:
        base = self._base()
        pool = base.task_pool
        return base.list_tasks(setting.place) if pool is None else pool

    def _task_value(self, setting: PackageInterface, task: int, lost: float) -> float:
        base = self._base()
        length = len(base.write_reference(task, setting))
        return base.carry_reference(task, setting, setting) * completion_probability(length, self._limit, lost)

    def _carry(self, old: PackageInterface, new: PackageInterface, task: int) -> Carried:
        """The magnitude counts calls that only one of the two plans has."""
        base = self._base()
        before, after = base.write_reference(task, old), base.write_reference(task, new)
        compared = max(len(before), len(after))
        common = sum((Counter(before) & Counter(after)).values())
        return Carried(base.carry_reference(task, old, new), len(before), compared - common, compared)

    def _restore(self, state: Any, tick: int) -> Any:
        """An episode at a state that was shown, under the knobs of the tick."""
        return self._base().restore_episode(str(state), self._source.knobs_at(tick))
