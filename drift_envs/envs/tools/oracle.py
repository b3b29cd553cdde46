"""The oracle of a drifting service desk: cheapest plans of calls by search."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from drift_envs.envs.tools.database import DeskState
from drift_envs.envs.tools.desk import DESK_KNOBS, Desk, make_desk
from drift_envs.envs.tools.episode import (
    START,
    DeskEpisode,
    find_request,
    key_of,
    number_requests,
    replay_plans,
    restore_episode,
    solve_request,
)
from drift_envs.envs.tools.requests import ServiceRequest, find_goal, list_requests, score
from drift_envs.errors import ArgumentError
from drift_envs.knobs import Value
from drift_envs.oracle.base import completion_probability
from drift_envs.oracle.recurring import Carried, CommandOracle

SAMPLE = 30
"""The number of requests that are evaluated if the environment draws from all requests of the shop."""


class DeskOracle(CommandOracle[Desk, ServiceRequest]):
    """The oracle of a drifting service desk, see `CommandOracle`.

    A state is the JSON text of an observation; shop and request in it say which. A call is executed after the calls
    that the state shows.

    Example:
        >>> import gymnasium as gym
        >>> import drift_envs
        >>> env = gym.make("DriftTools-v0", schedule="tools/explicit", text=True)
        >>> state, info = env.reset(seed=0)
        >>> oracle = env.get_wrapper_attr("oracle")
        >>> done = False
        >>> while not done:
        ...     state, reward, done, _, info = env.step(oracle.action(state, 0))
        >>> reward, oracle.value(0), oracle.effect(0, 20).loss
        (1.0, 1.0, 1.0)
    """

    compares_scores = True
    repeats_lost = True
    loses_all = True
    place_knob = "shop"
    read_by = DESK_KNOBS

    def _make_setting(self, place: int, knobs: Mapping[str, Value]) -> Desk:
        return make_desk(place, knobs)

    def action(self, state: Any, tick: int, left: int | None = None) -> str:
        """The first call of a cheapest plan from here; `finish` where the goal cannot be reached any more.

        Args:
            state: the JSON text.
            tick: the tick.
            left: the remaining calls (default: the limit).
        """
        episode = self._restore(state, tick)
        desk, start = episode.desk, key_of(episode.desk, episode.state)
        request = episode.request._replace(text="")
        plans = solve_request(desk, request, start, self._limit if left is None else left)
        return plans.best[key_of(desk, start)][0] if plans.score else desk.interface.write("finish", {})

    def changed(self, state: Any, action: Any, t0: int, t1: int) -> bool:
        """Whether the response to this call differs between the two ticks, or only one of them has this state.

        A state shows calls and what they have returned. A tick has it if it answers these calls in the same way.

        Args:
            state: the JSON text.
            action: the call.
            t0: one tick.
            t1: the other tick.
        """
        return super().changed(state, action, t0, t1) or self._has(state, t0) != self._has(state, t1)

    def _has(self, state: Any, tick: int) -> bool:
        """Whether the calls that the state shows lead to it."""
        shown = self._restore(state, tick)
        episode = DeskEpisode(shown.desk, shown.request)
        for call in shown.calls:
            episode.act(call)
        return (episode.calls, episode.records) == (shown.calls, shown.records)

    def _place(self, setting: Desk) -> int:
        return setting.database.number

    def _tasks(self, setting: Desk) -> list[ServiceRequest]:
        shop = setting.database.number
        pool = self._pool(shop)
        numbers = number_requests(shop)[:SAMPLE] if pool is None else pool
        return [find_request(number)[1]._replace(text="") for number in numbers]

    def _task_value(self, setting: Desk, task: ServiceRequest, lost: float) -> float:
        plans = solve_request(setting, task, START, self._limit)
        return plans.score * completion_probability(plans.length, self._limit, lost)

    def _carry(self, old: Desk, new: Desk, task: ServiceRequest) -> Carried:
        """The magnitude counts listed calls with another answer, effect or score."""
        plans, differing, compared, state = solve_request(old, task, START, self._limit), 0, 0, START
        while key_of(old, state) in plans.best:
            for call in old.list_calls(state.seen, task.stated):
                compared += 1
                differing += _react(old, task, state, call) != _react(new, task, state, call)
            state, _ = old.call(state, plans.best[key_of(old, state)][0])
        return Carried(replay_plans(old, new, task, self._limit), plans.length, differing, compared)

    def _restore(self, state: Any, tick: int) -> DeskEpisode:
        """An episode at a state, at the desk of the tick."""
        try:
            shown = json.loads(state)
            number, text = int(shown["shop"]), str(shown["request"])
            request = _by_text(number)[text]
        except (TypeError, KeyError, ValueError) as error:
            raise ArgumentError(
                f"`state` should be a JSON text with `shop` and a `request` of it. Received {str(state)[:200]!r}"
            ) from error
        knobs = self._source.knobs_at(tick)
        self._note(knobs)
        others = (make_desk(number, values) for values in self._known.values())
        return restore_episode(make_desk(number, knobs), request, state, others=tuple(others))


@lru_cache(maxsize=64)
def _by_text(shop: int) -> dict[str, ServiceRequest]:
    """The requests of a shop by their words."""
    return {request.text: request for held_out in (False, True) for request in list_requests(shop, held_out)}


def _react(desk: Desk, request: ServiceRequest, state: DeskState, call: str) -> tuple[Any, ...]:
    """The answer to a call, what it changes, and the score."""
    after, answer = desk.call(state, call)
    ended = score(desk.database, request, find_goal(request, desk.rules), after) if after.ended else 0.0
    return answer.content, after.changes, ended


make_oracle = DeskOracle.of
