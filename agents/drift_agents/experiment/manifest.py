"""What a run plays, in words that another run can be compared with: the content of `run.json`.

* `describe` - makes every player once, so that errors are raised before anything is played
* `describe_schedule` - what it says of a schedule
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from importlib.metadata import packages_distributions, version
from typing import Any

import gymnasium as gym

from drift_agents.errors import DriftAgentsError, ExperimentError, PartError
from drift_agents.experiment.config import Experiment, ScheduleSettings
from drift_agents.experiment.environments import read_schedule
from drift_agents.experiment.episode import CellSetup, make_setup
from drift_agents.experiment.evaluation_wrapper import EvaluationWrapper
from drift_agents.experiment.folder import versions
from drift_agents.experiment.mistakes import texts_in
from drift_agents.experiment.plan import Cell
from drift_agents.experiment.training import has_training
from drift_agents.interruption import one_process
from drift_agents.llm.service import Service
from drift_agents.registry import REGISTRIES
from drift_envs.schedule.model import Schedule


def describe(
    experiment: Experiment, cells: tuple[Cell, ...], service: Service | None = None
) -> tuple[dict[str, Any], dict[str, int]]:
    """What is played: the content of `run.json`, and how many episodes each cell has, by its key.

    Every player is made once, so that errors are raised before anything is played.

    Args:
        experiment: the experiment.
        cells: its cells.
        service: the service of language models, if there are any.

    Raises:
        ExperimentError: if a part cannot be made, or two schedules have one name.
        PartError: if a part of one's own cannot be used.
    """
    with ExitStack() as environments:
        return _describe(experiment, cells, service, environments)


def _describe(
    experiment: Experiment, cells: tuple[Cell, ...], service: Service | None, environments: ExitStack
) -> tuple[dict[str, Any], dict[str, int]]:
    schedules: dict[str, dict[str, Any]] = {}
    players: list[dict[str, Any]] = []
    lengths: dict[str, int] = {}
    made: dict[str, EvaluationWrapper] = {}
    for cell in cells:
        if cell.seed != experiment.seeds_of(cell.schedule)[0]:
            continue
        # One environment a place: a browser takes seconds to start.
        player = _make(cell, experiment.settings_of(cell.schedule), service, made.get(cell.place))
        schedule = player.schedule
        if cell.place not in made:
            made[cell.place] = player.env
            environments.callback(player.env.close)
            if schedule.name in schedules:
                raise ExperimentError(f"{experiment.name}: two schedules have the name {schedule.name!r}")
            lengths[cell.place] = len(player.episodes)
            schedules[schedule.name] = describe_schedule(experiment, cell, schedule, len(player.episodes))
        memory, verifier, policy = cell.labels
        players.append(
            {
                "schedule": schedule.name,
                "memory": memory,
                "verifier": verifier,
                "policy": policy,
                "controller": cell.decision.labels[0],
                "team": cell.decision.labels[1],
                "reference": cell.reference,
                "supervision": player.supervision,
            }
        )
    manifest = {
        "name": experiment.name,
        "config_hash": experiment.config_hash(),
        "versions": {**versions(), **_part_versions(experiment)},
        "experiment": experiment.to_dict(),
        "schedules": schedules,
        "players": players,
        "cells": len(cells),
    }
    return manifest, {cell.key: lengths[cell.place] + _training_episodes(experiment, cell) for cell in cells}


def _training_episodes(experiment: Experiment, cell: Cell) -> int:
    training = experiment.settings_of(cell.schedule).training
    return training.episodes * training.epochs if training is not None and has_training(cell, training) else 0


def _part_versions(experiment: Experiment) -> dict[str, str]:
    """The versions of other packages of which the experiment names parts or environments.

    Every text of the experiment that is the name of another package's part counts, since options name parts too.
    """
    words = {text for _, text in texts_in(experiment.to_dict())}
    found = {word: registry.entry_point(word) for registry in REGISTRIES.values() for word in words}
    named = {point.dist.metadata["Name"]: point.dist.version for point in found.values() if point and point.dist}
    for source in experiment.schedules:
        spec = gym.registry.get(str(read_schedule(source).env))
        target = "" if spec is None or spec.entry_point is None else spec.entry_point
        module = (target if isinstance(target, str) else target.__module__).partition(":")[0].partition(".")[0]
        for owner in packages_distributions().get(module, ())[:1] if module not in _OURS else ():
            named[owner] = version(owner)
    return dict(sorted(named.items()))


_OURS = ("", "drift_envs", "gymnasium")
"""Modules whose versions every run holds; no module where a function makes the environment."""


def describe_schedule(experiment: Experiment, cell: Cell, schedule: Schedule, episodes: int | None) -> dict[str, Any]:
    """What `run.json` says of a schedule.

    Args:
        experiment: the experiment.
        cell: one of its cells there.
        schedule: the schedule, with the value that a sweep sets.
        episodes: how many are played; `None` where only playing shows it.
    """
    settings = experiment.settings_of(cell.schedule)
    described = {
        "env": schedule.env,
        "hash": schedule.content_hash(),
        "content": json.loads(json.dumps(schedule.to_dict())),  # as it is read again
        "visibility": schedule.visibility,
        "clock": schedule.clock,
        "control": schedule.control,
        "description": schedule.description,
        "episodes": episodes,
    }
    if settings.training is not None and settings.training.episodes:
        described["train"] = settings.training.model_dump(mode="json", exclude_defaults=True)
    if settings.learning == "frozen":
        described["learning"] = "frozen"
    if cell.change is not None:
        name = read_schedule(cell.schedule).name
        described["sweep"] = {"of": name, "path": cell.change.path, "value": cell.change.value}
    return described


def _make(cell: Cell, settings: ScheduleSettings, service: Service | None, env: EvaluationWrapper | None) -> CellSetup:
    try:
        with one_process():
            return make_setup(cell, settings, service, env=env)
    except PartError:
        raise
    except DriftAgentsError as error:
        raise ExperimentError(
            f"{cell.place}, {' + '.join((*cell.labels, *cell.decision.non_default_labels))}: {error}"
        ) from error
