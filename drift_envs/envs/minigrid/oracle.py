"""The oracle of Minigrid's environments: shortest plans by search over the full state."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from drift_envs.checks import check_integer
from drift_envs.envs.minigrid.dynamics import ACTIONS, FACINGS, GridModel, GridResult, GridState, read_cell, write_cell
from drift_envs.errors import ArgumentError, NoOracleError
from drift_envs.knobs import FrozenMapping
from drift_envs.oracle.base import KnobSource, PlanningOracle, Response, completion_probability, order_responses
from drift_envs.oracle.recurring import Plans, find_plans, replay_all

_ON_MAP = ("layout", "objects", "wander", "words", "opens", "meanings")
"""The knobs on which plans depend; what is seen does not change what happens."""


@lru_cache(maxsize=512)
def plan_grid(model: GridModel, start: GridState, limit: int) -> Plans[GridState | None, str]:
    """All shortest plans from a state to the reward, by breadth-first search over the full state.

    Args:
        model: the map.
        start: the state.
        limit: the longest plan.

    Returns:
        The plans; all end in `None`.

    Example:
        >>> from drift_envs.envs.minigrid.dynamics import GridTask
        >>> room = {(x, y): "wall" for x in range(4) for y in (0, 2)} | {(0, 1): "wall", (3, 1): "green goal"}
        >>> model = GridModel(room, GridState((1, 1), 3), GridTask("reach", "green"))
        >>> plan_grid(model, model.start, 10).length
        3
    """

    def follow(state: GridState | None) -> Iterator[tuple[str, GridState | None]]:
        for action, result in model.moves(state).items() if state is not None else ():
            if result.paid or not result.ended:
                yield action, None if result.paid else result.state

    return find_plans(start, limit, follow, lambda action, after: 1.0 if after is None else None)


@lru_cache(maxsize=512)
def replay_grid(old: GridModel, new: GridModel, limit: int) -> bool:
    """Whether one of the shortest plans for one map pays on another one, action by action.

    Args:
        old: the map that is planned for.
        new: the map where the plans are carried out.
        limit: the longest plan.
    """

    def follow(here: Any, there: Any, action: str) -> tuple[GridState | None, GridState, float]:
        expected, found = old.step(here, action), new.step(there, action)
        goes_on = not expected.ended and not found.ended
        return expected.state if goes_on else None, found.state, float(found.paid)

    return replay_all(plan_grid(old, old.start, limit), new.start, follow) > 0


class GridSetting(NamedTuple):
    """What the plans of a tick depend on.

    Args:
        knobs: the values of the knobs of the map.
        lost: the probability that an action is lost.
    """

    knobs: FrozenMapping
    lost: float


class GridOracle(PlanningOracle[GridSetting]):
    """The oracle of one of Minigrid's environments.

    A state is the JSON text of an observation. With `layout` the map of an episode is known, and `changed` in the
    text says what the agent has changed in it, so that the text gives the full state. Plans are found by
    breadth-first search over the full state. The score is 1 for a reward within the limit; Minigrid's bonus for few
    steps is left out. With `transient` the value is that of repeating lost actions.

    Args:
        source: the knobs at any tick.
        base: an instance of the environment; it is copied.
    """

    def __init__(self, source: KnobSource, base: Any) -> None:
        self._base = copy.deepcopy(base)
        self._base.hold(())
        self._base.render_mode = None
        if self._base.agent_pos is None:
            self._base.reset(seed=0)  # BabyAI's levels set their limit then
        super().__init__(source, int(self._base.max_steps))
        self._models: dict[FrozenMapping, GridModel] = {}

    def setting(self, tick: int) -> GridSetting:
        """The knobs of the map at a tick, and the probability that an action is lost.

        Args:
            tick: the tick.
        """
        knobs = self._source.knobs_at(tick)
        return GridSetting(FrozenMapping({name: knobs[name] for name in _ON_MAP}), float(knobs["transient"]))

    def _model(self, setting: GridSetting) -> GridModel:
        """The map and its rules."""
        if not setting.knobs["layout"]:
            raise NoOracleError("no optimum is known while the map is drawn for each episode; set the knob `layout`")
        if setting.knobs not in self._models:
            self._base.set_knobs(setting.knobs)
            self._base.reset(seed=0)
            self._models[setting.knobs] = self._base.grid_model
        return self._models[setting.knobs]

    def response(self, state: Any, action: Any, tick: int) -> tuple[Response, ...]:
        """All possible responses, most probable first; states as JSON texts without what is seen.

        Args:
            state: the JSON text.
            action: the action, or its number as text.
            tick: the tick.
        """
        lost = self.setting(tick).lost

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
        model = self._model(self.setting(tick))
        plans = plan_grid(model, self._read(state), self._limit if left is None else left)
        return ACTIONS.index(next(iter(plans.first()), "done"))

    def _optimum(self, setting: GridSetting) -> float:
        model = self._model(setting)
        plans = plan_grid(model, model.start, self._limit)
        return plans.score * completion_probability(plans.length, self._limit, setting.lost)

    def _magnitude(self, old: GridSetting, new: GridSetting) -> float:
        """The share of actions with another response, in the states on shortest plans."""
        before, after = self._model(old), self._model(new)
        plans = plan_grid(before, before.start, self._limit)
        pairs = [(state, action) for state in plans.best if state is not None for action in ACTIONS]
        return sum(_outcome(before, *pair) != _outcome(after, *pair) for pair in pairs) / max(len(pairs), 1)

    def _carried(self, old: GridSetting, new: GridSetting) -> float:
        """All shortest plans are replayed, action by action, and the best one counts."""
        before = self._model(old)
        if not replay_grid(before, self._model(new), self._limit):
            return 0.0
        length = plan_grid(before, before.start, self._limit).length
        return completion_probability(length, self._limit, new.lost)

    _replayed = _carried

    def _differ(self, old: GridSetting, new: GridSetting, state: Any, action: Any) -> bool:
        return old.lost != new.lost or self._act(old, state, action) != self._act(new, state, action)

    def _respond(self, state: Any, action: Any, tick: int) -> GridResult:
        return self._act(self.setting(tick), state, action)

    def _act(self, setting: GridSetting, state: Any, action: Any) -> GridResult:
        number = check_integer("action", int(action), 0, len(ACTIONS) - 1)
        return self._model(setting).step(self._read(state), ACTIONS[number])

    def _read(self, state: Any) -> GridState:
        """The full state that a text shows."""
        try:
            shown = json.loads(state)
            changed = {read_cell(cell): str(thing) for cell, thing in shown["changed"].items()}
            column, row = shown["pos"]
            facing = FACINGS.index(shown["facing"])
            return GridState((int(column), int(row)), facing, str(shown["carries"]), tuple(sorted(changed.items())))
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise ArgumentError(f"`state` should be the JSON text of a grid. Received {str(state)[:200]!r}") from error


def _outcome(model: GridModel, state: GridState, action: str) -> tuple[Any, ...]:
    found = model.step(state, action)
    return (*found, model.content(found.state, model.front(found.state)))


def _write(state: GridState) -> str:
    """A full state as JSON text, without what is seen."""
    changed = {write_cell(cell): thing for cell, thing in state.changed}
    return json.dumps(
        {"pos": list(state.cell), "facing": FACINGS[state.facing], "carries": state.carries, "changed": changed}
    )


def make_oracle(source: KnobSource, begin: Callable[[], Any], limit: int) -> GridOracle:
    """The oracle of a drifting environment.

    Args:
        source: the knobs at any tick.
        begin: returns the innermost environment.
        limit: not used, since the environment has its own step limit.
    """
    return GridOracle(source, begin())
