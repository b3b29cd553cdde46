"""The tasks of the episodes, and their order.

* `is_played`, `list_tasks` - the tasks that can be scored
* `carry_reference` - the score of published calls after a drift, cached
* `draw_tasks` - tasks that drifts affect
* `make_sequence` - the pool of recurring tasks in its order
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache, partial
from itertools import pairwise

import numpy as np

from drift_envs.envs.bfcl.engines import replay_reference
from drift_envs.envs.bfcl.episode import play_reference
from drift_envs.envs.bfcl.interface import BfclInterface, make_interface
from drift_envs.envs.bfcl.package import find_package, load_tasks
from drift_envs.errors import ArgumentError
from drift_envs.knobs import Value
from drift_envs.task_sequence import TaskSequence

Interfaces = tuple[BfclInterface, ...]

_OTHERS = 0xBFC1
"""The stream of tasks outside the pool."""


@lru_cache(maxsize=4096)
def is_played(number: int) -> bool:
    """Whether a task can be scored.

    Not so if its published calls change nothing, since doing nothing would solve it, or if one of them does not fit the
    tool's own schema.

    Args:
        number: the number of the task.
    """
    before, *after = replay_reference(number)
    plain = make_interface({})
    return any(state != before for state in after) and carry_reference(number, plain, plain) == 1.0


@lru_cache(maxsize=1)
def list_tasks() -> tuple[int, ...]:
    """The numbers of the tasks that can be scored, in order."""
    return tuple(filter(is_played, load_tasks()))


@lru_cache(maxsize=4096)
def carry_reference(number: int, before: BfclInterface, after: BfclInterface) -> float:
    """The score of a task's published calls as they were right before, sent after; cached.

    Args:
        number: the number of the task.
        before: the interface for which they are written.
        after: the interface that executes them.
    """
    return play_reference(number, before, after)


@lru_cache(maxsize=128)
def draw_tasks(
    count: int, interfaces: Interfaces, seed: int, without: Collection[int] = (), affected: bool = True
) -> tuple[int, ...]:
    """Draw tasks whose published calls, carried through the drifts, are right under all conditions.

    Those that the most drifts affect come first: the calls that were right before score nothing after. For a control,
    those that the fewest affect.

    Args:
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
    changes = [(old, new) for old, new in pairwise(interfaces) if old is not new]
    hits: dict[int, int] = {}
    for number in map(
        int, np.random.default_rng(seed).permutation([one for one in load_tasks() if one not in without])
    ):
        if sum(one == len(changes) for one in hits.values()) >= count:
            break
        if is_played(number) and all(carry_reference(number, one, one) == 1.0 for one in interfaces):
            lost = sum(carry_reference(number, old, new) < 1.0 for old, new in changes)
            hits[number] = lost if affected else len(changes) - lost
    if len(hits) < count:
        raise ArgumentError(f"`pool` should be at most {len(hits)}, the tasks that there are. Received {count}")
    return tuple(sorted(hits, key=lambda number: -hits[number])[:count])


def make_sequence(
    size: int | None, order: str, conditions: Sequence[Mapping[str, Value]], affected: bool
) -> TaskSequence:
    """The sequence of tasks; there is one place, 0.

    Args:
        size: the number of recurring tasks; `None` draws from all tasks.
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
    interfaces: Interfaces, affected: bool, place: int, count: int, seed: int, without: tuple[int, ...]
) -> tuple[int, ...]:
    return draw_tasks(count, interfaces, seed, without, affected)


def _list_all(place: int) -> tuple[int, ...]:
    return list_tasks()
