"""The oracle of a drifting service desk: cheapest plans of calls by search.

* `DeskOracle` - exact responses, best calls and values at any tick
* `make_oracle` - the same for a drifting environment, as its declaration names it
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from drift_envs.checks import check_integer
from drift_envs.envs.tools.desk import DESK_KNOBS, Desk, make_desk
from drift_envs.envs.tools.episode import DeskEpisode, restore_episode
from drift_envs.envs.tools.pool import find_request, number_request
from drift_envs.envs.tools.requests import ServiceRequest, find_goal, list_requests, score
from drift_envs.envs.tools.search import LIMIT, START, key_of, replay_plans, solve_request
from drift_envs.envs.tools.state import DeskState
from drift_envs.errors import ArgumentError
from drift_envs.knobs import Value
from drift_envs.oracle.base import ChangeEffect, KnobSource, Response, completion_probability, order_responses

SAMPLE = 30
"""The number of requests that are evaluated if the environment draws from all requests of the shop."""


class _Outcome(NamedTuple):
    state: str
    score: float
    ended: bool


class DeskOracle:
    """The oracle of a drifting service desk.

    A state is the JSON text of an observation; shop and request in it say which. Responses are exact: the
    environment's own tools execute the call under the knobs of the tick, after the calls that the state shows. Plans
    are found by breadth-first search, and cached by desk and request. A value is the mean over the recurring requests
    of the highest score that can be reached within the limit; with `transient`, of a policy that repeats lost calls.

    Args:
        source: the knobs at any tick.
        pool: returns the numbers of the recurring requests of a shop, or `None` for all requests.
        drawn: returns the number of the shop that the seed has drawn, for knob values that leave it to the seed.
        limit: the maximum number of calls of an episode.

    Raises:
        ArgumentError: `limit` is not positive.

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

    def __init__(
        self,
        source: KnobSource,
        pool: Callable[[int], Sequence[int] | None],
        drawn: Callable[[], int],
        limit: int = LIMIT,
    ) -> None:
        self._source, self._pool, self._drawn = source, pool, drawn
        self._limit = check_integer("limit", limit, 1)
        self._known: dict[Hashable, dict[str, Value]] = {}
        """The knob values of all ticks that were asked about: states have the calls of their time."""
        self._compared: dict[tuple[Desk, Desk, ServiceRequest], tuple[int, int]] = {}

    def changed(self, state: Any, action: Any, t0: int, t1: int) -> bool:
        """Whether the response to this call differs between the two ticks.

        Args:
            state: the JSON text.
            action: the call.
            t0: one tick.
            t1: the other tick.
        """
        before, after = self._source.knobs_at(t0), self._source.knobs_at(t1)
        if before == after:
            return False
        if before["transient"] != after["transient"]:
            return True
        self._note(before)
        self._note(after)
        return self._respond(state, action, t0) != self._respond(state, action, t1)

    def response(self, state: Any, action: Any, tick: int) -> tuple[Response, ...]:
        """All possible responses, most probable first.

        Args:
            state: the JSON text.
            action: the call.
            tick: the tick.
        """
        lost = self._source.knobs_at(tick)["transient"]
        answer = self._respond(state, action, tick)
        episode = self._restore(state, tick)
        episode.lose()
        return order_responses(Response(*answer, 1.0 - lost), Response(episode.write_state(), 0.0, False, lost))

    def holds(self, state: Any, action: Any, outcome: str, ended: bool, tick: int, score: float | None = None) -> bool:
        """Whether this is the true response; lost calls (`transient`) are not.

        Args:
            state: the JSON text.
            action: the call.
            outcome: the next state as JSON text.
            ended: whether the episode was over.
            tick: the tick.
            score: that of the episode after the call; not compared if it is `None`.
        """
        answer = self._respond(state, action, tick)
        return (answer.state, answer.ended) == (outcome, ended) and score in (None, answer.score)

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

    def value(self, tick: int) -> float:
        """The expected score of the best policy within the step limit.

        Args:
            tick: the tick.
        """
        desk, lost = self._desk(tick), self._source.knobs_at(tick)["transient"]
        requests = self._requests(desk)
        return sum(self._value(desk, request, lost) for request in requests) / len(requests)

    def effect(self, t0: int, t1: int) -> ChangeEffect:
        """What the change from tick `t0` to tick `t1` does.

        All cheapest plans of `t0` are replayed at `t1`, call by call, and the best one counts. Lost calls are repeated
        if calls were lost at `t0` too; plans of a time when none was lost do not foresee it. The magnitude is the share
        of listed calls with another answer, effect or score, in the states of a cheapest plan.

        Args:
            t0: a tick before the drift.
            t1: a tick after it.
        """
        old, new = self._desk(t0), self._desk(t1)
        before, after = self.value(t0), self.value(t1)
        lost = [self._source.knobs_at(tick)["transient"] for tick in (t0, t1)]
        if old is new and lost[0] == lost[1]:
            return ChangeEffect(0.0, before, before, after, before)
        if old.database.number != new.database.number:  # another shop has other requests, for which there were no plans
            return ChangeEffect(1.0, before, 0.0, after, 0.0)
        requests = self._requests(old)
        carried = sum(self._carry(old, new, request, *lost) for request in requests) / len(requests)
        differing = compared = 0
        for request in requests:
            one, other = self._compare(old, new, request)
            differing, compared = differing + one, compared + other
        magnitude = 1.0 if lost[0] != lost[1] else differing / compared
        return ChangeEffect(magnitude, before, carried, after, carried)

    def _desk(self, tick: int) -> Desk:
        knobs = self._source.knobs_at(tick)
        return make_desk(knobs["shop"] or self._drawn(), knobs)

    def _requests(self, desk: Desk) -> list[ServiceRequest]:
        shop = desk.database.number
        pool = self._pool(shop)
        if pool is None:
            pool = [number_request(shop, index) for index in range(min(SAMPLE, len(list_requests(shop))))]
        return [find_request(number)[1]._replace(text="") for number in pool]

    def _value(self, desk: Desk, request: ServiceRequest, lost: float) -> float:
        plans = solve_request(desk, request, START, self._limit)
        return plans.score * (completion_probability(plans.length, self._limit, lost) if lost else 1.0)

    def _carry(self, old: Desk, new: Desk, request: ServiceRequest, before: float, after: float) -> float:
        """The score at the new desk of the plans that were cheapest at the old one."""
        best = replay_plans(old, new, request, self._limit)
        if not best or not after:
            return best
        length = solve_request(old, request, START, self._limit).length
        return best * (completion_probability(length, self._limit, after) if before else (1.0 - after) ** length)

    def _compare(self, old: Desk, new: Desk, request: ServiceRequest) -> tuple[int, int]:
        """The number of calls with another response in the states of a plan, and the number of calls."""
        key = (old, new, request)
        if key not in self._compared:
            differing, compared, state = 0, 0, START
            plans = solve_request(old, request, START, self._limit)
            while key_of(old, state) in plans.best:
                for call in old.list_calls(state.seen, request.stated):
                    compared += 1
                    differing += _react(old, request, state, call) != _react(new, request, state, call)
                state, _ = old.call(state, plans.best[key_of(old, state)][0])
            self._compared[key] = differing, compared
        return self._compared[key]

    def _respond(self, state: Any, action: Any, tick: int) -> _Outcome:
        episode = self._restore(state, tick)
        episode.act(action)
        return _Outcome(episode.write_state(), episode.score, episode.is_over)

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

    def _note(self, knobs: Mapping[str, Value]) -> None:
        values = {name: knobs[name] for name in DESK_KNOBS}
        self._known.setdefault(tuple(values.items()), values)


@lru_cache(maxsize=64)
def _by_text(shop: int) -> dict[str, ServiceRequest]:
    """The requests of a shop by their words."""
    return {request.text: request for held_out in (False, True) for request in list_requests(shop, held_out)}


def _react(desk: Desk, request: ServiceRequest, state: DeskState, call: str) -> tuple[Any, ...]:
    """The answer to a call, what it changes, and the score."""
    after, answer = desk.call(state, call)
    ended = score(desk.database, request, find_goal(request, desk.rules), after) if after.ended else 0.0
    return answer.content, after.changes, ended


def make_oracle(source: KnobSource, begin: Callable[[], Any], limit: int) -> DeskOracle:
    """The oracle of a drifting environment.

    Args:
        source: the knobs at any tick.
        begin: returns the innermost environment after its first reset.
        limit: the step limit of an episode.
    """
    return DeskOracle(source, lambda number: begin().pool_of(number), lambda: begin().drawn_shop, limit)
