"""The oracle of Minigrid's environments: shortest plans by search over the full state."""

from __future__ import annotations

import copy
import json
from collections import deque
from collections.abc import Callable, Hashable, Mapping
from typing import Any, NamedTuple

from drift_envs.checks import check_integer
from drift_envs.envs.minigrid import ACTIONS, read_cell
from drift_envs.envs.minigrid.model import GridModel, GridState
from drift_envs.errors import ArgumentError, NoOracleError
from drift_envs.knobs import Value
from drift_envs.oracle.base import ChangeEffect, KnobSource, Response, completion_probability, order_responses

_FACINGS = ("east", "south", "west", "north")
_ON_MAP = ("layout", "objects", "wander", "words", "opens", "meanings")
"""The knobs on which plans depend; what is seen does not change what happens."""


class GridPlans(NamedTuple):
    """All shortest plans from a state.

    Args:
        length: the steps to the reward; `None` if there is no way.
        best: the first actions of shortest plans, by each state on one of them.
    """

    length: int | None
    best: Mapping[GridState, tuple[str, ...]]


def plan_grid(model: GridModel, start: GridState, limit: int) -> GridPlans:
    """All shortest plans from a state, by breadth-first search over the full state.

    Args:
        model: the map.
        start: the state.
        limit: the longest plan.

    Example:
        >>> from drift_envs.envs.minigrid.model import GridTask
        >>> room = {(x, y): "wall" for x in range(4) for y in (0, 2)} | {(0, 1): "wall", (3, 1): "green goal"}
        >>> model = GridModel(room, GridState((1, 1), 3), GridTask("reach", "green"))
        >>> plan_grid(model, model.start, 10).length
        3
    """
    layers: list[list[GridState]] = [[start]]
    before: dict[GridState, list[tuple[GridState, str]]] = {start: []}
    depth_of = {start: 0}
    paying: list[tuple[GridState, str]] = []
    while layers[-1] and len(layers) <= limit and not paying:
        depth, following = len(layers), []
        for state in layers[-1]:
            for action, result in model.moves(state).items():
                if result.paid:
                    paying.append((state, action))
                elif not result.ended:
                    seen = depth_of.get(result.state)
                    if seen is None:
                        depth_of[result.state] = depth
                        before[result.state] = [(state, action)]
                        following.append(result.state)
                    elif seen == depth:
                        before[result.state].append((state, action))
        layers.append(following)
    if not paying:
        return GridPlans(None, {})
    best: dict[GridState, dict[str, None]] = {}
    front = deque(paying)
    while front:
        state, action = front.popleft()
        is_new = state not in best
        best.setdefault(state, {})[action] = None
        if is_new:
            front.extend(before[state])
    return GridPlans(len(layers) - 1, {state: tuple(actions) for state, actions in best.items()})


def replay_grid(old: GridModel, new: GridModel, limit: int) -> bool:
    """Whether one of the shortest plans for one map pays on another one, action by action.

    Args:
        old: the map that is planned for.
        new: the map where the plans are carried out.
        limit: the longest plan.
    """
    plans = plan_grid(old, old.start, limit)
    pairs = {(old.start, new.start)} if plans.length is not None else set()
    for _ in range(plans.length or 0):
        following = set()
        for planned, real in sorted(pairs):
            for action in plans.best.get(planned, ()):
                expected, found = old.step(planned, action), new.step(real, action)
                if found.paid:
                    return True
                if not found.ended and not expected.ended:
                    following.add((expected.state, found.state))
        pairs = following
    return False


