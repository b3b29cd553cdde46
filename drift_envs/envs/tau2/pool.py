"""The tasks of the episodes, and their order.

* `find_task` - a task by its number
* `list_tasks` - the numbers of a domain
* `draw_tasks` - tasks that drifts affect
* `make_sequence` - the pool of recurring tasks in its order
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache, lru_cache, partial
from itertools import pairwise

import numpy as np

from drift_envs.envs.tau2.episode import replay
from drift_envs.envs.tau2.interface import Tau2Interface, make_interface
from drift_envs.envs.tau2.knobs import DOMAINS
from drift_envs.envs.tau2.package import AIRLINE, Tau2Task, find_package, load_tasks
from drift_envs.errors import ArgumentError
from drift_envs.knobs import Value
from drift_envs.task_sequence import TaskSequence

_OTHERS = 0x7A02
"""The stream of tasks outside the pool."""


def find_task(number: int) -> Tau2Task:
    """A task by its number.

    Args:
        number: the number.

    Raises:
        ArgumentError: there is none.
    """
    task = load_tasks().get(number)
    if task is None:
        last = len(list_tasks("retail")) - 1, AIRLINE + len(list_tasks("airline")) - 1
        raise ArgumentError(
            f"`goal_index` should be 0 to {last[0]} (retail) or {AIRLINE} to {last[1]} (airline). Received {number}"
        )
    return task


@cache
def list_tasks(domain: str) -> tuple[int, ...]:
    """The numbers of the tasks of a domain, in order.

    Args:
        domain: the domain.
    """
    return tuple(number for number, task in load_tasks().items() if task.domain == domain)


@lru_cache(maxsize=128)
def draw_tasks(
    domain: str,
    count: int,
    interfaces: tuple[Tau2Interface, ...],
    seed: int,
    without: Collection[int] = (),
    affected: bool = True,
) -> tuple[int, ...]:
    """Draw tasks whose published actions, carried through the drifts, are right under all conditions.

    Those that the most drifts affect come first: the actions that were right before score nothing after. For a control,
    those that the fewest affect.

    Args:
        domain: the domain.
        count: how many.
        interfaces: those of the conditions, in temporal order.
        seed: of the stream.
        without: the numbers of tasks that are excluded.
        affected: whether drifts should affect the tasks that come first.

    Returns:
        The numbers of the tasks.

    Raises:
        ArgumentError: there are too few such tasks.
    """
    own = [one if one.domain == domain else make_interface(one.knobs, domain) for one in interfaces]
    changes = [(old, new) for old, new in pairwise(own) if old is not new]
    numbers = [one for one in list_tasks(domain) if one not in without]
    hits: dict[int, int] = {}
    for number in map(int, np.random.default_rng(seed).permutation(numbers)):
        if sum(one == len(changes) for one in hits.values()) >= count:
            break
        if all(replay(number, one, one) == 1.0 for one in own):
            lost = sum(replay(number, old, new) < 1.0 for old, new in changes)
            hits[number] = lost if affected else len(changes) - lost
    if len(hits) < count:
        raise ArgumentError(f"`pool` should be at most {len(hits)}, the tasks that there are. Received {count}")
    return tuple(sorted(hits, key=lambda number: -hits[number])[:count])


def make_sequence(
    size: int | None, order: str, conditions: Sequence[Mapping[str, Value]], affected: bool
) -> TaskSequence:
    """The sequence of tasks; a place is the position of a domain in `DOMAINS`.

    Args:
        size: the number of recurring tasks; `None` draws from all tasks of the domain.
        order: `shuffled` or `fixed`.
        conditions: knob values, in temporal order.
        affected: whether tasks come first that drifts affect, or those that none does.

    Raises:
        ArgumentError: if size or order break a rule.
        MissingDependencyError: if the package is not installed.
    """
    find_package()
    interfaces = tuple(make_interface(one) for one in conditions) or (make_interface({}),)

    return TaskSequence(size, order, partial(_draw, interfaces, affected), _list_all, _OTHERS)


def _draw(
    interfaces: tuple[Tau2Interface, ...], affected: bool, place: int, count: int, seed: int, without: tuple[int, ...]
) -> tuple[int, ...]:
    return draw_tasks(DOMAINS[place], count, interfaces, seed, without, affected)


def _list_all(place: int) -> tuple[int, ...]:
    return list_tasks(DOMAINS[place])
