"""Whether the content of `run.json` follows from the experiment that it states.

* `check_manifest` - compares both
* `RunStatement`, `ScheduleStatement`, `PlayerStatement` - the form of the file
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from drift_agents.experiment.config import Experiment
from drift_agents.experiment.folder import MANIFEST, find_differences
from drift_agents.experiment.plan import Cell, plan_cells
from drift_agents.submission.bundle import STATEMENT, Natural, parse_model, read_json
from drift_agents.submission.checked import WHO, Checked, identity_of
from drift_agents.types import SUPERVISION
from drift_envs.schedule.files import shipped_schedules
from drift_envs.schedule.loader import load_schedule


class ScheduleStatement(BaseModel):
    """What `run.json` says of a schedule; further keys are not read."""

    env: str
    hash: str
    content: dict[str, Any]
    visibility: str | None
    clock: str
    control: bool
    episodes: Natural
    sweep: dict[str, Any] | None = None


class PlayerStatement(BaseModel):
    """What `run.json` says of a player on a schedule."""

    schedule: str
    memory: str
    verifier: str
    controller: str
    team: str
    policy: str
    reference: str | None
    supervision: str


class RunStatement(BaseModel):
    """The content of `run.json`."""

    name: str
    config_hash: str
    versions: dict[str, str]
    experiment: dict[str, Any]
    schedules: dict[str, ScheduleStatement]
    players: list[PlayerStatement]
    cells: Natural


def check_manifest(found: Checked) -> Iterator[str]:
    """Compare `run.json` with the experiment that it states; fills `manifest`, `experiment` and `cells`.

    Args:
        found: the submission, with its statement.

    Yields:
        What is wrong, in words.

    Raises:
        SubmissionError: if the file does not have the form of a `run.json`.
        DriftEnvsError: if the content of a schedule cannot be used.
    """
    manifest = found.manifest = read_json(found.folder / MANIFEST)
    statement = found.statement
    stated_run = parse_model(RunStatement, manifest, Path(MANIFEST))
    experiment = found.experiment = parse_model(Experiment, stated_run.experiment, Path(f"{MANIFEST}: experiment"))
    schedules, players, versions = manifest["schedules"], manifest["players"], stated_run.versions
    if not experiment.config_hash() == stated_run.config_hash == (statement and statement.config_hash):
        yield f"{MANIFEST}: the configuration hash is not that of the experiment, {experiment.config_hash()}"
    if not experiment.name == stated_run.name == (statement and statement.name):
        yield f"{MANIFEST}: the name should be that of the experiment, {experiment.name!r}"
    if versions != (statement and statement.versions):
        yield f"{MANIFEST}: the versions are not those of {STATEMENT}"
    for package in statement.packages if statement else ():
        if versions.get(package.name) != package.version:
            yield (
                f"{STATEMENT}: {package.name} {package.version} did not play: the run has "
                f"{versions.get(package.name, 'no such package')}"
            )
    for name in experiment.schedules:
        if name not in shipped_schedules():
            yield f"{MANIFEST}: schedules should be shipped ones, so that others have them. Received {name!r}"
    found.cells = plan_cells(experiment)
    if stated_run.cells != len(found.cells):
        yield f"{MANIFEST}: states {stated_run.cells} cells, the experiment has {len(found.cells)}"
    places = {cell.place: cell for cell in reversed(found.cells)}
    if len(places) != len(schedules):
        yield f"{MANIFEST}: has {len(schedules)} schedules, the experiment {len(places)}"
        return
    for cell, (name, about) in zip(reversed(places.values()), schedules.items(), strict=True):
        for line in find_differences(about, _describe_schedule(experiment, cell, about)):
            yield f"{MANIFEST}: schedules.{name}: {line} (here: what experiment and content give)"
        if about["content"].get("name") != name:
            yield f"{MANIFEST}: schedules.{name}: the content is that of another schedule"
    names = found.names()
    expected = Counter((names[cell.place], *identity_of(cell), cell.reference) for cell in found.cells)
    stated = [(*(one.get(key) for key in WHO[:-1]), one["reference"]) for one in players]
    if set(expected) != set(stated) or len(stated) != len(set(stated)):
        yield f"{MANIFEST}: the players are not those of the experiment"
    if not {player.supervision for player in stated_run.players} <= set(SUPERVISION):
        yield f"{MANIFEST}: `supervision` should be one of {', '.join(SUPERVISION)}"


def _describe_schedule(experiment: Experiment, cell: Cell, about: Mapping[str, Any]) -> dict[str, Any]:
    """What `run.json` should say of a schedule, by its content and the experiment; lines are counted later."""
    schedule, world = load_schedule(about["content"]), experiment.world(cell.schedule)
    described = {
        "env": schedule.env,
        "hash": schedule.content_hash(),
        "content": json.loads(json.dumps(schedule.to_dict())),
        "visibility": schedule.visibility,
        "clock": schedule.clock,
        "control": schedule.control,
        "description": schedule.description,
        "episodes": about["episodes"],
    }
    if world.construction is not None and world.construction.episodes:
        described["construct"] = world.construction.model_dump(mode="json", exclude_defaults=True)
    if world.learning == "frozen":
        described["learning"] = "frozen"
    if cell.change is not None:
        described["sweep"] = {"of": cell.schedule, "path": cell.change.path, "value": cell.change.value}
    return described
