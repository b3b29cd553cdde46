"""The oracle of drifting facts: the present values, and what can be known of them.

* `FactsOracle` - exact responses, best commands and values at any tick
* `make_oracle` - the same for a drifting environment, as its declaration names it
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from drift_envs.envs.facts.episode import ASK, PASS, FactsEpisode
from drift_envs.envs.facts.model import FACTS_OF_A_WORLD, FactsModel, make_model
from drift_envs.errors import ArgumentError
from drift_envs.oracle.base import KnobSource, Response
from drift_envs.oracle.recurring import Carried, CommandOracle
from drift_envs.task_sequence import MOST_TASKS


class FactsOracle(CommandOracle[FactsModel, int]):
    """The oracle of drifting facts.

    A state is the JSON text of an observation, whose question says which fact it is about. What can be known of a
    fact is its present value, if it was said, and else what `ask` tells: after a change that nobody says the best
    policy asks once, if that is worth its price. The value counts what can be known; `action` answers with the
    present value once it was said or told.

    Args:
        source: the knobs at any tick.
        pool: returns the numbers of the recurring questions of a world, or `None` for all.
        drawn: returns the number of the world that the seed has drawn, for knob values that leave it to the seed.
        limit: the maximum number of steps of an episode.

    Raises:
        ArgumentError: `limit` is not positive.

    Example:
        >>> import gymnasium as gym
        >>> import drift_envs
        >>> env = gym.make("DriftFacts-v0", schedule="facts/implicit")
        >>> state, _ = env.reset(seed=0)
        >>> oracle = env.get_wrapper_attr("oracle")
        >>> oracle.value(0), round(oracle.value(20), 2), oracle.action(state, 40)
        (1.0, 0.95, 'ask')
        >>> env.step(oracle.action(state, 0))[1]
        1.0
    """

    read_by = ()
    compares_scores = True

    def setting(self, tick: int) -> FactsModel:
        """The world at a tick."""
        knobs = self._source.knobs_at(tick)
        return make_model(knobs["world"] or self._drawn(), knobs)

    def action(self, state: Any, tick: int, left: int | None = None) -> str:
        """The present value; before it, `ask`, if nobody has said it and that is worth its price.

        Args:
            state: the JSON text.
            tick: the tick.
            left: the remaining steps (default: the limit).
        """
        episode = self._restore(state, tick)
        if episode.model.is_said(episode.number) or episode.asked or left == 1:
            return episode.model.value(episode.number)
        return ASK if _worth_of_asking(episode.model) > 0 else PASS

    def knows(self, state: Any, tick: int) -> bool:
        """Whether the present value was said by a tick, so that no policy has to ask for it.

        Args:
            state: the JSON text.
            tick: the tick.
        """
        episode = self._restore(state, tick)
        return episode.model.is_said(episode.number)

    def response(self, state: Any, action: Any, tick: int) -> tuple[Response, ...]:
        """All possible responses, most probable first; only answers to `ask` can be false.

        Args:
            state: the JSON text.
            action: the action.
            tick: the tick.
        """
        if str(action).strip().lower() == ASK:
            true, false = super().response(state, action, tick) if self._lost(tick) else (None, None)
            if true is not None and false is not None:
                score = max(true.score, false.score, key=abs)
                return true._replace(score=score), false._replace(score=score)
        return (Response(*self._respond(state, action, tick), 1.0),)

    def changed(self, state: Any, action: Any, t0: int, t1: int) -> bool:
        """Whether the response to this action differs between the two ticks.

        Args:
            state: the JSON text.
            action: the action.
            t0: one tick.
            t1: the other tick.
        """
        return self.response(state, action, t0) != self.response(state, action, t1)

    def _place(self, setting: FactsModel) -> int:
        return setting.world

    def _tasks(self, setting: FactsModel) -> list[int]:
        pool = self._pool(setting.world)
        return list(range(FACTS_OF_A_WORLD)) if pool is None else [number % MOST_TASKS for number in pool]

    def _task_value(self, setting: FactsModel, task: int, lost: float) -> float:
        return 1.0 if setting.is_said(task) else _worth_of_asking(setting)

    def _carry(self, old: FactsModel, new: FactsModel, task: int) -> Carried:
        same = old.value(task) == new.value(task)
        if not old.is_said(task):  # the plan was to ask, which still tells the present value
            return Carried(_worth_of_asking(new), 2, int(not same), 1)
        return Carried(float(same), 1, 0 if same else 3, 3)

    def _restore(self, state: Any, tick: int) -> FactsEpisode:
        """An episode at a state, in the world of the tick."""
        model = self.setting(tick)
        try:
            shown = json.loads(state)
            day, asked, question = int(shown["day"]), int(shown["asked"]), str(shown["question"])
            heard = [str(one) for one in shown["heard"]]
        except (TypeError, KeyError, ValueError) as error:
            raise ArgumentError(
                f"`state` should be a JSON text with day, heard, asked and question. Received {str(state)[:200]!r}"
            ) from error
        number = model.find(question)
        if number is None:
            raise ArgumentError(f"`state` should have a question of world {model.world}. Received {question!r}")
        episode = FactsEpisode(model, number, day, heard, question)
        episode.asked, episode.score = asked, -model.price * asked
        return episode


def _worth_of_asking(setting: FactsModel) -> float:
    """The expected score of asking once and answering what is told."""
    return max(1.0 - setting.lost - setting.price, 0.0)


def make_oracle(source: KnobSource, begin: Callable[[], Any], limit: int) -> FactsOracle:
    """The oracle of a drifting environment.

    Args:
        source: the knobs at any tick.
        begin: returns the innermost environment after its first reset.
        limit: the step limit of an episode.
    """
    return FactsOracle(source, lambda number: begin().pool_of(number), lambda: begin().drawn_place, limit)
