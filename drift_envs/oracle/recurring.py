"""The oracle of environments with recurring tasks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from drift_envs.checks import check_integer
from drift_envs.knobs import Value
from drift_envs.oracle.base import ChangeEffect, KnobSource, Response, completion_probability, order_responses
from drift_envs.tasks.recurring_tasks import MOST_TASKS, TaskEpisode

Setting = TypeVar("Setting", bound=Hashable)
Task = TypeVar("Task", bound=Hashable)
State = TypeVar("State", bound=Hashable)
Action = TypeVar("Action", bound=Hashable)
Made = TypeVar("Made", bound="CommandOracle[Any, Any]")


class TrueResponse(NamedTuple):
    """The true response to an action.

    Args:
        state: the next state as JSON text.
        score: the score of the episode then.
        ended: whether the episode is over then.
    """

    state: str
    score: float
    ended: bool


class Carried(NamedTuple):
    """What a change does to the plans that were best for one task before it.

    Args:
        score: the score of the best of these plans after the change, if no action is lost.
        length: the number of actions of a plan.
        differing: the number of actions with another response, in the states of such a plan.
        compared: the number of actions that were compared.
    """

    score: float
    length: int
    differing: int
    compared: int


class RecurringTasksOracle(ABC, Generic[Setting, Task]):
    """The oracle of an environment with recurring tasks.

    A state is the JSON text of an observation, in which the task stands. A *setting* is the environment under the
    knobs of a tick. Responses are exact: the environment's own rules execute the action under the knobs of the tick.
    A value is the mean over the recurring tasks of the highest score that can be reached within the step limit; with
    `transient`, of a policy that repeats lost actions.

    Args:
        source: the knobs at any tick.
        limit: the maximum number of steps of an episode.

    Raises:
        ArgumentError: `limit` is not positive.
    """

    compares_scores: ClassVar[bool] = False
    """Whether responses to the same state can have different scores."""
    repeats_lost: ClassVar[bool] = False
    """Whether the score of carried plans counts lost actions."""
    loses_all: ClassVar[bool] = False
    """Whether another probability of lost actions counts as another response to all of them."""

    def __init__(self, source: KnobSource, limit: int) -> None:
        self._source = source
        self._limit = check_integer("limit", limit, 1)
        self._carried: dict[tuple[Setting, Setting, Task], Carried] = {}

    @abstractmethod
    def setting(self, tick: int) -> Setting:
        """The setting at a tick."""

    @abstractmethod
    def action(self, state: Any, tick: int, left: int | None = None) -> str:
        """The best known action."""

    @abstractmethod
    def _tasks(self, setting: Setting) -> Sequence[Task]:
        """The recurring tasks."""

    @abstractmethod
    def _task_value(self, setting: Setting, task: Task, lost: float) -> float:
        """The expected score of the best known policy for a task."""

    @abstractmethod
    def _carry(self, old: Setting, new: Setting, task: Task) -> Carried:
        """What a change does to the plans for a task."""

    @abstractmethod
    def _respond(self, state: Any, action: Any, tick: int) -> TrueResponse:
        """The true response."""

    @abstractmethod
    def _lose(self, state: Any, tick: int) -> str:
        """The state after a lost action."""

    def _score(self, carried: Carried, before: float, after: float) -> float:
        """The score of carried plans where actions were lost before, and are lost after, with these probabilities.

        If none was lost before, plans do not foresee that a lost action has to be repeated.
        """
        if not (self.repeats_lost and carried.score and after):
            return carried.score
        repeated = completion_probability(carried.length, self._limit, after)
        return carried.score * (repeated if before else (1.0 - after) ** carried.length)

    def _place(self, setting: Setting) -> int:
        """The number of the place that the tasks belong to."""
        return 0

    def _note(self, knobs: Mapping[str, Value]) -> None:
        """Keep what is needed to read states that were shown under these knobs."""

    def changed(self, state: Any, action: Any, t0: int, t1: int) -> bool:
        """Whether the response to this action differs between the two ticks.

        Args:
            state: the JSON text.
            action: the action.
            t0: one tick.
            t1: the other tick.
        """
        before, after = self._source.knobs_at(t0), self._source.knobs_at(t1)
        if before == after:
            return False
        if self._lost(t0) != self._lost(t1):
            return True
        self._note(before)
        self._note(after)
        return self._respond(state, action, t0) != self._respond(state, action, t1)

    def response(self, state: Any, action: Any, tick: int) -> tuple[Response, ...]:
        """All possible responses, most probable first."""
        lost = self._lost(tick)
        true = Response(*self._respond(state, action, tick), 1.0 - lost)
        if not lost:
            return (true,)
        return order_responses(true, Response(self._lose(state, tick), 0.0, False, lost))

    def holds(self, state: Any, action: Any, outcome: str, ended: bool, tick: int, score: float | None = None) -> bool:
        """Whether this is the true response; lost actions (`transient`) are not.

        Args:
            state: the JSON text.
            action: the action.
            outcome: the next state as JSON text.
            ended: whether the episode was over.
            tick: the tick.
            score: that of the episode after the action; not compared if it is `None` or not `compares_scores`.
        """
        answer = self._respond(state, action, tick)
        same_score = not self.compares_scores or score in (None, answer.score)
        return (answer.state, answer.ended) == (outcome, ended) and same_score

    def value(self, tick: int) -> float:
        """The expected score of the best known policy within the step limit."""
        setting, lost = self.setting(tick), self._lost(tick)
        return _mean([self._task_value(setting, task, lost) for task in self._tasks(setting)])

    def effect(self, t0: int, t1: int) -> ChangeEffect:
        """What the change from tick `t0` to tick `t1` does.

        The best plans of `t0` are replayed at `t1`, action by action, and the best one counts. The magnitude is the
        share of actions with another response, in the states of such a plan.

        Args:
            t0: a tick before the drift.
            t1: a tick after it.
        """
        old, new = self.setting(t0), self.setting(t1)
        before, after = self.value(t0), self.value(t1)
        lost = self._lost(t0), self._lost(t1)
        if old == new and lost[0] == lost[1]:
            return ChangeEffect(0.0, before, before, after, before)
        if self._place(old) != self._place(new):  # another place has other tasks, for which there were no plans
            return ChangeEffect(1.0, before, 0.0, after, 0.0)
        found = []
        for task in self._tasks(old):
            key = (old, new, task)
            if key not in self._carried:
                self._carried[key] = self._carry(old, new, task)
            found.append(self._carried[key])
        carried = _mean([self._score(one, *lost) for one in found])
        differing, compared = sum(one.differing for one in found), sum(one.compared for one in found)
        magnitude = differing / compared if compared else 0.0
        if self.loses_all and lost[0] != lost[1]:
            magnitude = 1.0
        return ChangeEffect(magnitude, before, carried, after, carried)

    def _lost(self, tick: int) -> float:
        """The probability that an action is lost."""
        return float(self._source.knobs_at(tick).get("transient", 0.0))


class EpisodeOracle(RecurringTasksOracle[Setting, Task]):
    """The oracle of an environment that can restore an episode at a state."""

    @abstractmethod
    def _restore(self, state: Any, tick: int) -> Any:
        """An episode at a state, under the knobs of the tick."""

    def _respond(self, state: Any, action: Any, tick: int) -> TrueResponse:
        return execute(self._restore(state, tick), str(action))

    def _lose(self, state: Any, tick: int) -> str:
        episode = self._restore(state, tick)
        episode.lose()
        written: str = episode.write_state()
        return written


class CommandOracle(EpisodeOracle[Setting, Task]):
    """The oracle of a `CommandEnv`, whose tasks belong to numbered places.

    Plans are found by breadth-first search, and cached by place, knob values and task.

    Args:
        source: the knobs at any tick.
        pool: returns the numbers of the recurring tasks of a place, or `None` for all tasks.
        drawn: returns the number of the place that the seed has drawn, for knob values that leave it to the seed.
        limit: the maximum number of steps of an episode.

    Raises:
        ArgumentError: `limit` is not positive.
    """

    place_knob: ClassVar[str]
    """The knob that is the number of the place; 0 leaves it to the seed."""
    read_by: ClassVar[tuple[str, ...]]
    """The knobs without which the text of a state cannot be read."""

    def __init__(
        self,
        source: KnobSource,
        pool: Callable[[int], Sequence[int] | None],
        drawn: Callable[[], int],
        limit: int,
    ) -> None:
        super().__init__(source, limit)
        self._pool, self._drawn = pool, drawn
        self._known: dict[Hashable, dict[str, Value]] = {}
        """The values of `read_by` at all ticks that were asked about: states have the words of their time."""

    @classmethod
    def of(cls: type[Made], source: KnobSource, begin: Callable[[], Any], limit: int) -> Made:
        """The oracle of a drifting environment.

        Args:
            source: the knobs at any tick.
            begin: returns the innermost environment after its first reset.
            limit: the step limit of an episode.
        """
        return cls(source, lambda number: begin().pool_of(number), lambda: begin().drawn_place, limit)

    @abstractmethod
    def _make_setting(self, place: int, knobs: Mapping[str, Value]) -> Setting:
        """A place under knob values."""

    def _positions(self, place: int, count: int) -> list[int]:
        """The positions of the recurring tasks in a place that has `count`."""
        pool = self._pool(place)
        return list(range(count)) if pool is None else [number % MOST_TASKS for number in pool]

    def setting(self, tick: int) -> Setting:
        """The place at a tick, under its knobs.

        Args:
            tick: the tick.
        """
        knobs = self._source.knobs_at(tick)
        return self._make_setting(knobs[self.place_knob] or self._drawn(), knobs)

    def _note(self, knobs: Mapping[str, Value]) -> None:
        values = {name: knobs[name] for name in self.read_by}
        self._known.setdefault(tuple(values.items()), values)


def execute(episode: TaskEpisode, command: str) -> TrueResponse:
    """Execute a command.

    Args:
        episode: the episode, which goes on.
        command: the command.
    """
    episode.act(command)
    return TrueResponse(episode.write_state(), episode.score, episode.is_over)


@dataclass(frozen=True)
class Plans(Generic[State, Action]):
    """All plans that reach the best score in the fewest actions.

    Args:
        score: that score; 0.0 if none is reached within the limit.
        length: the number of actions of these plans, or the limit.
        best: by state on such a plan, the actions with which one goes on.
        start: the state in which they begin.
    """

    score: float
    length: int
    best: Mapping[State, tuple[Action, ...]]
    start: State

    def first(self) -> tuple[Action, ...]:
        """The best actions in the state in which they begin."""
        return self.best.get(self.start, ())


def find_plans(
    start: State,
    limit: int,
    follow: Callable[[State], Iterable[tuple[Action, State]]],
    rate: Callable[[Action, State], float | None],
    wanted: float = 1.0,
) -> Plans[State, Action]:
    """Find all plans with the fewest actions by breadth-first search, one layer an action.

    Args:
        start: the state in which plans begin.
        limit: the most actions.
        follow: the actions that a best plan may contain in a state, each with the state after it.
        rate: the score of a state that an action has reached, `None` where this action does not decide it. A state
            with a score ends the episode.
        wanted: the least score that counts.

    Example:
        >>> plans = find_plans(0, 9, lambda n: [("+1", n + 1), ("*2", n * 2)], lambda _, n: float(n == 4))
        >>> plans.length, plans.best
        (3, {2: ('*2',), 1: ('+1', '*2'), 0: ('+1',)})
    """
    parents: dict[State, list[tuple[State, Action]]] = {start: []}
    layer = [start]
    for length in range(1, limit + 1):
        fresh: dict[State, list[tuple[State, Action]]] = {}
        scores: dict[State, float | None] = {}
        for state in layer:
            for action, after in follow(state):
                if after not in parents:
                    fresh.setdefault(after, []).append((state, action))
                    if scores.get(after) is None:
                        scores[after] = rate(action, after)
        parents |= fresh
        goals = {state: score for state, score in scores.items() if score is not None and score >= wanted}
        if goals:
            return Plans(max(goals.values()), length, trace_plans(parents, goals), start)
        layer = [state for state in fresh if not scores[state]]
        if not layer:
            break
    return Plans(0.0, limit, {}, start)


def replay_all(
    plans: Plans[State, Action],
    start: State,
    follow: Callable[[State, State, Action], tuple[State | None, State, float]],
) -> float:
    """The best score that plans of one setting reach in another, action by action.

    Args:
        plans: the plans.
        start: the state in which the other setting begins.
        follow: for a state on a plan, the one that the other setting has then, and an action: the state after it on the
            plan (`None` if there is none), the other one, and the score there, which ends the episode.
    """
    best, layer = 0.0, {(plans.start, start)}
    while layer:
        following = set()
        for here, there in layer:
            for action in plans.best.get(here, ()):
                after, other, score = follow(here, there, action)
                best = max(best, score)
                if after is not None and not score:
                    following.add((after, other))
        layer = following
    return best


def trace_plans(
    parents: Mapping[State, Iterable[tuple[State, Action]]], goals: Iterable[State]
) -> dict[State, tuple[Action, ...]]:
    """The actions on all shortest ways that a breadth-first search has found, by state.

    Args:
        parents: by state, the states of the layer before it with the actions that lead here.
        goals: the states in which ways end.

    Example:
        >>> trace_plans({"start": [], "a": [("start", 1)], "goal": [("a", 3), ("a", 4)]}, ["goal"])
        {'a': (3, 4), 'start': (1,)}
    """
    best: dict[State, dict[Action, None]] = {}
    seen, front = set(goals), list(goals)
    while front:
        before: dict[State, None] = {}
        for state in front:
            for parent, action in parents[state]:
                best.setdefault(parent, {})[action] = None
                if parent not in seen:
                    seen.add(parent)
                    before[parent] = None
        front = list(before)
    return {state: tuple(actions) for state, actions in best.items()}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
