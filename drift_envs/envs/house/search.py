"""Shortest plans by search over the symbolic state of a house.

* `Plans` - all shortest plans of a task: how good, how long, and what each state's best commands are
* `solve_task` - finds them; results are cached by house, knob values and task
* `replay_plans` - the best score that the plans of one house reach in another

The search is exact: it leaves out only what no shortest plan contains, namely things that are neither wanted nor
keys, furniture without a use for the task, and commands that change nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from drift_envs.envs.house.model import HouseModel
from drift_envs.envs.house.state import NOWHERE, TREATMENTS, Command, HouseState, Verb
from drift_envs.envs.house.tasks import HouseTask, score_task
from drift_envs.oracle.recurring import trace_plans

LIMIT = 50
"""The steps of an episode, as in ALFWorld."""

START = HouseState()
"""Before the first command."""


class Plans(NamedTuple):
    """All shortest plans of a task from one state.

    Args:
        score: the highest score that can be reached within the limit; 0 if none can.
        length: the steps of the shortest plans that reach it.
        best: by state on a shortest plan, the commands with which one goes on.
        start: the state in which they begin.
    """

    score: float
    length: int
    best: dict[HouseState, tuple[Command, ...]]
    start: HouseState

    def first(self) -> list[Command]:
        """One of the plans."""
        return [] if not self.best else list(self.best[self.start])


@lru_cache(maxsize=20_000)
def solve_task(model: HouseModel, task: HouseTask, start: HouseState = START, limit: int = LIMIT) -> Plans:
    """All plans that reach the highest score in the fewest steps.

    Args:
        model: the house; equal knob values share one object, see `make_model`.
        task: the task.
        start: the state in which the plans begin.
        limit: the steps that are left.

    Example:
        >>> from drift_envs.envs.house.model import make_model
        >>> house = make_model(7, {})
        >>> plans = solve_task(house, HouseTask("pick_heat_then_place_in_recep", "mug", "bed"))
        >>> plans.score, plans.length, len(plans.best[plans.start]) >= 1
        (1.0, 6, True)
    """
    tried = (1.0, 0.0) if task.is_light else (1.0, 0.5)
    for least in tried:
        found = _search(model, task, start, limit, least)
        if found is not None:
            return found
        if not _may_be_untidy(model):
            break
    return Plans(0.0, limit, {}, start)


def _may_be_untidy(model: HouseModel) -> bool:
    return any(not model.is_tidy(0, place) for place in model.shown)


def _search(model: HouseModel, task: HouseTask, start: HouseState, limit: int, least: float) -> Plans | None:
    """Breadth first, one layer a step; parents are kept for all shortest ways."""
    choices = _Choices(model, task, start)
    parents: dict[HouseState, list[tuple[HouseState, Command]]] = {start: []}
    layer = [start]
    for length in range(1, limit + 1):
        ends: dict[HouseState, float] = {}
        fresh: dict[HouseState, list[tuple[HouseState, Command]]] = {}
        for state in layer:
            for command in choices.of(state):
                after = model.apply(state, command)
                if after is None or after in parents:
                    continue
                fresh.setdefault(after, []).append((state, command))
                if after not in ends and command.verb in (Verb.PUT, Verb.USE):
                    ends[after] = score_task(model, task, after)
        goals = [state for state, score in ends.items() if score > least or score == 1.0 == least]
        parents |= fresh
        if goals:
            return Plans(max(ends[goal] for goal in goals), length, trace_plans(parents, goals), start)
        # a task that is done ends the episode: states behind it cannot be reached
        layer = [state for state in fresh if not ends.get(state)]
        if not layer:
            return None
    return None


class _Choices:
    """The commands that a shortest plan may contain.

    Args:
        model: the house.
        task: the task.
        start: the state in which the plan begins.
    """

    def __init__(self, model: HouseModel, task: HouseTask, start: HouseState) -> None:
        self._model, self._task = model, task
        kind = model.words.get(task.thing, task.thing)
        self._wanted = {index for index, one in enumerate(model.things) if one.kind == kind}
        places = {model.place_of(start, thing) for thing in self._wanted} - {NOWHERE}
        self._targets: set[int] = set()
        self._treating: set[int] = set()
        if task.is_light:
            places |= {model.starts[index] for index, one in enumerate(model.things) if one.kind == task.target}
        else:
            self._targets = {place for place in model.shown if model.furniture[place].kind == task.target}
            self._treating = {place for place, effect in model.effects.items() if effect == task.need}
        locked = places | self._targets
        self._keys = {key for place, key in model.keys.items() if key != NOWHERE and place in locked}
        places |= {model.place_of(start, key) for key in self._keys} - {NOWHERE}
        shown = set(model.shown)
        self._places = sorted((places | self._targets | self._treating) & shown)
        self._gos = [Command(Verb.GO, NOWHERE, place) for place in self._places]

    def of(self, state: HouseState) -> Iterator[Command]:
        """The commands in a state."""
        model, at, held = self._model, state.at, state.held
        if at != NOWHERE:
            if at in model.opens and at not in state.opened:
                yield Command(Verb.OPEN, NOWHERE, at)
            for thing in model.visible(state):
                if held == NOWHERE and (thing in self._wanted or thing in self._keys):
                    yield Command(Verb.TAKE, thing, at)
                elif self._task.is_light and model.things[thing].kind == self._task.target:
                    yield Command(Verb.USE, thing)
            if held != NOWHERE:
                # A key, or whatever is in the hand by mistake, is put down anywhere.
                if at in self._targets or held in self._keys or held not in self._wanted or self._task.is_light:
                    yield Command(Verb.PUT, held, at)
                verb = model.verbs.get(at)
                if at in self._treating and verb is not None and TREATMENTS[verb] in model.takes[held]:
                    yield Command(verb, held, at)
        yield from self._gos


@lru_cache(maxsize=50_000)
def replay_plans(old: HouseModel, new: HouseModel, task: HouseTask, limit: int = LIMIT) -> float:
    """The best score that the shortest plans of one house reach in another, command by command.

    Args:
        old: the house whose plans are replayed.
        new: the house in which they are replayed.
        task: the task.
        limit: the steps of an episode.
    """
    plans = solve_task(old, task, limit=limit)
    best = 0.0
    layer = {(plans.start, START)}
    while layer:
        following = set()
        for here, there in layer:
            for command in plans.best.get(here, ()):
                after = old.apply(here, command)
                executed = new.parse(old.write(command))
                other = new.apply(there, executed) or there
                score = score_task(new, task, other) if other != there else 0.0
                best = max(best, score)
                if after is not None and not score:
                    following.add((after, other))
        layer = following
    return best
