"""The stages of a cell: construction fills memory, the test plays the schedule.

* `ConstructionTask` - one task of the construction
* `Construction` - all of them, and the seed of the world in which they are played
* `plan_construction` - the tasks of an experiment on one schedule with one seed
* `has_construction` - whether there is anything to fill
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from drift_agents.errors import ExperimentError
from drift_agents.experiment.config import SOLO, Construct
from drift_agents.experiment.evaluation_wrapper import EvaluationWrapper
from drift_agents.experiment.plan import Cell
from drift_envs.knobs import FrozenMapping
from drift_envs.schedule.model import Schedule

TASK_STREAM, WORLD_STREAM = 0xC025, 0xC03D
"""What keeps the streams of construction apart from those of the test, of agents and of drifts."""

_WORLDS = 100
"""How many seeds are looked at for a map that is not the test's."""


class ConstructionTask(NamedTuple):
    """One task of the construction.

    Args:
        round: its number, from 1; epochs are counted on.
        seed: of the episode's own stream.
        options: which task it is, for the world's `reset`.
    """

    round: int
    seed: int
    options: Mapping[str, Any]


class Construction(NamedTuple):
    """What is played before the test.

    Args:
        world_seed: what the world is seeded with: it decides maps that are drawn.
        tasks: one after the other.
    """

    world_seed: int
    tasks: tuple[ConstructionTask, ...]


def has_construction(cell: Cell, construct: Construct | None) -> bool:
    """Whether a cell has a construction: an agent that learns, and tasks to learn from.

    Args:
        cell: the cell.
        construct: the experiment's settings of the construction.
    """
    if construct is None or not construct.episodes or cell.reference == "clairvoyant":
        return False
    return cell.memory.name != "none" or cell.decision.team.name != SOLO.name or cell.reference is not None


def plan_construction(schedule: Schedule, world: EvaluationWrapper, construct: Construct, seed: int) -> Construction:
    """The tasks played before the test; always in the source phase, at its first tick.

    Args:
        schedule: the schedule.
        world: a world of its own, seeded with the cell's seed; it is seeded anew.
        construct: the experiment's settings of the construction.
        seed: the cell's.

    Raises:
        ExperimentError: if the schedule begins with a drift, its first phase ends within an episode, or it
            has no other tasks than those of the test.
    """
    _check_source(schedule, world)
    other = construct.where == "other"
    pool: tuple[int, ...] | None = None
    world_seed = seed
    shop = getattr(world.unwrapped, "other_tasks", None)
    if construct.where == "elsewhere":
        elsewhere = getattr(world.unwrapped, "tasks_elsewhere", None)
        if elsewhere is None:
            raise ExperimentError(f"{schedule.name}: `construct: {{where: elsewhere}}` needs a world of several houses")
        pool = elsewhere(construct.episodes)
    elif shop is not None:
        test = world.unwrapped.task_pool  # type: ignore[attr-defined]
        size = min(construct.episodes, len(test) if test is not None else construct.episodes)
        pool = shop(size) if other or test is None else test[:size]
    elif "map" in world.timeline.names or hasattr(world.unwrapped, "desc"):
        world_seed = _other_map(schedule, world, seed) if other else seed
    # Where the start is the task, an epoch plays the same starts, and `same` those of the test's first episodes.
    starts = pool is None and world_seed == seed and not hasattr(world.unwrapped, "desc")
    tasks = []
    for number in range(construct.episodes * construct.epochs):
        place = number % construct.episodes
        stream = _seed(seed, TASK_STREAM, place if starts else number)
        if starts and not other:
            stream = episode_seed(seed, place)
        options = {} if pool is None else {"goal_index": pool[place % len(pool)]}
        tasks.append(ConstructionTask(number + 1, stream, FrozenMapping(options)))
    return Construction(world_seed, tuple(tasks))


EPISODE_STREAM = 0xE915
"""What keeps the streams of the test's episodes apart from those of agents and drifts."""


def episode_seed(seed: int, episode: int) -> int:
    """The seed of an episode's own stream: the same for all agents, whatever they did before.

    Args:
        seed: the cell's.
        episode: its number in the test.

    Example:
        >>> episode_seed(0, 0) == episode_seed(0, 0), episode_seed(0, 0) == episode_seed(0, 1)
        (True, False)
    """
    return _seed(seed, EPISODE_STREAM, episode)


def _seed(*words: int) -> int:
    return int(np.random.SeedSequence(words).generate_state(1)[0])


def _check_source(schedule: Schedule, world: EvaluationWrapper) -> None:
    source = world.timeline.phase(0)
    limit = None if world.spec is None else world.spec.max_episode_steps
    if source.index != 0 or source.drift is not None:
        raise ExperimentError(f"{schedule.name}: `construct` needs a phase before any drift, but tick 0 has a drift")
    if schedule.clock != "episode" and limit is not None and source.stop < limit:
        raise ExperimentError(
            f"{schedule.name}: `construct` needs a first phase as long as an episode. "
            f"Received {source.stop} steps, an episode takes up to {limit}"
        )


def _other_map(schedule: Schedule, world: EvaluationWrapper, seed: int) -> int:
    """A seed with which the schedule draws another map than the test's."""
    written = schedule.base.get("map")
    if not isinstance(written, Mapping) or schedule.seed is not None:
        raise ExperimentError(
            f"{schedule.name}: has one map, so that there is none to construct on but the test's. Say "
            "`construct: {where: same}`, or play a schedule that draws its maps from the seed"
        )
    test = world.knobs(0)["map"]
    for number in range(_WORLDS):
        found = _seed(seed, WORLD_STREAM, number)
        world.env.reset(seed=found)
        if world.knobs(0)["map"] != test:
            return found
    raise ExperimentError(f"{schedule.name}: draws the test's map from every one of {_WORLDS} other seeds")
