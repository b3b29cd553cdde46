"""The order of tasks that come again.

* `TaskSequence` - pools of tasks in numbered places, with a random stream of its own
* `Conditions`, `freeze_conditions` - the knob values under which the tasks of a pool can be done
* `take_turns` - an order of tasks in which their types alternate
* `fill_pool` - the tasks of a pool: those that drifts affect come first
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from drift_envs.checks import check_choice, check_integer
from drift_envs.knobs import Value

ORDERS = ("shuffled", "fixed")

MOST_TASKS = 10_000
"""No place has as many tasks."""

OTHERS = 0x07E2
"""The stream of tasks outside the pool."""

Conditions = tuple[tuple[tuple[str, Value], ...], ...]
Draw = Callable[[int, int, int, tuple[int, ...]], tuple[int, ...]]


def freeze_conditions(conditions: Sequence[Mapping[str, Value]], names: Sequence[str]) -> Conditions:
    """Conditions in a form that can be hashed.

    Args:
        conditions: knob values, in temporal order.
        names: the knobs that matter.

    Example:
        >>> freeze_conditions([{"gone": ("bed 1",), "transient": 0.5}, {"gone": ()}], ["gone"])
        ((('gone', ('bed 1',)),), ())
    """
    return tuple(tuple((name, one[name]) for name in names if one.get(name)) for one in conditions) or ((),)


def take_turns(types: Sequence[str], names: Sequence[str], rng: np.random.Generator) -> list[int]:
    """An order of tasks in which their types alternate.

    Args:
        types: the type of each task.
        names: the names of all types.
        rng: draws the order of the types, and that of the tasks of each.

    Returns:
        The positions of the tasks in `types`.

    Example:
        >>> order = take_turns(["cool", "cool", "heat", "cool", "heat"], ["heat", "cool"], np.random.default_rng(0))
        >>> sorted(order), {order[0] in (2, 4), order[1] in (2, 4)} == {True, False}
        ([0, 1, 2, 3, 4], True)
    """
    queues = []
    for name in rng.permutation(names):
        queue = [place for place, one in enumerate(types) if one == name]
        rng.shuffle(queue)
        queues.append(queue)
    return [queue[step] for step in range(max(map(len, queues))) for queue in queues if step < len(queue)]


def fill_pool(
    numbers: Iterable[int], count: int, check: Callable[[int], tuple[bool, bool]], tries: int = 120
) -> tuple[int, ...]:
    """The first tasks of an order that can be done, those that come first by another rule before the others.

    Args:
        numbers: the tasks in order.
        count: how many are wanted.
        check: whether a task can be done, and whether it is one of those that come first.
        tries: how many tasks are tried for each that is wanted, if there are enough others.

    Returns:
        At most `count` tasks.

    Example:
        >>> fill_pool([5, 2, 4, 3], 3, lambda number: (number > 2, number % 2 == 0))
        (4, 5, 3)
    """
    first: list[int] = []
    others: list[int] = []
    for tried, number in enumerate(numbers):
        if len(first) == count or (tried >= tries * count and len(first) + len(others) >= count):
            break
        is_possible, is_first = check(number)
        if is_possible:
            (first if is_first else others).append(number)
    return tuple((first + others)[:count])


class TaskSequence:
    """The sequence of tasks, with a random stream of its own: the length of episodes does not change it.

    Args:
        size: the number of recurring tasks, 1 to `MOST_TASKS`; `None` draws from all tasks of the place.
        order: `shuffled` (repeated permutations of the pool) or `fixed`.
        draw: draws a pool, from the number of the place, the number of tasks, a seed, and tasks that are excluded.
        list_all: returns the numbers of all tasks of a place.
        others: the key of the random stream of tasks outside the pool.

    Raises:
        ArgumentError: if size or order break a rule.

    Example:
        >>> tasks = TaskSequence(2, "fixed", lambda place, count, seed, without: (9, 4), lambda place: range(100))
        >>> tasks.seed(0)
        >>> [tasks.next(7) for _ in range(3)]
        [9, 4, 9]
    """

    def __init__(
        self, size: int | None, order: str, draw: Draw, list_all: Callable[[int], Sequence[int]], others: int = OTHERS
    ) -> None:
        self._order = check_choice("order", order, ORDERS)
        self._size = check_integer("pool", size, 1, MOST_TASKS, optional=True)
        self._draw, self._list_all, self._others = draw, list_all, others
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

    def pool(self, place: int) -> tuple[int, ...] | None:
        """The numbers of the recurring tasks of a place, or `None` for all its tasks.

        Args:
            place: the number of the place.
        """
        return None if self._size is None else self._draw(place, self._size, self._seed, ())

    def next(self, place: int) -> int:
        """The number of the next task.

        Args:
            place: the number of the place in which the episode takes place.
        """
        pool = self.pool(place)
        if pool is None:
            numbers = self._list_all(place)
            return numbers[int(self._rng.integers(len(numbers)))]
        if not self._queue:
            order = self._rng.permutation(len(pool)) if self._order == "shuffled" else range(len(pool))
            self._queue = [int(one) for one in order]
        return pool[self._queue.pop(0)]

    def others(self, place: int, count: int) -> tuple[int, ...]:
        """Tasks of this place outside its pool, drawn by the same rules.

        Args:
            place: the number of the place.
            count: how many.
        """
        return self._draw(place, count, self.stream(self._others), self.pool(place) or ())

    def stream(self, key: int) -> int:
        """The seed of another random stream.

        Args:
            key: of the stream.
        """
        return int(np.random.SeedSequence([self._seed, key]).generate_state(1)[0])
