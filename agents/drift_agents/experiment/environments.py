"""The environment of a cell: its schedule, the environment that agents see, and probers.

* `read_schedule` - the schedule of a cell, with the value that a sweep sets
* `sweep_schedule` - a schedule with another value in one place
* `make_env` - the text environment of a schedule
* `make_prober` - how verifiers repeat an action
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import gymnasium as gym

from drift_agents.errors import ExperimentError
from drift_agents.experiment.config import PartSpec, SweptValue
from drift_agents.experiment.evaluation_wrapper import EvaluationWrapper
from drift_agents.registry import PROBERS
from drift_agents.verifier.base import Prober
from drift_envs.entry_points import make_from_schedule
from drift_envs.errors import ArgumentError
from drift_envs.schedule.loader import load_schedule
from drift_envs.schedule.model import Schedule
from drift_envs.wrappers.snapshot import snapshot
from drift_envs.wrappers.twin import twin


def read_schedule(source: str, change: SweptValue | None = None) -> Schedule:
    """The schedule of that name or path.

    Args:
        source: the name or the path.
        change: what a sweep gives it.

    Raises:
        ExperimentError: if it names no environment, or has no such place.
        ScheduleError: if it cannot be used.
    """
    schedule = load_schedule(source)
    if schedule is None or not schedule.env:
        raise ExperimentError(f"{source}: a schedule in an experiment should name its environment under `env`")
    return schedule if change is None else sweep_schedule(schedule, change)


def make_env(schedule: Schedule) -> EvaluationWrapper:
    """A schedule's environment as agents see it, with an evaluator's notes around it.

    Args:
        schedule: the schedule.

    Raises:
        ExperimentError: if its environment does not exist.
        ScheduleError: if the schedule cannot be used.
    """
    try:
        env = make_from_schedule(schedule, text=True)
        env.set_wrapper_attr("warns_of_end", False)  # the number of episodes is the experiment's
        return EvaluationWrapper(env)
    except (gym.error.Error, ArgumentError) as error:
        raise ExperimentError(f"{schedule.name}: {error}") from error


def make_prober(part: PartSpec, env: EvaluationWrapper) -> Prober:
    """Make a prober.

    Args:
        part: one of `registry.PROBERS`, with options; those of other packages are given the twin.
        env: the environment in which the agent plays.

    Raises:
        UnknownNameError: if there is no such prober.
        ArgumentError: if it does not take one of the options.
    """
    if part.name == "replay_live":
        # Beneath the evaluator's notes, which follow the agent's own interactions.
        given: dict[str, Any] = {"env": env.env}
    elif part.name == "snapshot":
        given = {"twin": twin(env.env), "save": partial(snapshot, env.env)}
    else:
        given = {"twin": twin(env.env)}
    prober: Prober = PROBERS.make(part.name, **given, **part.options)
    return prober


def sweep_schedule(schedule: Schedule, change: SweptValue) -> Schedule:
    """A schedule with another value in one place; its name says which.

    Args:
        schedule: the schedule.
        change: the place, its words joined by dots, and the value. `*` stands for every drift. All
            words but the last one must be there.

    Raises:
        ExperimentError: if the schedule has no such place.
        ScheduleError: if the value is not allowed there.

    Example:
        >>> reversed_ = load_schedule("mountain_car/reversed")
        >>> weak = sweep_schedule(reversed_, SweptValue("drifts.reversed.set.force", -0.0008))
        >>> weak.name, dict(weak.drifts[0].set)
        ('mountain_car/reversed/force--0.0008', {'force': -0.0008})
    """
    data = schedule.to_dict()
    *way, last = change.path.split(".")
    places = list(_places(data, way))
    if not places or not all(isinstance(place, dict) for place in places):
        raise ExperimentError(f"{schedule.name}: `sweep` should name a place of the schedule. Received {change.path!r}")
    for place in places:
        place[last] = change.value
    data["name"] = f"{schedule.name}/{change.label}"
    swept: Schedule = load_schedule(data)
    return swept


def _places(data: Any, way: list[str]) -> Iterator[Any]:
    """What stands at the end of a way; `*` leads to all items of a list, a name to the item of that name."""
    if not way:
        yield data
        return
    step, *rest = way
    if isinstance(data, list):
        for item in data:
            if step == "*" or (isinstance(item, dict) and item.get("name") == step):
                yield from _places(item, rest)
    elif isinstance(data, dict) and step in data:
        yield from _places(data[step], rest)
