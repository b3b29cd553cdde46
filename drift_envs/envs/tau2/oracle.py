"""The oracle of tau2-bench's domains: the published actions, carried through every drift."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from drift_envs.envs.tau2.env import (
    Tau2Episode,
    Tau2Tools,
    carry_reference,
    find_task,
    list_tasks,
    plan_reference,
    replay,
)
from drift_envs.envs.tau2.interface import Tau2Interface, make_interface
from drift_envs.errors import ArgumentError
from drift_envs.oracle.base import KnobSource, completion_probability
from drift_envs.oracle.recurring import Carried, RecurringTasksOracle, TrueResponse, execute


class Tau2Oracle(RecurringTasksOracle[Tau2Interface, int]):
    """The oracle of tau2-bench's domains.

    A state is the JSON text of an observation that the environment has shown; it stands for the calls by which it was
    reached last. Responses are exact: an engine of the oracle's own repeats these calls, and executes the action under
    the knobs of the tick. Actions are the published ones, written for the tick; they score 1.0, which no policy
    exceeds. Other calls can be right too, so that `effect` says what becomes of the published actions alone.

    Args:
        source: the knobs at any tick.
        base: returns the environment whose states it is asked about.
        limit: the step limit of an episode.
    """

    compares_scores = True

    def __init__(self, source: KnobSource, base: Callable[[], Tau2Tools], limit: int) -> None:
        super().__init__(source, limit)
        self._base = base

    def setting(self, tick: int) -> Tau2Interface:
        """The tools at a tick.

        Args:
            tick: the tick.
        """
        return make_interface(self._source.knobs_at(tick))

    def action(self, state: Any, tick: int, left: int | None = None) -> str:
        """The published action after those that were executed; `finish` at the end, or off this way.

        Args:
            state: the JSON text.
            tick: the tick.
            left: not used, since the published actions are the only way that is known.
        """
        episode = self._restore(state, tick)
        planned = plan_reference(episode.task.number, episode.interface)
        made = len(episode.done)
        is_on_way = list(episode.done) == planned[:made] and made < len(planned)
        return episode.interface.write(planned[made] if is_on_way else planned[-1])

    def _tasks(self, setting: Tau2Interface) -> Sequence[int]:
        pool = self._base().task_pool
        return list_tasks(setting.domain) if pool is None else pool

    def _task_value(self, setting: Tau2Interface, task: int, lost: float) -> float:
        length = len(carry_reference(task, setting))
        repeated = completion_probability(length, self._limit, lost) if lost else 1.0
        return replay(task, setting, setting) * repeated

    def _carry(self, old: Tau2Interface, new: Tau2Interface, task: int) -> Carried:
        """The magnitude counts calls whose text differs."""
        before, after = carry_reference(task, old), carry_reference(task, new)
        differing = len(set(before) ^ set(after)) + abs(len(before) - len(after))
        return Carried(replay(task, old, new), len(before), min(differing, len(before)), len(before))

    def _score(self, carried: Carried, before: float, after: float) -> float:
        """Lost calls are repeated if calls were lost before too; plans of a time when none was do not foresee it."""
        if not after:
            return carried.score
        repeated = completion_probability(carried.length, self._limit, after)
        return carried.score * (repeated if before else (1.0 - after) ** carried.length)

    def _respond(self, state: Any, action: Any, tick: int) -> TrueResponse:
        return execute(self._restore(state, tick), str(action))

    def _lose(self, state: Any, tick: int) -> str:
        episode = self._restore(state, tick)
        episode.lose()
        return episode.write_state()

    def _restore(self, state: Any, tick: int) -> Tau2Episode:
        """An episode at a state that was shown, under the knobs of the tick."""
        found = self._base().find_state(str(state))
        if found is None:
            raise ArgumentError(f"`state` should be one that this environment has shown. Received {str(state)[:200]!r}")
        task = find_task(found[0])
        episode = Tau2Episode(make_interface(self._source.knobs_at(tick), task.domain), task)
        episode.load(found[1])
        return episode


def make_oracle(source: KnobSource, begin: Callable[[], Any], limit: int) -> Tau2Oracle:
    """The oracle of a drifting environment.

    Args:
        source: the knobs at any tick.
        begin: returns the innermost environment after its first reset.
        limit: the step limit of an episode.
    """
    return Tau2Oracle(source, begin, limit)
