"""The tasks of the episodes.

* `draw_tasks` - tasks that can be done under all conditions and that every drift affects
* `draw_elsewhere` - the same of other houses
* `number_task`, `number_tasks`, `find_task` - tasks of a house as numbers, and back
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from drift_envs.envs.house.model import HouseModel, make_model
from drift_envs.envs.house.search import replay_plans, solve_task
from drift_envs.envs.house.tasks import TASK_TYPES, HouseTask, list_tasks
from drift_envs.errors import ArgumentError
from drift_envs.knobs import Value
from drift_envs.task_sequence import MOST_TASKS, Conditions, fill_pool, take_turns

LEAST_LOSS = 0.05
"""The least loss of the plans that were best before a drift, for a task that counts as affected."""

_HOUSES = 0x07E3
"""The stream of other houses."""


def number_task(house: int, index: int) -> int:
    """A task of a house as one number.

    Args:
        house: the number of the house.
        index: the position in `list_tasks`.

    Example:
        >>> number_task(7, 12), find_task(number_task(7, 12))[0]
        (70012, 7)
    """
    return house * MOST_TASKS + index


def number_tasks(house: int) -> range:
    """The numbers of all tasks of a house.

    Args:
        house: the number of the house.
    """
    return range(number_task(house, 0), number_task(house, len(list_tasks(house))))


def find_task(number: int) -> tuple[int, HouseTask]:
    """The house and the task of a number.

    Args:
        number: from `number_task`.

    Raises:
        ArgumentError: if there is no such task.
    """
    house, index = divmod(number, MOST_TASKS)
    tasks = list_tasks(house)
    if index >= len(tasks):
        raise ArgumentError(f"`goal_index` should be a task of house {house}, which has {len(tasks)}. Received {index}")
    return house, tasks[index]


@lru_cache(maxsize=512)
def draw_tasks(
    house: int,
    count: int,
    seed: int,
    without: tuple[int, ...] = (),
    *,
    conditions: Conditions,
    affected: bool = True,
) -> tuple[int, ...]:
    """Draw tasks of a house that can be done with score 1.0 under all conditions.

    Tasks that every drift affects come first: between two successive conditions, the plans that were best before
    reach at most 95 % of the best score after. For a control, tasks that no drift affects come first. If there are
    too few, others fill the pool. Types take turns.

    Args:
        house: the number of the house.
        count: how many.
        seed: of the stream.
        without: the numbers of tasks that are excluded.
        conditions: knob values under which each can be done, in temporal order.
        affected: whether every drift has to affect the tasks that come first, or none.

    Returns:
        The numbers of the tasks.

    Raises:
        ArgumentError: if the house has too few such tasks.
    """
    rng = np.random.default_rng(seed)
    tasks = list_tasks(house)
    order = take_turns([task.type for task in tasks], TASK_TYPES, rng)
    models = [_model_of(house, condition) for condition in conditions]
    found = fill_pool(
        (number_task(house, index) for index in order),
        count,
        lambda number: (False, False) if number in without else _check(tasks[number % MOST_TASKS], models, affected),
    )
    if len(found) < count:
        raise ArgumentError(
            f"house {house} should have {count} tasks that can be done at 1.0 in every phase of the schedule. "
            f"Found {len(found)}"
        )
    return found


def _model_of(house: int, condition: tuple[tuple[str, Value], ...]) -> HouseModel:
    return make_model(house, dict(condition))


def _check(task: HouseTask, models: Sequence[HouseModel], affected: bool) -> tuple[bool, bool]:
    """Whether a task can be done at 1.0 in all models, and whether every change affects it, or none."""
    is_first = True
    for number, model in enumerate(models):
        if solve_task(model, task).score < 1.0:
            return False, False
        if number and is_first and model is not models[number - 1]:
            is_first = (replay_plans(models[number - 1], model, task) <= 1.0 - LEAST_LOSS) == affected
    return True, is_first


def draw_elsewhere(
    house: int, count: int, houses: int, conditions: Conditions, stream: Callable[[int], int]
) -> tuple[int, ...]:
    """Draw tasks of other houses, by the rules of `draw_tasks`.

    Args:
        house: the number of the house that is left out.
        count: how many tasks.
        houses: in how many houses they are.
        conditions: knob values under which each can be done, in temporal order.
        stream: returns the seed of the random stream of a key.

    Returns:
        The numbers of the tasks; the houses take turns.
    """
    rng = np.random.default_rng(stream(_HOUSES))
    numbers: list[int] = []
    while len(numbers) < min(houses, count):
        number = int(rng.integers(1, MOST_TASKS))
        if number != house and number not in numbers:
            numbers.append(number)
    found = []
    for place, number in enumerate(numbers):
        share = count // len(numbers) + (place < count % len(numbers))
        found.append(draw_tasks(number, share, stream(_HOUSES + place), conditions=conditions))
    return tuple(tasks[place] for place in range(max(map(len, found))) for tasks in found if place < len(tasks))
