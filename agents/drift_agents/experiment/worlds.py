"""What each environment needs on the agent's side.

* `AgentSide` - the matching rule and what of memory goes into a prompt
* `AGENT_SIDES` - by environment id
* `read_schedule` - the schedule of a cell, with what a sweep changes in it
* `make_world` - a schedule's world as agents see it
* `make_prober` - how verifiers repeat an action in a state
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import gymnasium as gym

from drift_agents.agent import Recall
from drift_agents.errors import ExperimentError
from drift_agents.experiment.config import PartSpec, SweptValue
from drift_agents.experiment.evaluation_wrapper import EvaluationWrapper
from drift_agents.experiment.sweep import changed_schedule
from drift_agents.registry import PROBERS
from drift_agents.verifier.base import Prober
from drift_envs.schedule.loader import load_schedule
from drift_envs.schedule.model import Schedule
from drift_envs.wrappers.snapshot import snapshot
from drift_envs.wrappers.twin import twin


@dataclass(frozen=True)
class AgentSide:
    """What an environment needs on the agent's side; it is declared, and the same for every agent.

    Args:
        matching: the rule that says when states and outcomes are the same.
        recall: what of memory goes into a prompt.
    """

    matching: PartSpec = field(default_factory=lambda: PartSpec(name="exact"))
    recall: Recall = field(default_factory=Recall)


CAR = AgentSide(PartSpec(name="grid"))
AGENT_SIDES = {
    "DriftFrozenLake-v0": AgentSide(),
    "DriftMountainCar-v0": CAR,
    "DriftMountainCarContinuous-v0": CAR,
    "DriftWebShop-v0": AgentSide(PartSpec(name="page"), Recall(states=64)),
}
"""By environment id; environments that are not listed match by text."""


def agent_side(env_id: str) -> AgentSide:
    """What that environment needs on the agent's side."""
    return AGENT_SIDES.get(env_id, AgentSide())


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
    return schedule if change is None else changed_schedule(schedule, change)


def make_world(schedule: Schedule) -> EvaluationWrapper:
    """A schedule's world as agents see it, with an evaluator's notes around it.

    Args:
        schedule: the schedule.

    Raises:
        ExperimentError: if its environment does not exist.
        ScheduleError: if the schedule cannot be used.
    """
    try:
        return EvaluationWrapper(gym.make(str(schedule.env), schedule=schedule, text=True))
    except gym.error.Error as error:
        raise ExperimentError(f"{schedule.name}: {error}") from error


def make_prober(part: PartSpec, world: EvaluationWrapper) -> Prober:
    """Make a prober.

    Args:
        part: one of `registry.PROBERS`, with options; those of other packages are given the twin.
        world: the world in which the agent plays.

    Raises:
        UnknownNameError: if there is no such prober.
        ArgumentError: if it does not take one of the options.
    """
    if part.name == "replay_live":
        # Beneath the evaluator's notes, which follow the agent's own interactions.
        given: dict[str, Any] = {"world": world.env}
    elif part.name == "snapshot":
        given = {"twin": twin(world.env), "save": partial(snapshot, world.env)}
    else:
        given = {"twin": twin(world.env)}
    prober: Prober = PROBERS.make(part.name, **given, **part.options)
    return prober
