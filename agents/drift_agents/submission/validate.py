"""What can be checked of a submission without playing and without the agent's package.

* `check_submission` - files, hashes, the description of the run, and lines
* `Checked` - a submission as it was read, and everything that is wrong in it
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field

from drift_agents.errors import DriftAgentsError
from drift_agents.experiment.config import Experiment
from drift_agents.experiment.environments import read_schedule
from drift_agents.experiment.folder import EPISODES, FINISHED, MANIFEST, REPLIES, RunFolder, find_differences
from drift_agents.experiment.logs import TEST, read_rows
from drift_agents.experiment.manifest import describe_schedule
from drift_agents.experiment.plan import Cell, PlannedEpisode, plan_cells, plan_episodes
from drift_agents.submission.bundle import NAMES, STATEMENT, Statement, hash_file, parse_model, read_json
from drift_agents.types import SUPERVISION
from drift_envs.errors import DriftEnvsError
from drift_envs.registration import IDS, knob_table_of
from drift_envs.schedule.files import shipped_schedules
from drift_envs.schedule.model import Schedule
from drift_envs.schedule.timeline import Timeline

MOST_FINDINGS = 20
"""The most findings that are listed."""

_WHO = ("schedule", "memory", "verifier", "controller", "team", "policy", "seed")
"""The fields of a line that name its cell."""

Row = Mapping[str, Any]


class _RunStatement(BaseModel):
    """What is read of `run.json` before it is compared with what it should be."""

    experiment: dict[str, Any]
    versions: dict[str, str]
    schedules: dict[str, dict[str, Any]]
    players: list[dict[str, Any]]
    cells: Annotated[int, Field(strict=True)]


@dataclass
class Checked:
    """A submission as it was read.

    Args:
        folder: its folder.
        digest: the hash of `submission.json`, which stands for the whole; empty if that cannot be read.
        statement: the content of `submission.json`.
        manifest: the content of `run.json`.
        experiment: the experiment; names of parts are not looked up, since their packages may be missing here.
        cells: the cells of the experiment.
        schedules: the schedule of each place of a cell.
        places: where the lines of each cell begin in the file, and how many bytes they have, by the cell's key.
        rows: all rows, in the order of the lines.
        findings: everything that is wrong, in words.
    """

    folder: Path
    digest: str = ""
    statement: Statement | None = None
    manifest: dict[str, Any] = field(default_factory=dict)
    experiment: Experiment | None = None
    cells: tuple[Cell, ...] = ()
    schedules: dict[str, Schedule] = field(default_factory=dict)
    places: dict[str, tuple[int, int]] = field(default_factory=dict)
    rows: Sequence[Row] = ()
    findings: list[str] = field(default_factory=list)

    def read_lines(self, cell: Cell) -> list[bytes]:
        """The lines of a cell, without their ends.

        Args:
            cell: one of `cells`.
        """
        begin, size = self.places[cell.key]
        with open(self.folder / EPISODES, "rb") as file:
            file.seek(begin)
            return file.read(size)[:-1].split(b"\n")


def check_submission(folder: Path) -> Checked:
    """Check a submission without playing; no part of an agent is imported.

    Args:
        folder: the submission's folder.

    Returns:
        What was found. The first check that finds a fault is the last one, so that one fault is reported once.
    """
    found = Checked(folder)
    try:
        for check in (_check_files, _check_run, _check_lines):
            found.findings += shorten(check(found))
            if found.findings:
                break
    except (DriftAgentsError, DriftEnvsError) as error:
        found.findings += str(error).replace(f"{found.folder}/", "").splitlines()
    except RecursionError:
        found.findings += ["a file is nested too deeply"]
    return found


def shorten(findings: Iterable[str]) -> list[str]:
    """The first findings, and how many more there are."""
    kept = list(findings)
    rest = len(kept) - MOST_FINDINGS
    return kept if rest <= 0 else [*kept[:MOST_FINDINGS], f"and {rest} more"]


def _check_files(found: Checked) -> Iterator[str]:
    """Names and hashes; fills `statement` and `digest`."""
    path = found.folder / STATEMENT
    found.digest = hash_file(path)
    found.statement = parse_model(Statement, read_json(path), path)
    stated = found.statement.files
    for name in sorted(set(stated) - set(NAMES)):
        yield f"{STATEMENT}: states {name!r}, which is no file of a submission"
    for name in NAMES[1:]:
        if name not in stated and name != REPLIES:
            yield f"{STATEMENT}: does not state {name}"
    present = {path.name for path in found.folder.iterdir()} - {STATEMENT}
    for name in sorted(present - set(stated)):
        yield f"{name}: is not stated in {STATEMENT}"
    for name in (name for name in NAMES[1:] if name in stated):
        if name not in present:
            yield f"{name}: is missing"
        elif (real := hash_file(found.folder / name)) != stated[name]:
            yield f"{name}: is not the stated file: SHA-256 {stated[name][:12]}... stated, {real[:12]}... found"


def _check_run(found: Checked) -> Iterator[str]:
    """Compare `run.json` with what its experiment gives; fills `manifest`, `experiment`, `cells` and `schedules`."""
    manifest = found.manifest = read_json(found.folder / MANIFEST)
    run = parse_model(_RunStatement, manifest, Path(MANIFEST))
    experiment = found.experiment = parse_model(Experiment, run.experiment, Path(f"{MANIFEST}: experiment"))
    for name in experiment.schedules:
        if name not in shipped_schedules():  # a path would be one of this machine
            yield f"{MANIFEST}: schedules should be shipped ones, so that others have them. Received {name!r}"
            return
    if not experiment.isolated:
        yield f"{MANIFEST}: should be a run of `drift-agents track run`, whose agents have processes of their own"
        return
    found.cells = plan_cells(experiment)
    first = {cell.place: cell for cell in reversed(found.cells)}
    found.schedules = {place: read_schedule(cell.schedule, cell.change) for place, cell in reversed(first.items())}
    expected = {
        "name": experiment.name,
        "config_hash": experiment.config_hash(),
        "versions": run.versions,
        "experiment": experiment.to_dict(),
        "schedules": {
            schedule.name: describe_schedule(
                experiment, first[place], schedule, _count_episodes(experiment, first[place], schedule, run)
            )
            for place, schedule in found.schedules.items()
        },
        "players": [
            dict(zip(_WHO[:-1], _identity(found, cell)[:-1], strict=True)) | {"reference": cell.reference}
            for cell in found.cells
            if cell.seed == experiment.seeds_of(cell.schedule)[0]
        ],
        "cells": len(found.cells),
    }
    players = [dict(player) for player in run.players]
    supervision = [player.pop("supervision", None) for player in players]  # agents would have to be made
    for line in find_differences({**manifest, "players": players}, expected):
        yield f"{MANIFEST}: {line} (there: submitted)"
    for one in supervision:
        if one not in SUPERVISION:
            yield f"{MANIFEST}: `supervision` should be one of {', '.join(SUPERVISION)}. Received {one!r}"
    for package in found.statement.packages if found.statement else ():
        if run.versions.get(package.name) != package.version:
            here = run.versions.get(package.name, "no such package")
            yield f"{STATEMENT}: {package.name} {package.version} did not play: the run has {here}"


def _identity(found: Checked, cell: Cell) -> tuple[Any, ...]:
    """The values of `_WHO` in the lines of a cell."""
    memory, verifier, policy = cell.labels
    return found.schedules[cell.place].name, memory, verifier, *cell.decision.labels, policy, cell.seed


def _count_episodes(experiment: Experiment, cell: Cell, schedule: Schedule, run: _RunStatement) -> Any:
    """How many episodes a cell has; what the run states, for environments of other packages."""
    planned = _plan(experiment, cell, schedule)
    return run.schedules.get(schedule.name, {}).get("episodes") if planned is None else len(planned[1])


_Plan = tuple[Timeline, tuple[PlannedEpisode, ...]]


def _plan(experiment: Experiment, cell: Cell, schedule: Schedule) -> _Plan | None:
    """The timeline and the episodes of an instance; `None` for environments of other packages."""
    if schedule.env not in IDS:
        return None
    timeline = Timeline(schedule, knob_table_of(str(schedule.env)), cell.seed)
    return timeline, plan_episodes(schedule, timeline, experiment.settings_of(cell.schedule))


def _check_lines(found: Checked) -> Iterator[str]:
    """Compare the lines with the planned cells; fills `rows` and `places`."""
    path = found.folder / EPISODES
    rows = found.rows = read_rows(path)
    played = [(who, len(list(own))) for who, own in groupby(tuple(row[name] for name in _WHO) for row in rows)]
    planned = [_identity(found, cell) for cell in found.cells]
    if any(row["model_calls"] for row in rows) and not (found.folder / REPLIES).is_file():
        yield f"{REPLIES}: is missing, although language models were asked: no cell could be played again"
    line = 1
    for wanted, (who, count) in zip([*planned, None], [*played, (None, 0)], strict=False):
        if who != wanted:
            one, other = (" ".join(map(str, words)) if words else "no cell" for words in (wanted, who))
            yield f"{EPISODES}:{line}: should be a line of {one}. Received one of {other}"
            return
        line += count
    finished = RunFolder(found.folder).finished()
    if set(finished) != {cell.key for cell in found.cells}:
        yield f"{FINISHED}: does not name exactly the cells of the experiment"
    plans: dict[tuple[str, int], _Plan | None] = {}
    line = 1
    with open(path, "rb") as file:
        for cell, (_, count) in zip(found.cells, played, strict=True):
            begin = file.tell()
            content = b"".join(file.readline() for _ in range(count))
            found.places[cell.key] = (begin, len(content))
            if finished.get(cell.key) != hashlib.sha256(content).hexdigest():
                yield f"{EPISODES}:{line}: the lines of {cell.key} are not those that {FINISHED} states"
            instance = (cell.place, cell.seed)
            if instance not in plans and found.experiment is not None:
                plans[instance] = _plan(found.experiment, cell, found.schedules[cell.place])
            yield from _check_cell(found, cell, rows[line - 1 : line - 1 + count], line, plans[instance])
            line += count


def _check_cell(found: Checked, cell: Cell, rows: Sequence[Row], first: int, plan: _Plan | None) -> Iterator[str]:
    """The lines of one cell, up to the first that is not as planned."""
    schedule = found.schedules[cell.place]
    about = found.manifest["schedules"][schedule.name]
    if len(rows) != about["episodes"]:
        yield f"{EPISODES}:{first}: {cell.key} should have {about['episodes']} episodes. Received {len(rows)}"
        return
    for at, row in enumerate(rows):
        wanted = {"episode": at, "env": about["env"], "schedule_hash": about["hash"]}
        wanted["stage"] = TEST
        if plan is not None:
            timeline, planned = plan
            episode = planned[at]
            by_episode = schedule.clock == "episode"
            wanted["tick"] = episode.tick if episode.tick is not None else at if by_episode else row["tick"]
            wanted["phase"] = timeline.phase(max(wanted["tick"], 0)).id
            wanted["round"] = row["round"] if episode.round is None else episode.round
        for name, value in wanted.items():
            if row[name] != value:
                yield f"{EPISODES}:{first + at}: `{name}` should be {value!r}. Received {row[name]!r}"
                return
