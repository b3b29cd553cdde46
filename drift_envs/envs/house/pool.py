"""The tasks of the episodes, and their order.

* `TaskSequence` - a pool of recurring tasks, with a random stream of its own
* `draw_tasks` - tasks that can be done under all conditions and that every drift affects
* `number_task`, `find_task` - a task of a house as one number, and back
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

import numpy as np

from drift_envs.envs.house.model import MODEL_KNOBS, HouseModel, make_model
from drift_envs.envs.house.search import replay_plans, solve_task
from drift_envs.envs.house.tasks import TASK_TYPES, HouseTask, list_tasks
from drift_envs.errors import ArgumentError
from drift_envs.knobs import Value

ORDERS = ("shuffled", "fixed")

LEAST_LOSS = 0.05
"""The least loss of the plans that were best before a drift, for a task that counts as affected."""

MOST_TASKS = 10_000
"""No house has as many tasks."""

_TRIES = 120
"""How many tasks are tried for each task of the pool."""

_OTHERS, _HOUSES = 0x07E2, 0x07E3
"""The streams of tasks outside the pool, and of other houses."""

Conditions = tuple[tuple[tuple[str, Value], ...], ...]


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


def freeze_conditions(conditions: Sequence[Mapping[str, Value]]) -> Conditions:
    """Conditions in a form that can be hashed; only the knobs on which a model depends.

    Args:
        conditions: knob values, in temporal order.
    """
    return tuple(
        tuple((name, one[name]) for name in ("house", *MODEL_KNOBS) if one.get(name)) for one in conditions
    ) or ((),)


def draw_tasks(
    house: int, count: int, conditions: Conditions, seed: int, without: Collection[int] = (), affected: bool = True
) -> tuple[int, ...]:
    """Draw tasks of a house that can be done with score 1.0 under all conditions.

    Tasks that every drift affects come first: between two successive conditions, the plans that were best before
    reach at most 95 % of the best score after. For a control, tasks that no drift affects come first. If there are
    too few, others fill the pool. Types take turns.

    Args:
        house: the number of the house.
        count: how many.
        conditions: knob values under which each can be done, in temporal order.
        seed: of the stream.
        without: the numbers of tasks that are excluded.
        affected: whether every drift has to affect the tasks that come first, or none.

    Returns:
        The numbers of the tasks.

    Raises:
        ArgumentError: if the house has too few such tasks.
    """
    rng = np.random.default_rng(seed)
    tasks = list_tasks(house)
    by_type = {name: [index for index, task in enumerate(tasks) if task.type == name] for name in TASK_TYPES}
    queues = []
    for name in rng.permutation(TASK_TYPES):
        queue = by_type[str(name)]
        rng.shuffle(queue)
        queues.append(queue)
    order = [queue[step] for step in range(max(map(len, queues))) for queue in queues if step < len(queue)]
    models = [_model_of(house, condition) for condition in conditions]
    first: list[int] = []
    others: list[int] = []
    skipped = set(without)
    for tried, index in enumerate(order):
        if len(first) == count or (tried >= _TRIES * count and len(first) + len(others) >= count):
            break
        number = number_task(house, index)
        if number in skipped:
            continue
        is_possible, is_first = _check(tasks[index], models, affected)
        if is_possible:
            (first if is_first else others).append(number)
    found = (first + others)[:count]
    if len(found) < count:
        raise ArgumentError(
            f"house {house} should have {count} tasks that can be done at 1.0 in every phase of the schedule. "
            f"Found {len(found)}"
        )
    return tuple(found)


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


@lru_cache(maxsize=512)
def _pool(house: int, count: int, conditions: Conditions, seed: int, affected: bool) -> tuple[int, ...]:
    return draw_tasks(house, count, conditions, seed, affected=affected)


class TaskSequence:
    """The sequence of tasks, with a random stream of its own: the length of episodes does not change it.

    Args:
        size: the number of recurring tasks; `None` draws from all tasks of the house.
        order: `shuffled` (repeated permutations of the pool) or `fixed`.
        conditions: knob values under which each task can be done, in temporal order.
        affected: whether tasks come first that every change between two conditions affects, or that none does.
    """

    def __init__(self, size: int | None, order: str, conditions: Conditions, affected: bool = True) -> None:
        self._size, self._order, self._conditions, self._affected = size, order, conditions, affected
        self._seed = 0
        self._queue: list[int] = []
        self._rng = np.random.default_rng(0)

    def seed(self, seed: int) -> None:
        """Start again.

        Args:
            seed: of pool and order.
        """
        self._seed = seed
        self._queue = []
        self._rng = np.random.default_rng([seed, 1])

    def pool(self, house: int) -> tuple[int, ...] | None:
        """The numbers of the recurring tasks of a house, or `None` for all tasks.

        Args:
            house: the number of the house.
        """
        return None if self._size is None else _pool(house, self._size, self._conditions, self._seed, self._affected)

    def next(self, house: int) -> int:
        """The number of the next task.

        Args:
            house: the number of the house in which the episode takes place.
        """
        pool = self.pool(house)
        if pool is None:
            return number_task(house, int(self._rng.integers(len(list_tasks(house)))))
        if not self._queue:
            places = range(len(pool))
            self._queue = (
                [int(one) for one in self._rng.permutation(places)] if self._order == "shuffled" else [*places]
            )
        return pool[self._queue.pop(0)]

    def others(self, house: int, count: int) -> tuple[int, ...]:
        """Tasks of this house outside its pool, drawn by the same rules.

        Args:
            house: the number of the house.
            count: how many.
        """
        pool = self.pool(house) or ()
        return draw_tasks(house, count, self._conditions, self._stream(_OTHERS), pool, self._affected)

    def elsewhere(self, house: int, count: int, houses: int) -> tuple[int, ...]:
        """Tasks of other houses, drawn by the same rules.

        Args:
            house: the number of the house that is left out.
            count: how many tasks.
            houses: in how many houses they are.
        """
        rng = np.random.default_rng(self._stream(_HOUSES))
        numbers: list[int] = []
        while len(numbers) < min(houses, count):
            number = int(rng.integers(1, MOST_TASKS))
            if number != house and number not in numbers:
                numbers.append(number)
        found = []
        for place, number in enumerate(numbers):
            share = count // len(numbers) + (place < count % len(numbers))
            found.append(draw_tasks(number, share, self._conditions, self._stream(_HOUSES + place)))
        return tuple(tasks[place] for place in range(max(map(len, found))) for tasks in found if place < len(tasks))

    def _stream(self, tag: int) -> int:
        return int(np.random.SeedSequence([self._seed, tag]).generate_state(1)[0])
