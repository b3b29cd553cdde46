"""The oracle of drifting facts: the present values, and what can be known of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from drift_envs.envs.facts.world import (
    ASK,
    FACTS_OF_A_WORLD,
    NOTHING,
    PASS,
    TOLD,
    FactsEpisode,
    FactsModel,
    make_model,
)
from drift_envs.errors import ArgumentError
from drift_envs.knobs import Value
from drift_envs.oracle.base import Response
from drift_envs.oracle.recurring import Carried, CommandOracle
from drift_envs.tasks.invented_words import read_words


class FactsOracle(CommandOracle[FactsModel, int]):
    """The oracle of drifting facts, see `CommandOracle`.

    A state is the JSON text of an observation, whose question says which fact it is about. What can be known is what
    was said, and what `ask` tells, which is known on all later days. So the value is 1: regret counts wrong answers and
    the price of asking, and is never negative. `action` answers with the present value if it was said, or has held
    since an earlier day, on which it could be asked for; on the day of a change that nobody says it follows the
    cheapest plan (`plan_asking`).

    Example:
        >>> import gymnasium as gym
        >>> import drift_envs
        >>> env = gym.make("DriftFacts-v0", schedule="facts/implicit")
        >>> _ = env.reset(seed=0)
        >>> oracle = env.get_wrapper_attr("oracle")
        >>> days = [env.reset(options={"drift_tick": 20})[0] for _ in range(9)]
        >>> day = next(day for day in days if not oracle.knows(day, 20))
        >>> oracle.value(20), oracle.action(day, 20), oracle.action(day, 21)
        (1.0, 'ask', 'kafotu')
    """

    place_knob = "world"
    read_by = ()
    compares_scores = True

    def _make_setting(self, place: int, knobs: Mapping[str, Value]) -> FactsModel:
        return make_model(place, knobs)

    def action(self, state: Any, tick: int, left: int | None = None) -> str:
        """The present value if it can be known; else what the cheapest plan does next.

        Args:
            state: the JSON text.
            tick: the tick.
            left: the remaining steps (default: the limit).
        """
        episode, model = self._restore(state, tick), self.setting(tick)
        if self._is_known(model, episode.number, tick):
            return model.value(episode.number)
        told = [(read_words(one) or [NOTHING])[-1] for one in episode.heard if one.startswith(TOLD)]
        asks = plan_asking(model.price, model.lost, len(told), (self._limit if left is None else left) - 1)
        if told and (episode.asked > len(told) or asks <= 0):
            return told[-1]  # two equal answers, of which the later one stands last, are true
        return ASK if asks > 0 else PASS

    def truth(self, state: Any, tick: int) -> str:
        """The present value of the fact in question, whether it can be known or not: what an inspector shows.

        Args:
            state: the JSON text.
            tick: the tick.
        """
        return self.setting(tick).value(self._restore(state, tick).number)

    def knows(self, state: Any, tick: int) -> bool:
        """Whether the present value was said by a tick, or could be asked for before it.

        Args:
            state: the JSON text.
            tick: the tick.
        """
        return self._is_known(self.setting(tick), self._restore(state, tick).number, tick)

    def _is_known(self, model: FactsModel, number: int, tick: int) -> bool:
        return model.is_said(number) or (tick > 0 and self.setting(tick - 1).version(number) == model.version(number))

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
        return self._positions(setting.world, FACTS_OF_A_WORLD)

    def _task_value(self, setting: FactsModel, task: int, lost: float) -> float:
        return 1.0

    def _carry(self, old: FactsModel, new: FactsModel, task: int) -> Carried:
        same = old.value(task) == new.value(task)
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


@lru_cache(maxsize=4096)
def plan_asking(price: float, lost: float, told: int, left: int) -> float:
    """What asking once more is worth, beside answering or passing at once, where no two answers were equal so far.

    An answer is true with probability q = 1 - lost; false ones differ from each other. After n different answers each
    is the present value with probability q / (n q + lost), and the next one is equal to one of them, and then true,
    with probability n q^2 / (n q + lost).

    Args:
        price: of an answer.
        lost: the probability that an answer is false.
        told: the number n of answers so far.
        left: how often can be asked before the last step, which answers.

    Returns:
        The gain in expected score; positive if it pays to ask.

    Example:
        >>> round(plan_asking(0.1, 0.0, 0, 29), 3), round(plan_asking(0.1, 0.0, 1, 28), 3)
        (0.9, -0.1)
        >>> [round(plan_asking(0.02, 0.3, told, 10), 3) for told in range(3)]
        [0.943, 0.263, 0.555]
    """
    if left < 1:
        return -price
    q = 1.0 - lost
    weight = told * q + lost
    now = q / weight if told else 0.0
    agree = told * q * q / weight if told else 0.0
    then = q / ((told + 1) * q + lost) + max(plan_asking(price, lost, told + 1, left - 1), 0.0)
    return agree + (1.0 - agree) * then - price - now


make_oracle = FactsOracle.of
