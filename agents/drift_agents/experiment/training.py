"""The stages of a cell: the training phase fills memory, the test plays the schedule.

* `TrainingTask` - one task of the training phase
* `TrainingPhase` - all of them, and the seed of the environment in which they are played
* `plan_training` - the tasks of an experiment on one schedule with one seed
* `has_training` - whether there is anything to fill
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from drift_agents.errors import ExperimentError
from drift_agents.experiment.config import SOLO, TrainingSettings
from drift_agents.experiment.evaluation_wrapper import EvaluationWrapper
from drift_agents.experiment.plan import Cell
from drift_envs.knobs import FrozenMapping
from drift_envs.schedule.model import Schedule

TASK_STREAM, ENV_STREAM = 0xC025, 0xC03D
"""What keeps the streams of the training phase apart from those of the test, of agents and of drifts."""

_SEEDS = 100
"""How many seeds are looked at for a map that is not the test's."""


class TrainingTask(NamedTuple):
    """One task of the training phase.

    Args:
        round: its number, from 1; epochs are counted on.
        seed: of the episode's own stream.
        options: which task it is, for the environment's `reset`.
    """

    round: int
    seed: int
    options: Mapping[str, Any]


class TrainingPhase(NamedTuple):
    """What is played before the test.

    Args:
        env_seed: what the environment is seeded with: it decides maps that are drawn.
        tasks: one after the other.
    """

    env_seed: int
    tasks: tuple[TrainingTask, ...]


def has_training(cell: Cell, training: TrainingSettings | None) -> bool:
    """Whether a cell has a training phase: an agent that learns, and tasks to learn from.

    Args:
        cell: the cell.
        training: the experiment's settings of the training phase.
    """
    if training is None or not training.episodes or cell.reference == "clairvoyant":
        return False
    return cell.memory.name != "none" or cell.decision.team.name != SOLO.name or cell.reference is not None


def plan_training(schedule: Schedule, env: EvaluationWrapper, training: TrainingSettings, seed: int) -> TrainingPhase:
    """The tasks played before the test; always in the source phase, at its first tick.

    Args:
        schedule: the schedule.
        env: an environment of its own, seeded with the cell's seed; it is seeded anew.
        training: the experiment's settings of the training phase.
        seed: the cell's.

    Raises:
        ExperimentError: if the schedule begins with a drift, its first phase ends within an episode, or it
            has no other tasks than those of the test.
    """
    _check_source(schedule, env)
    other = training.where == "other"
    pool: tuple[int, ...] | None = None
    env_seed = seed
    shop = getattr(env.unwrapped, "other_tasks", None)
    if training.where == "elsewhere":
        elsewhere = getattr(env.unwrapped, "tasks_elsewhere", None)
        if elsewhere is None:
            raise ExperimentError(
                f"{schedule.name}: `train: {{where: elsewhere}}` needs an environment of several houses"
            )
        pool = elsewhere(training.episodes)
    elif shop is not None:
        test = env.unwrapped.task_pool  # type: ignore[attr-defined]
        size = min(training.episodes, len(test) if test is not None else training.episodes)
        pool = shop(size) if other or test is None else test[:size]
    elif "map" in env.timeline.names or hasattr(env.unwrapped, "desc"):
        env_seed = _other_map(schedule, env, seed) if other else seed
    # Where the start is the task, an epoch plays the same starts, and `same` those of the test's first episodes.
    starts = pool is None and env_seed == seed and not hasattr(env.unwrapped, "desc")
    tasks = []
    for number in range(training.episodes * training.epochs):
        place = number % training.episodes
        stream = _seed(seed, TASK_STREAM, place if starts else number)
        if starts and not other:
            stream = episode_seed(seed, place)
        options = {} if pool is None else {"goal_index": pool[place % len(pool)]}
        tasks.append(TrainingTask(number + 1, stream, FrozenMapping(options)))
    return TrainingPhase(env_seed, tuple(tasks))


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


def _check_source(schedule: Schedule, env: EvaluationWrapper) -> None:
    source = env.timeline.phase(0)
    limit = None if env.spec is None else env.spec.max_episode_steps
    if source.index != 0 or source.drift is not None:
        raise ExperimentError(f"{schedule.name}: `train` needs a phase before any drift, but tick 0 has a drift")
    if schedule.clock != "episode" and limit is not None and source.stop < limit:
        raise ExperimentError(
            f"{schedule.name}: `train` needs a first phase as long as an episode. "
            f"Received {source.stop} steps, an episode takes up to {limit}"
        )


def _other_map(schedule: Schedule, env: EvaluationWrapper, seed: int) -> int:
    """A seed with which the schedule draws another map than the test's."""
    written = schedule.base.get("map")
    if not isinstance(written, Mapping) or schedule.seed is not None:
        raise ExperimentError(
            f"{schedule.name}: has one map, so that there is none to train on but the test's. Say "
            "`train: {where: same}`, or play a schedule that draws its maps from the seed"
        )
    test = env.knobs(0)["map"]
    for number in range(_SEEDS):
        found = _seed(seed, ENV_STREAM, number)
        env.env.reset(seed=found)
        if env.knobs(0)["map"] != test:
            return found
    raise ExperimentError(f"{schedule.name}: draws the test's map from every one of {_SEEDS} other seeds")
