"""The oracle of a drifting house: shortest plans by search over the symbolic state."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence, Set
from functools import lru_cache
from typing import Any

from drift_envs.envs.house.model import HouseModel, HouseState, make_model
from drift_envs.envs.house.tasks import (
    TASK_TYPES,
    TASKS,
    WORDINGS,
    HouseEpisode,
    HouseTask,
    replay_plans,
    restore_episode,
    solve_task,
)
from drift_envs.errors import ArgumentError
from drift_envs.oracle.base import completion_probability
from drift_envs.oracle.recurring import Carried, CommandOracle, execute
from drift_envs.recurring_tasks import NumberedTasks

SAMPLE = 20
"""The number of tasks that are evaluated if the environment draws from all tasks of the house."""


class HouseOracle(CommandOracle[HouseModel, HouseTask]):
    """The oracle of a drifting house.

    A state is the JSON text of an observation; house and task in it say which. Plans are found by breadth-first
    search over the symbolic state, and cached by house, knob values and task.

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

    read_by = ("names", "gone")

    def setting(self, tick: int) -> HouseModel:
        """The house at a tick."""
        knobs = self._source.knobs_at(tick)
        return make_model(knobs["house"] or self._drawn(), knobs)

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

    def _place(self, setting: HouseModel) -> int:
        return setting.number

    def _tasks(self, setting: HouseModel) -> list[HouseTask]:
        pool = self._pool(setting.number)
        return [TASKS.find(number)[1] for number in (TASKS.numbers(setting.number)[:SAMPLE] if pool is None else pool)]

    def _task_value(self, setting: HouseModel, task: HouseTask, lost: float) -> float:
        plans = solve_task(setting, task, HouseState(), self._limit)
        return plans.score * (completion_probability(plans.length, self._limit, lost) if lost else 1.0)

    def _carry(self, old: HouseModel, new: HouseModel, task: HouseTask) -> Carried:
        plans, differing, compared = solve_task(old, task, HouseState(), self._limit), 0, 0
        episode = HouseEpisode(old, task)
        while episode.state in plans.best:
            here = episode.write_state()
            for command in old.admissible(episode.state):
                compared += 1
                differing += execute(restore_episode(old, task, here), command) != execute(
                    restore_episode(new, task, here), command
                )
            episode.act(old.write(plans.best[episode.state][0]))
        return Carried(replay_plans(old, new, task, self._limit), plans.length, differing, compared)

    def _restore(self, state: Any, tick: int) -> HouseEpisode:
        """An episode at a state, in the house of the tick."""
        knobs = self._source.knobs_at(tick)
        self._note(knobs)
        number, task, names, wording = find_household(
            state,
            "house",
            TASKS,
            len(WORDINGS[TASK_TYPES[0]]),
            lambda number: [make_model(number, one) for one in (knobs, *self._known.values())],
            lambda model: model.by_name.keys(),
        )
        return restore_episode(make_model(number, knobs), task, state, names, wording)


def find_household(
    state: Any,
    called: str,
    tasks: NumberedTasks[Any],
    wordings: int,
    make_all: Callable[[int], Sequence[Any]],
    names_of: Callable[[Any], Set[str]],
) -> tuple[int, Any, Any, int]:
    """What a state shows of its household, under the names that furniture had when it was shown.

    Args:
        state: the JSON text.
        called: what a household is called.
        tasks: its tasks, each with `thing` and `text`.
        wordings: in how many wordings a task is said.
        make_all: makes the households of a number under all names that are known, those of the present first.
        names_of: the names of furniture in one of them.

    Returns:
        The number, the task, the household with the names of the state, and the wording.

    Raises:
        ArgumentError: it is no such state.
    """
    try:
        shown = json.loads(state)
        number, text = int(shown["house"]), str(shown["task"])
    except (TypeError, KeyError, ValueError) as error:
        raise ArgumentError(
            f"`state` should be a JSON text with `house` and `task`. Received {str(state)[:200]!r}"
        ) from error
    places = {str(shown.get("at")), *map(str, shown.get("visited", ()))} - {"nothing"}
    known = make_all(number)
    # The names of this tick first; those of another tick where the text has furniture that is not called so.
    for strict in (True, False):
        for names in known:
            found = _find_task(names, text, tasks, number, wordings)
            if found is not None and (not strict or places <= names_of(names)):
                return number, found[0], names, found[1]
    raise ArgumentError(f"`state` should have a task of {called} {number}. Received {text!r}")


@lru_cache(maxsize=4096)
def _find_task(names: Any, text: str, tasks: NumberedTasks[Any], number: int, wordings: int) -> tuple[Any, int] | None:
    """The task of a text and its wording, if furniture is called so; the first one of several."""
    words = text.split()
    known = [task for task in tasks.list_all(number) if task.thing in words]
    found = ((task, wording) for wording in range(wordings) for task in known if task.text(names, wording) == text)
    return next(found, None)


make_oracle = HouseOracle.of
