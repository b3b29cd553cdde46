"""The oracle of a drifting house: shortest plans by search over the symbolic state.

* `HouseOracle` - exact responses, best commands and values at any tick
* `make_oracle` - the same for a drifting environment, as its declaration names it
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from drift_envs.checks import check_integer
from drift_envs.envs.house.episode import HouseEpisode, restore_episode
from drift_envs.envs.house.model import HouseModel, make_model
from drift_envs.envs.house.pool import find_task, number_task
from drift_envs.envs.house.search import LIMIT, Plans, replay_plans, solve_task
from drift_envs.envs.house.state import HouseState
from drift_envs.envs.house.tasks import TASK_TYPES, WORDINGS, HouseTask, list_tasks
from drift_envs.errors import ArgumentError
from drift_envs.knobs import Value
from drift_envs.oracle.base import ChangeEffect, KnobSource, Response, completion_probability, order_responses

SAMPLE = 20
"""The number of tasks that are evaluated if the environment draws from all tasks of the house."""


class _Answer(NamedTuple):
    state: str
    score: float
    ended: bool


class HouseOracle:
    """The oracle of a drifting house.

    A state is the JSON text of an observation; house and task in it say which. Responses are exact: the
    environment's own rules execute the command under the knobs of the tick. Plans are found by breadth-first
    search over the symbolic state, and cached by house, knob values and task. A value is the mean over the
    recurring tasks of the highest score that can be reached within the step limit; with `transient`, of a policy
    that repeats lost commands.

    Args:
        source: the knobs at any tick.
        pool: returns the numbers of the recurring tasks of a house, or `None` for all tasks.
        drawn: returns the number of the house that the seed has drawn, for knob values that leave it to the seed.
        limit: the maximum number of steps of an episode.

    Raises:
        ArgumentError: `limit` is not positive.

    Example:
        >>> import gymnasium as gym
        >>> import drift_envs
        >>> env = gym.make("DriftHouse-v0", schedule="house/explicit", text=True)
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
        self._named: dict[Hashable, dict[str, Value]] = {}
        """The names of furniture and what is gone, of all ticks that were asked about: states have their words."""
        self._compared: dict[tuple[HouseModel, HouseModel, HouseTask], tuple[int, int]] = {}

    def changed(self, state: Any, action: Any, t0: int, t1: int) -> bool:
        """Whether the response to this command differs between the two ticks.

        Args:
            state: the JSON text.
            action: the command.
            t0: one tick.
            t1: the other tick.
        """
        before, after = self._source.knobs_at(t0), self._source.knobs_at(t1)
        if before == after:
            return False
        if before["transient"] != after["transient"]:
            return True
        self._note_names(before)
        self._note_names(after)
        return self._respond(state, action, t0) != self._respond(state, action, t1)

    def response(self, state: Any, action: Any, tick: int) -> tuple[Response, ...]:
        """All possible responses, most probable first.

        Args:
            state: the JSON text.
            action: the command.
            tick: the tick.
        """
        lost = self._source.knobs_at(tick)["transient"]
        answer = self._respond(state, action, tick)
        episode = self._restore(state, tick)
        episode.lose()
        return order_responses(Response(*answer, 1.0 - lost), Response(episode.write_state(), 0.0, False, lost))

    def holds(self, state: Any, action: Any, outcome: str, ended: bool, tick: int, score: float | None = None) -> bool:
        """Whether this is the true response; lost commands (`transient`) are not.

        Args:
            state: the JSON text.
            action: the command.
            outcome: the next state as JSON text.
            ended: whether the episode was over.
            tick: the tick.
            score: not used.
        """
        answer = self._respond(state, action, tick)
        return (answer.state, answer.ended) == (outcome, ended)

    def action(self, state: Any, tick: int, left: int | None = None) -> str:
        """The first command of a shortest plan from here; `look` where the task cannot be done any more.

        Args:
            state: the JSON text.
            tick: the tick.
            left: the remaining steps (default: the limit).
        """
        episode = self._restore(state, tick)
        limit = self._limit if left is None else left
        plans = solve_task(episode.model, episode.task, episode.state, limit)
        first = plans.first()
        return episode.model.write(first[0]) if first else "look"

    def value(self, tick: int) -> float:
        """The expected score of the best policy within the step limit.

        Args:
            tick: the tick.
        """
        model, lost = self._model(tick), self._source.knobs_at(tick)["transient"]
        tasks = self._tasks(model)
        return sum(self._task_value(self._plans(model, task), lost) for task in tasks) / len(tasks)

    def effect(self, t0: int, t1: int) -> ChangeEffect:
        """What the change from tick `t0` to tick `t1` does.

        All shortest plans of `t0` are replayed at `t1`, command by command, and the best one counts. The magnitude
        is the share of admissible commands with another response, in the states of a shortest plan.

        Args:
            t0: a tick before the drift.
            t1: a tick after it.
        """
        old, new = self._model(t0), self._model(t1)
        before, after = self.value(t0), self.value(t1)
        lost = self._source.knobs_at(t1)["transient"]
        if old is new and lost == self._source.knobs_at(t0)["transient"]:
            return ChangeEffect(0.0, before, before, after, before)
        if old.number != new.number:  # another house has other tasks, for which there were no plans
            return ChangeEffect(1.0, before, 0.0, after, 0.0)
        tasks = self._tasks(old)
        carried = sum(replay_plans(old, new, task, self._limit) for task in tasks) / len(tasks)
        differing = compared = 0
        for task in tasks:
            key = (old, new, task)
            if key not in self._compared:
                self._compared[key] = self._compare(old, new, task)
            one, other = self._compared[key]
            differing, compared = differing + one, compared + other
        return ChangeEffect(differing / compared if compared else 0.0, before, carried, after, carried)

    def _model(self, tick: int) -> HouseModel:
        knobs = self._source.knobs_at(tick)
        return make_model(knobs["house"] or self._drawn(), knobs)

    def _tasks(self, model: HouseModel) -> list[HouseTask]:
        pool = self._pool(model.number)
        if pool is None:
            pool = [number_task(model.number, index) for index in range(min(SAMPLE, len(list_tasks(model.number))))]
        return [find_task(number)[1] for number in pool]

    def _plans(self, model: HouseModel, task: HouseTask) -> Plans:
        return solve_task(model, task, HouseState(), self._limit)

    def _task_value(self, plans: Plans, lost: float) -> float:
        if lost == 0.0:
            return plans.score
        return plans.score * completion_probability(plans.length, self._limit, lost)

    def _compare(self, old: HouseModel, new: HouseModel, task: HouseTask) -> tuple[int, int]:
        """The number of commands with another response in the states of a plan, and the number of commands."""
        plans, differing, compared = self._plans(old, task), 0, 0
        episode = HouseEpisode(old, task)
        while episode.state in plans.best:
            here = episode.write_state()
            for command in old.admissible(episode.state):
                compared += 1
                differing += _execute(restore_episode(old, task, here), command) != _execute(
                    restore_episode(new, task, here), command
                )
            episode.act(old.write(plans.best[episode.state][0]))
        return differing, compared

    def _respond(self, state: Any, action: Any, tick: int) -> _Answer:
        return _execute(self._restore(state, tick), action)

    def _restore(self, state: Any, tick: int) -> HouseEpisode:
        """An episode at a state, in the house of the tick."""
        try:
            shown = json.loads(state)
            number, text = int(shown["house"]), str(shown["task"])
        except (TypeError, KeyError, ValueError) as error:
            raise ArgumentError(
                f"`state` should be a JSON text with `house` and `task`. Received {str(state)[:200]!r}"
            ) from error
        knobs = self._source.knobs_at(tick)
        self._note_names(knobs)
        model = make_model(number, knobs)
        places = {str(shown.get("at")), *map(str, shown.get("visited", ()))} - {"nothing"}
        known = [model, *(make_model(number, named) for named in self._named.values())]
        # The names of this tick first; those of another tick where the text has furniture that is not called so.
        for strict in (True, False):
            for names in known:
                found = _find_task(names, text)
                if found is not None and (not strict or places <= names.by_name.keys()):
                    return restore_episode(model, found[0], state, names, found[1])
        raise ArgumentError(f"`state` should have a task of house {number}. Received {text!r}")

    def _note_names(self, knobs: Mapping[str, Value]) -> None:
        key = (knobs["names"], knobs["gone"])
        self._named.setdefault(key, {"names": knobs["names"], "gone": knobs["gone"]})


@lru_cache(maxsize=4096)
def _find_task(model: HouseModel, text: str) -> tuple[HouseTask, int] | None:
    """The task of a text and its wording, if furniture is called so; the first one of several."""
    words = text.split()
    tasks = [task for task in list_tasks(model.number) if task.thing in words]
    found = (
        (task, wording)
        for wording in range(len(WORDINGS[TASK_TYPES[0]]))
        for task in tasks
        if task.text(model, wording) == text
    )
    return next(found, None)


def _execute(episode: HouseEpisode, command: str) -> _Answer:
    episode.act(command)
    return _Answer(episode.write_state(), episode.score, episode.score > 0.0)


def make_oracle(source: KnobSource, begin: Callable[[], Any], limit: int) -> HouseOracle:
    """The oracle of a drifting environment.

    Args:
        source: the knobs at any tick.
        begin: returns the innermost environment after its first reset.
        limit: the step limit of an episode.
    """
    return HouseOracle(source, lambda number: begin().pool_of(number), lambda: begin().drawn_house, limit)
