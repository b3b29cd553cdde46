"""The tasks of the episodes.

* `draw_tasks` - tasks that can be done under all conditions and that every drift affects
* `draw_elsewhere` - the same of other floor plans
* `number_task`, `number_tasks`, `find_task` - tasks of a floor plan as numbers, and back
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from drift_envs.envs.alfworld.knobs import SPLITS
from drift_envs.envs.alfworld.package import list_plans
from drift_envs.envs.alfworld.room import Layout, make_layout
from drift_envs.envs.alfworld.search import replay_plans, solve_task
from drift_envs.envs.alfworld.tasks import TASK_TYPES, AlfworldTask, lies_there, list_tasks
from drift_envs.errors import ArgumentError
from drift_envs.task_sequence import MOST_TASKS, Conditions, fill_pool, take_turns

_PLANS = 0x07E4
"""The stream of other floor plans."""


def number_task(plan: int, index: int) -> int:
    """A task of a floor plan as one number.

    Args:
        plan: the number of the floor plan.
        index: the position in `list_tasks`.
    """
    return plan * MOST_TASKS + index


def number_tasks(plan: int) -> range:
    """The numbers of all tasks of a floor plan.

    Args:
        plan: the number of the floor plan.
    """
    return range(number_task(plan, 0), number_task(plan, len(list_tasks(plan))))


def find_task(number: int) -> tuple[int, AlfworldTask]:
    """The floor plan and the task of a number.

    Args:
        number: from `number_task`.

    Raises:
        ArgumentError: if there is no such floor plan or task.
    """
    plan, index = divmod(number, MOST_TASKS)
    tasks = list_tasks(plan)
    if index >= len(tasks):
        raise ArgumentError(
            f"`goal_index` should be a task of floor plan {plan}, which has {len(tasks)}. Received {index}"
        )
    return plan, tasks[index]


@lru_cache(maxsize=512)
def draw_tasks(
    plan: int,
    count: int,
    seed: int,
    without: tuple[int, ...] = (),
    *,
    conditions: Conditions,
    affected: bool = True,
) -> tuple[int, ...]:
    """Draw tasks of a floor plan that can be done under all conditions.

    Tasks that every drift affects come first: between two successive conditions, the plans that were best before do
    not do the task after. For a control, tasks that no drift affects come first. If there are too few, others fill
    the pool. Types take turns.

    Args:
        plan: the number of the floor plan.
        count: how many.
        seed: of the stream.
        without: the numbers of tasks that are excluded.
        conditions: knob values under which each can be done, in temporal order.
        affected: whether every drift has to affect the tasks that come first, or none.

    Returns:
        The numbers of the tasks.

    Raises:
        ArgumentError: if the floor plan has too few such tasks.
        KnobError: if a condition names what no room of ALFWorld has.
    """
    tasks = list_tasks(plan)
    order = take_turns([task.type for task in tasks], TASK_TYPES, np.random.default_rng(seed))
    layouts = [make_layout(plan, dict(condition)) for condition in conditions]

    def check(number: int) -> tuple[bool, bool]:
        if number in without:
            return False, False
        return _check(tasks[number % MOST_TASKS], layouts, affected)

    found = fill_pool((number_task(plan, index) for index in order), count, check)
    if len(found) < count:
        raise ArgumentError(
            f"floor plan {plan} should have {count} tasks that can be done in every phase of the schedule. "
            f"Found {len(found)}"
        )
    return found


def _check(task: AlfworldTask, layouts: Sequence[Layout], affected: bool) -> tuple[bool, bool]:
    """Whether a task can be done in all layouts, and whether every change affects it, or none."""
    is_first = True
    for number, layout in enumerate(layouts):
        if not solve_task(layout, task).score:
            return False, False
        if number and is_first and layout is not layouts[number - 1]:
            is_first = (not replay_plans(layouts[number - 1], layout, task)) == affected
        is_first = is_first and not lies_there(layout, task)
    return True, is_first


def draw_elsewhere(
    plan: int, count: int, plans: int, conditions: Conditions, stream: Callable[[int], int]
) -> tuple[int, ...]:
    """Draw tasks of floor plans of the other split, by the rules of `draw_tasks`.

    Args:
        plan: the number of the floor plan.
        count: how many tasks.
        plans: in how many floor plans they are.
        conditions: knob values under which each can be done, in temporal order.
        stream: returns the seed of the random stream of a key.

    Returns:
        The numbers of the tasks; the floor plans take turns.
    """
    rng = np.random.default_rng(stream(_PLANS))
    others = list_plans(SPLITS[plan in list_plans(SPLITS[0])])
    numbers = [int(one) for one in rng.permutation(others)[: min(plans, count)]]
    found = []
    for place, number in enumerate(numbers):
        share = count // len(numbers) + (place < count % len(numbers))
        found.append(draw_tasks(number, share, stream(_PLANS + place), conditions=conditions))
    return tuple(tasks[place] for place in range(max(map(len, found))) for tasks in found if place < len(tasks))