class GridOracle:
    """The oracle of one of Minigrid's environments.

    A state is the JSON text of an observation. With `layout` the map of an episode is known, and `changed` in the
    text says what the agent has changed in it, so that the text gives the full state. Plans are found by
    breadth-first search over the full state and cached by knob values. The score is 1 for a reward within the limit;
    Minigrid's bonus for few steps is left out. With `transient` the value is that of repeating lost actions.

    Args:
        source: the knobs at any tick.
        base: an instance of the environment; it is copied.
        limit: the maximum number of steps of an episode; Minigrid's by default.

    Raises:
        ArgumentError: `limit` is not positive.
    """

    def __init__(self, source: KnobSource, base: Any, limit: int | None = None) -> None:
        self._source = source
        self._given = check_integer("limit", limit, 1, optional=True)
        self._base = copy.deepcopy(base)
        self._base.hold(())
        self._base.render_mode = None
        self._models: dict[Hashable, GridModel] = {}
        self._plans: dict[Hashable, GridPlans] = {}

    def changed(self, state: Any, action: Any, t0: int, t1: int) -> bool:
        """Whether the response to this action differs between the two ticks.

        Args:
            state: the JSON text.
            action: the action, or its number as text.
            t0: one tick.
            t1: the other tick.
        """
        before, after = self._source.knobs_at(t0), self._source.knobs_at(t1)
        if all(before[name] == after[name] for name in (*_ON_MAP, "transient")):
            return False
        return self._respond(state, action, t0) != self._respond(state, action, t1) or bool(
            before["transient"] != after["transient"]
        )

    def response(self, state: Any, action: Any, tick: int) -> tuple[Response, ...]:
        """All possible responses, most probable first; states as JSON texts without what is seen.

        Args:
            state: the JSON text.
            action: the action, or its number as text.
            tick: the tick.
        """
        lost = float(self._source.knobs_at(tick)["transient"])

        def respond(done: Any, probability: float) -> Response:
            after, paid, ended = self._respond(state, done, tick)
            return Response(_write(after), float(paid), ended, probability)

        return order_responses(respond(action, 1.0 - lost), respond(ACTIONS.index("done"), lost))

    def holds(self, state: Any, action: Any, outcome: str, ended: bool, tick: int, score: float | None = None) -> bool:
        """Whether this is the true response; lost actions (`transient`) are not.

        Args:
            state: the JSON text.
            action: the action, or its number as text.
            outcome: the next state as JSON text.
            ended: whether the episode was over.
            tick: the tick.
            score: the score of the episode after it, which the next state does not show; not compared if not given.
        """
        after, paid, over = self._respond(state, action, tick)
        return (after, over) == (self._read(outcome), ended) and score in (None, float(paid))

    def action(self, state: Any, tick: int, left: int | None = None) -> int:
        """The first action of a shortest plan from here; 6 (done) where there is no way.

        Args:
            state: the JSON text.
            tick: the tick.
            left: the remaining steps (default: the limit).
        """
        found, model = self._read(state), self._model(tick)
        plans = plan_grid(model, found, self._limit if left is None else left)
        return ACTIONS.index(plans.best[found][0]) if plans.length is not None else ACTIONS.index("done")

    def value(self, tick: int) -> float:
        """The expected score of the best policy within the step limit.

        Args:
            tick: the tick.
        """
        length, lost = self._solve(tick).length, float(self._source.knobs_at(tick)["transient"])
        return 0.0 if length is None else completion_probability(length, self._limit, lost)

    def effect(self, t0: int, t1: int) -> ChangeEffect:
        """What the change from tick `t0` to tick `t1` does.

        All shortest plans of `t0` are replayed at `t1`, action by action, and the best one counts. The magnitude is
        the share of actions with another response, in the states on shortest plans of `t0`.

        Args:
            t0: a tick before the drift.
            t1: a tick after it.
        """
        old, new, plans = self._model(t0), self._model(t1), self._solve(t0)
        before, after = self.value(t0), self.value(t1)
        lost = float(self._source.knobs_at(t1)["transient"])
        carried = 0.0
        if plans.length is not None and replay_grid(old, new, self._limit):
            carried = completion_probability(plans.length, self._limit, lost)
        pairs = [(state, action) for state in plans.best for action in ACTIONS]
        differing = sum(_outcome(old, *pair) != _outcome(new, *pair) for pair in pairs)
        return ChangeEffect(differing / len(pairs) if pairs else 0.0, before, carried, after, carried)

    @property
    def _limit(self) -> int:
        """The step limit; BabyAI's levels set theirs at a reset."""
        if self._given is not None:
            return self._given
        if self._base.agent_pos is None:
            self._base.reset(seed=0)
        return int(self._base.max_steps)

    def _key(self, tick: int) -> tuple[tuple[Hashable, ...], Mapping[str, Value]]:
        knobs = self._source.knobs_at(tick)
        if not knobs["layout"]:
            raise NoOracleError("no optimum is known while the map is drawn for each episode; set the knob `layout`")
        return tuple(knobs[name] for name in _ON_MAP), knobs

    def _model(self, tick: int) -> GridModel:
        """The map and its rules at a tick."""
        key, knobs = self._key(tick)
        if key not in self._models:
            self._base.set_knobs({name: knobs[name] for name in _ON_MAP})
            self._base.reset(seed=0)
            self._models[key] = self._base.grid_model
        return self._models[key]

    def _solve(self, tick: int) -> GridPlans:
        key, _ = self._key(tick)
        if key not in self._plans:
            model = self._model(tick)
            self._plans[key] = plan_grid(model, model.start, self._limit)
        return self._plans[key]

    def _respond(self, state: Any, action: Any, tick: int) -> tuple[GridState, bool, bool]:
        model = self._model(tick)
        found = model.step(self._read(state), ACTIONS[check_integer("action", int(action), 0, len(ACTIONS) - 1)])
        return found.state, found.paid, found.ended

    def _read(self, state: Any) -> GridState:
        """The full state that a text shows."""
        try:
            shown = json.loads(state)
            changed = {read_cell(cell): str(thing) for cell, thing in shown["changed"].items()}
            column, row = shown["pos"]
            facing = _FACINGS.index(shown["facing"])
            return GridState((int(column), int(row)), facing, str(shown["carries"]), tuple(sorted(changed.items())))
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise ArgumentError(f"`state` should be the JSON text of a grid. Received {str(state)[:200]!r}") from error


def _outcome(model: GridModel, state: GridState, action: str) -> tuple[Any, ...]:
    found = model.step(state, action)
    return (*found, model.content(found.state, model.front(found.state)))


def _write(state: GridState) -> str:
    """A full state as JSON text, without what is seen."""
    changed = {f"{cell[0]},{cell[1]}": thing for cell, thing in state.changed}
    return json.dumps(
        {"pos": list(state.cell), "facing": _FACINGS[state.facing], "carries": state.carries, "changed": changed}
    )


def make_oracle(source: KnobSource, begin: Callable[[], Any], limit: int) -> GridOracle:
    """The oracle of a drifting environment.

    Args:
        source: the knobs at any tick.
        begin: returns the innermost environment.
        limit: not used, since the environment has its own step limit.
    """
    return GridOracle(source, begin())
