"""The oracle of the task pages of MiniWoB++, which repeats episodes in a page of its own.

* `PageOracle` - exact responses; actions and values of the scripted solver at any tick
* `make_oracle` - the same for a drifting environment, as its declaration names it
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from drift_envs.checks import check_integer
from drift_envs.envs.miniwob.env import MiniWoB, PageRoute
from drift_envs.envs.miniwob.knobs import to_layer
from drift_envs.envs.miniwob.oracle_pages import PageSolver, read_words
from drift_envs.envs.miniwob.text import write_state
from drift_envs.errors import ArgumentError, StateError
from drift_envs.knobs import Value
from drift_envs.oracle.base import ChangeEffect, KnobSource, Response, completion_probability, order_responses

SAMPLE = 4
"""The number of tasks that are evaluated if tasks do not recur."""

NO_ACTION = "click[]"
"""An action that changes nothing."""


class _Reply(NamedTuple):
    state: str
    score: float
    ended: bool


class _Plan(NamedTuple):
    """What the solver does in a task.

    Args:
        actions: its actions.
        states: the state before each of them.
        score: what they end with.
    """

    actions: tuple[str, ...]
    states: tuple[str, ...]
    score: float


class PageOracle:
    """The oracle of a drifting task page.

    A state is the JSON text of an observation that the environment has shown, or that the solver meets; it stands for
    the way on which it was reached last. Responses are exact: a page of the oracle's own repeats that way, takes the
    settings of the tick, and carries out the action. Actions are those of `PageSolver`. The score is the page's own,
    1 for success; a solver that succeeds is optimal, since no score is higher and steps cost nothing. Values are
    means over the recurring tasks; with `transient` they are those of repeating lost actions.

    Args:
        source: the knobs at any tick.
        base: returns the environment whose episodes it repeats; it is called at first use.
        limit: the maximum number of steps of an episode.

    Raises:
        ArgumentError: `limit` is not positive.
    """

    def __init__(self, source: KnobSource, base: Callable[[], MiniWoB], limit: int) -> None:
        self._source, self._base = source, base
        self._limit = check_integer("limit", limit, 1)
        self._own: MiniWoB | None = None
        self._replies: dict[tuple[str, str, str], _Reply] = {}
        self._actions: dict[tuple[str, str], str] = {}
        self._plans: dict[tuple[int, str], _Plan] = {}

    def changed(self, state: Any, action: Any, t0: int, t1: int) -> bool:
        """Whether the responses to this action in this state differ between two ticks.

        Args:
            state: the JSON text.
            action: the action in words.
            t0: one tick.
            t1: the other tick.
        """
        before, after = self._source.knobs_at(t0), self._source.knobs_at(t1)
        if before["transient"] != after["transient"]:
            return True
        if _key(before) == _key(after):
            return False
        return self._respond(state, action, t0) != self._respond(state, action, t1)

    def response(self, state: Any, action: Any, tick: int) -> tuple[Response, ...]:
        """All possible responses, most probable first.

        Args:
            state: the JSON text.
            action: the action in words.
            tick: the tick.
        """
        lost = float(self._source.knobs_at(tick)["transient"])
        kept = Response(*self._respond(state, action, tick), 1.0 - lost)
        return order_responses(kept, Response(str(state), 0.0, False, lost))

    def holds(self, state: Any, action: Any, outcome: str, ended: bool, tick: int, score: float | None = None) -> bool:
        """Whether this is the true response; lost actions (`transient`) are not.

        Args:
            state: the JSON text.
            action: the action in words.
            outcome: the next state as JSON text.
            ended: whether the episode was over.
            tick: the tick.
            score: the score of the episode after it, which the next state does not show; not compared if not given.
        """
        reply = self._respond(state, action, tick)
        return (reply.state, reply.ended) == (outcome, ended) and score in (None, reply.score)

    def action(self, state: Any, tick: int, left: int | None = None) -> str:
        """The solver's action; one that changes nothing where it has none.

        Args:
            state: the JSON text.
            tick: the tick.
            left: the remaining steps (default: the limit).
        """
        knobs, route = self._source.knobs_at(tick), self._locate(state, tick)
        place = _write_route(route), _key(knobs)
        if place not in self._actions:
            self._go(route)
            self._set_knobs(knobs)
            self._solve(self._limit if left is None else left)
        return self._actions.get(place, NO_ACTION)

    def value(self, tick: int) -> float:
        """The expected score of the solver within the step limit.

        Args:
            tick: the tick.
        """
        knobs = self._source.knobs_at(tick)
        lost = float(knobs["transient"])
        plans = [self._plan(number, knobs) for number in self._numbers()]
        found = [plan.score * completion_probability(len(plan.actions), self._limit, lost) for plan in plans]
        return sum(found) / len(found)

    def effect(self, t0: int, t1: int) -> ChangeEffect:
        """The effect of the change from tick `t0` to tick `t1`.

        The solver of `t0` reads the instruction as `t1` shows it, with the words of `t0`; what it would do on the page
        of `t0` is carried out on that of `t1`, action by action. The magnitude is the share of its own actions with
        another response.

        Args:
            t0: a tick before the drift.
            t1: a tick after it.
        """
        old, new = self._source.knobs_at(t0), self._source.knobs_at(t1)
        lost, carried, pairs, differing = float(new["transient"]), 0.0, 0, 0
        numbers = self._numbers()
        for number in numbers:
            plan = self._plan(number, old)
            followed = plan.actions
            if old["words"] != new["words"]:
                self._begin(number, new)
                task = read_words(self._env.read_truth().shown, dict(old["words"]))
                self._begin(number, old)
                followed = self._solve(self._limit, task).actions
            score = self._replay(number, new, followed)
            carried += score * completion_probability(len(followed), self._limit, lost) / len(numbers)
            pairs += len(plan.actions)
            differing += sum(self.changed(*pair, t0, t1) for pair in zip(plan.states, plan.actions, strict=True))
        return ChangeEffect(differing / pairs if pairs else 0.0, self.value(t0), carried, self.value(t1), carried)

    @property
    def _env(self) -> MiniWoB:
        """The oracle's own page."""
        if self._own is None:
            own = copy.deepcopy(self._base())
            own.hold(())
            own.render_mode, own.observation_mode = None, "state"
            self._own = own
        return self._own

    def _numbers(self) -> tuple[int, ...]:
        """The numbers of the tasks that count."""
        return self._base().task_pool or tuple(range(SAMPLE))

    def _set_knobs(self, knobs: Mapping[str, Value]) -> None:
        self._env.set_knobs({name: knobs[name] for name in self._env.knobs if name != "transient"} | {"transient": 0.0})

    def _begin(self, number: int, knobs: Mapping[str, Value]) -> None:
        self._set_knobs(knobs)
        self._env.reset(seed=0, options={"goal_index": number})

    def _go(self, route: PageRoute) -> None:
        """Repeat a way, unless the page stands at its end."""
        env = self._env
        here = env.save_state()
        if here["goal_index"] is None or _write_route(PageRoute(here["goal_index"], here["history"])) != _write_route(
            route
        ):
            env.load_state({"goal_index": route.number, "history": route.history, "error": None})

    def _locate(self, state: Any, tick: int) -> PageRoute:
        """The way to a state.

        Raises:
            ArgumentError: neither the environment nor the solver has met it.
        """
        found = self._base().find_route(str(state)) or self._env.find_route(str(state))
        if found is None:
            for number in self._numbers():
                self._plan(number, self._source.knobs_at(tick))
            found = self._env.find_route(str(state))
        if found is None:
            raise ArgumentError(f"`state` should be one that this environment has shown. Received {str(state)[:200]!r}")
        return found

    def _respond(self, state: Any, action: Any, tick: int) -> _Reply:
        knobs, route = self._source.knobs_at(tick), self._locate(state, tick)
        place = _write_route(route), str(action), _key(knobs)
        if place not in self._replies:
            self._go(route)
            self._set_knobs(knobs)
            after, _, ended, _, info = self._env.step(str(action))
            self._replies[place] = _Reply(after, float(info["score"]), ended)
        return self._replies[place]

    def _plan(self, number: int, knobs: Mapping[str, Value]) -> _Plan:
        """What the solver does in a task, from its beginning."""
        place = number, _key(knobs)
        if place not in self._plans:
            self._begin(number, knobs)
            self._plans[place] = self._solve(self._limit)
        return self._plans[place]

    def _solve(self, left: int, task: str | None = None) -> _Plan:
        """Let the solver go on from where the page stands, with the settings that it is given."""
        env, score = self._env, 0.0
        env.refresh()
        actions: list[str] = []
        states: list[str] = []
        solver, settings, ended = PageSolver(env, task), _key(env.read_knobs()), env.reading.done
        while not ended and len(actions) < left:
            try:
                action = solver.action()
            except StateError:
                break  # nothing on the page solves the task
            if task is None:
                here = env.save_state()
                self._actions[_write_route(PageRoute(here["goal_index"], here["history"])), settings] = action
            states.append(write_state(env.task_name, env.reading))
            actions.append(action)
            _, _, ended, _, info = env.step(action)
            score = float(info["score"])
        return _Plan(tuple(actions), tuple(states), score)

    def _replay(self, number: int, knobs: Mapping[str, Value], actions: tuple[str, ...]) -> float:
        """The score of these actions."""
        self._begin(number, knobs)
        for action in actions:
            _, _, ended, _, info = self._env.step(action)
            if ended:
                return float(info["score"])
        return 0.0


def _key(knobs: Mapping[str, Value]) -> str:
    """The layer's settings as a text that is equal for equal settings."""
    return json.dumps(to_layer(knobs), sort_keys=True)


def _write_route(route: PageRoute) -> str:
    """A way as a text that is equal for equal ways."""
    return json.dumps(route, sort_keys=True)


def make_oracle(source: KnobSource, begin: Callable[[], Any], limit: int) -> PageOracle:
    """The oracle of a drifting environment.

    Args:
        source: the knobs at any tick.
        begin: returns the innermost environment after its first reset.
        limit: the step limit of an episode.
    """
    return PageOracle(source, begin, limit)
