"""The oracle of BFCL's tools: the published calls, carried through every drift."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from drift_envs.envs.bfcl import BFCL_KNOBS
from drift_envs.envs.bfcl.env import BfclEpisode, BfclTools, carry_reference, list_tasks
from drift_envs.envs.bfcl.interface import BfclInterface, make_interface
from drift_envs.envs.bfcl.package import FINISH, EngineCall, load_tasks
from drift_envs.errors import ArgumentError
from drift_envs.oracle.base import ChangeEffect, KnobSource, Response


class BfclOracle:
    """The oracle of BFCL's tools.

    A state is the JSON text of an observation that the environment has shown; it stands for the calls by which it was
    reached last. Responses are exact: engines of the oracle's own repeat these calls, and execute the action under the
    knobs of the tick. Actions are the published calls, written for the tick; they score 1.0, which no policy exceeds.
    Other calls can be right too, so that `effect` says what becomes of the published calls alone.

    Args:
        source: the knobs at any tick.
        base: returns the environment whose states it is asked about.
    """

    def __init__(self, source: KnobSource, base: Callable[[], BfclTools]) -> None:
        self._source, self._base = source, base

    def changed(self, state: Any, action: Any, t0: int, t1: int) -> bool:
        """Whether the response to this call differs between the two ticks.

        Args:
            state: the JSON text.
            action: the call.
            t0: one tick.
            t1: the other tick.
        """
        if self._interface(t0) is self._interface(t1):
            return False
        return self.response(state, action, t0) != self.response(state, action, t1)

    def response(self, state: Any, action: Any, tick: int) -> tuple[Response, ...]:
        """The only possible response.

        Args:
            state: the JSON text.
            action: the call.
            tick: the tick.
        """
        episode = self._restore(state, tick)
        episode.act(str(action))
        return (Response(episode.write_state(), episode.score, episode.is_over, 1.0),)

    def holds(self, state: Any, action: Any, outcome: str, ended: bool, tick: int, score: float | None = None) -> bool:
        """Whether this is the response.

        Args:
            state: the JSON text.
            action: the call.
            outcome: the next state as JSON text.
            ended: whether the episode was over.
            tick: the tick.
            score: that of the episode after the call; not compared if it is `None`.
        """
        (found,) = self.response(state, action, tick)
        return (found.state, found.ended) == (outcome, ended) and score in (None, found.score)

    def action(self, state: Any, tick: int, left: int | None = None) -> str:
        """The published call after those that were executed; `finish` at the end of a turn, or off this way.

        Args:
            state: the JSON text.
            tick: the tick.
            left: not used, since the published calls are the only way that is known.
        """
        episode, interface = self._restore(state, tick), self._interface(tick)
        made, reference = episode.engines.history, episode.task.reference
        planned = [call for turn in reference[: episode.turn + 1] for call in turn]
        is_on_way = [call.tool for call in made] == [call.tool for call in planned[: len(made)]]
        if is_on_way and len(made) < len(planned):
            return interface.write(planned[len(made)])
        return interface.write(EngineCall(FINISH.name, {}))

    def value(self, tick: int) -> float:
        """The score of the published calls, carried to this tick: the mean over the recurring tasks.

        Args:
            tick: the tick.
        """
        return self._carry(tick, tick)

    def effect(self, t0: int, t1: int) -> ChangeEffect:
        """What the change from tick `t0` to tick `t1` does to the published calls.

        The magnitude is the share of them whose text differs.

        Args:
            t0: a tick before the drift.
            t1: a tick after it.
        """
        old, new = self._interface(t0), self._interface(t1)
        calls = [call for number in self._numbers() for turn in load_tasks()[number].reference for call in turn]
        differing = sum(old.write(call) != new.write(call) for call in calls)
        carried = self._carry(t0, t1)
        return ChangeEffect(differing / len(calls), self.value(t0), carried, self.value(t1), carried)

    def _carry(self, written: int, sent: int) -> float:
        """The mean score of the published calls, written at one tick and sent at another."""
        old, new, numbers = self._interface(written), self._interface(sent), self._numbers()
        return sum(carry_reference(number, old, new) for number in numbers) / len(numbers)

    def _numbers(self) -> tuple[int, ...]:
        pool = self._base().task_pool
        return list_tasks() if pool is None else pool

    def _interface(self, tick: int) -> BfclInterface:
        knobs = self._source.knobs_at(tick)
        return make_interface({name: knobs[name] for name in BFCL_KNOBS})

    def _restore(self, state: Any, tick: int) -> BfclEpisode:
        """An episode at a state that was shown, under the knobs of the tick."""
        found = self._base().find_state(str(state))
        if found is None:
            raise ArgumentError(f"`state` should be one that this environment has shown. Received {str(state)[:200]!r}")
        number, saved = found
        episode = BfclEpisode(self._interface(tick), load_tasks()[number])
        episode.load(saved)
        return episode


def make_oracle(source: KnobSource, begin: Callable[[], Any], limit: int) -> BfclOracle:
    """The oracle of a drifting environment.

    Args:
        source: the knobs at any tick.
        begin: returns the innermost environment after its first reset.
        limit: the step limit of an episode; the published calls are far below it.
    """
    return BfclOracle(source, begin)
