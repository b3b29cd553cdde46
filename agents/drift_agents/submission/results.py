"""Results as small files: the figures of a submission's episodes, without prompts, texts and seeds.

* `ResultFile` - one submission on one track
* `make_result` - from a checked submission
* `read_results` - the results of a folder
* `is_current` - whether a result was played on what is shipped now

A file holds one cell a line. Instances are numbered, so that results of a hidden track can be published before it is
revealed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import gymnasium as gym
from pydantic import BaseModel, ConfigDict, Field

from drift_agents.errors import DriftAgentsError, SubmissionError
from drift_agents.experiment.config import SweptValue
from drift_agents.experiment.folder import write_text
from drift_agents.experiment.logs import TEST
from drift_agents.experiment.worlds import read_schedule
from drift_agents.submission.bundle import CountStatement, Hash, PackageStatement, parse_model, read_json
from drift_agents.submission.checked import Checked
from drift_agents.submission.replay import REPRODUCED, Certificate
from drift_agents.types import SUPERVISION
from drift_envs.errors import DriftEnvsError

COLUMNS = (
    "phase",
    "score",
    "regret",
    "steps",
    "probe_steps",
    "probe_resets",
    "probe_purchases",
    "memory_size",
    "model_calls",
    "tokens_in",
    "tokens_out",
    "tokens_estimated",
    "cost",
)
"""The fields of an episode that are kept."""

NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,79}$"
"""Names on the board, which are names of files."""

_AXES = ("memory", "verifier", "controller", "team", "policy")
_DIGITS = 6
_LEFT_OUT = ("content", "description")


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ReplayStatement(_Model):
    """What a certificate says of a submission: how many cells were played again, with which sample."""

    cells: int
    of: int
    nonce: str
    platform: dict[str, str]


class ResultPlayer(_Model):
    """An agent or a reference: the labels of its parts, and the strongest supervision on any schedule."""

    memory: str
    verifier: str
    controller: str
    team: str
    policy: str
    supervision: str
    reference: str | None


class ResultCell(_Model):
    """The episodes of one player on one schedule with one instance.

    Args:
        player: its number.
        schedule: the schedule's name.
        instance: the number of the seed.
        columns: `COLUMNS` by name: one value for all episodes, or a list; phases as pairs of name and length.
    """

    player: int = Field(ge=0)
    schedule: str
    instance: int = Field(ge=0)
    columns: dict[str, Any]


class ResultFile(_Model):
    """One submission on one track.

    Args:
        format: the number of the format.
        name: the name on the board.
        about: one sentence by the participant.
        track: the track's digest.
        submission: the submission's digest.
        versions: those of the run.
        packages: other packages whose parts played.
        platform: where the submission was prepared.
        replayed: what was played again, `None` if nothing was.
        counts: sums over all lines.
        schedules: by name, what `run.json` says of them, without their content.
        players: who played.
        cells: the episodes.
    """

    format: Literal[1] = 1
    name: str = Field(pattern=NAME, max_length=80)
    about: str = ""
    track: Hash
    submission: Hash
    versions: dict[str, str]
    packages: tuple[PackageStatement, ...] = ()
    platform: dict[str, str]
    replayed: ReplayStatement | None = None
    counts: CountStatement
    schedules: dict[str, dict[str, Any]]
    players: tuple[ResultPlayer, ...]
    cells: tuple[ResultCell, ...]

    def rows(self) -> Iterator[dict[str, Any]]:
        """One row an episode, with the fields that rankings read; seeds are numbers of instances."""
        for cell in self.cells:
            player, about = self.players[cell.player], self.schedules[cell.schedule]
            values = {name: _unpack(name, cell.columns[name], about["episodes"]) for name in COLUMNS}
            who = {axis: getattr(player, axis) for axis in _AXES}
            for episode in range(about["episodes"]):
                yield {
                    "env": about["env"],
                    "schedule": cell.schedule,
                    "seed": cell.instance,
                    **who,
                    "stage": TEST,
                    "episode": episode,
                    **{name: column[episode] for name, column in values.items()},
                }


def make_result(checked: Checked, track: str, name: str, certificate: Certificate | None = None) -> ResultFile:
    """The result of a submission.

    Args:
        checked: a valid submission, whose instances are those of the track.
        track: the track's digest.
        name: the name on the board.
        certificate: of the submission.

    Raises:
        SubmissionError: if the submission or the name is not valid, or the certificate is another submission's, or
            says that lines differ.
    """
    if checked.findings or checked.statement is None or checked.experiment is None:
        raise SubmissionError("\n".join([f"{checked.folder}: the submission is not valid:", *checked.findings]))
    if re.fullmatch(NAME, name) is None or name == "track":
        raise SubmissionError(
            f"`name` should have letters, digits, `.`, `_` and `-`, and not be 'track'. Received {name!r}"
        )
    if certificate is not None and certificate.submission != checked.digest:
        raise SubmissionError(f"the certificate should be of this submission. Received one of {certificate.name!r}")
    if certificate is not None and certificate.outcome != REPRODUCED:
        raise SubmissionError(f"the certificate should say {REPRODUCED!r}. Received {certificate.outcome!r}")
    players: dict[tuple[str, ...], ResultPlayer] = {}
    for one in sorted(checked.manifest["players"], key=lambda one: -SUPERVISION.index(one["supervision"])):
        key = tuple(one[axis] for axis in _AXES)
        known = {field: one[field] for field in ResultPlayer.model_fields}
        players.setdefault(key, ResultPlayer(**known))
    numbers = {key: number for number, key in enumerate(players)}
    instances = {seed: number for number, seed in enumerate(checked.experiment.seeds)}
    cells = []
    for (schedule, seed, key), rows in groupby(
        (row for row in checked.rows if row["stage"] == TEST),
        lambda row: (row["schedule"], row["seed"], tuple(row[axis] for axis in _AXES)),
    ):
        own = list(rows)
        columns = {name: _pack(name, [row[name] for row in own]) for name in COLUMNS}
        cells.append(ResultCell(player=numbers[key], schedule=schedule, instance=instances[seed], columns=columns))
    return ResultFile(
        name=name,
        about=checked.statement.about,
        track=track,
        submission=checked.digest,
        versions=checked.statement.versions,
        packages=checked.statement.packages,
        platform=checked.statement.platform,
        replayed=None
        if certificate is None
        else ReplayStatement(
            cells=len(certificate.replayed.cells),
            of=certificate.replayed.of,
            nonce=certificate.replayed.nonce,
            platform=certificate.here.platform,
        ),
        counts=checked.statement.counts,
        schedules={
            schedule: {key: value for key, value in about.items() if key not in _LEFT_OUT}
            for schedule, about in checked.manifest["schedules"].items()
        },
        players=tuple(players.values()),
        cells=tuple(cells),
    )


def _pack(name: str, values: Sequence[Any]) -> Any:
    """A column in few bytes: one value, if all are equal; phases as pairs of name and length."""
    if name == "phase":
        return [[phase, len(list(same))] for phase, same in groupby(values)]
    short = [round(value, _DIGITS) if isinstance(value, float) else value for value in values]
    plain = [int(value) if isinstance(value, float) and value.is_integer() else value for value in short]
    return plain[0] if len(set(plain)) == 1 else plain


def _unpack(name: str, packed: Any, episodes: int) -> list[Any]:
    if name == "phase":
        values = [phase for phase, length in packed for _ in range(length)]
    else:
        values = packed if isinstance(packed, list) else [packed] * episodes
    if len(values) != episodes:
        raise SubmissionError(f"{name}: should have {episodes} values. Received {len(values)}")
    return values


def write_result(path: Path, result: ResultFile) -> None:
    """Write a result, a cell a line.

    Raises:
        ExperimentError: if the file cannot be written.
    """
    data = result.model_dump(mode="json")
    cells = data.pop("cells")
    head = json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False)
    lines = (json.dumps(cell, separators=(",", ":"), ensure_ascii=False, allow_nan=False) for cell in cells)
    write_text(path, head[:-2] + ',\n "cells": [\n' + ",\n".join(lines) + "\n ]\n}\n", make_folder=True)


def read_results(folder: Path, track: str) -> list[ResultFile]:
    """The results beside a track's file, by name.

    Args:
        folder: the track's folder; its file `track.json` is passed over.
        track: the track's digest.

    Raises:
        SubmissionError: if a file is no result, two have one name or one submission, or one is of another track.
    """
    results: dict[str, ResultFile] = {}
    for path in sorted(folder.glob("*.json")):
        if path.name == "track.json":
            continue
        result = parse_model(ResultFile, read_json(path), path)
        if result.track != track:
            raise SubmissionError(f"{path}: is a result of another track, or the track was changed since")
        if result.name in results or any(result.submission == other.submission for other in results.values()):
            raise SubmissionError(f"{path}: {result.name} is there twice")
        try:
            for _ in result.rows():
                pass
        except (SubmissionError, KeyError, IndexError, TypeError, ValueError) as error:
            raise SubmissionError(f"{path}: the cells are damaged: {error!r}") from error
        results[result.name] = result
    return list(results.values())


def is_current(name: str, about: Mapping[str, Any]) -> bool:
    """Whether a schedule was played as it is shipped now: the same content, on an environment that there still is.

    What changes dynamics or rewards of an environment gives it another id; what changes a schedule gives it another
    hash. Results with an old id or hash are legacy.

    Args:
        name: the schedule's name, with the value of a sweep at its end.
        about: what `run.json` says of it.

    Example:
        >>> shipped = read_schedule("frozen_lake/explicit")
        >>> is_current(shipped.name, {"env": shipped.env, "hash": shipped.content_hash()})
        True
        >>> is_current(shipped.name, {"env": shipped.env, "hash": "0" * 16})
        False
    """
    sweep = about.get("sweep")
    change = None if sweep is None else SweptValue(sweep["path"], sweep["value"])
    try:
        schedule = read_schedule(name if sweep is None else sweep["of"], change)
    except (DriftAgentsError, DriftEnvsError):
        return False
    return (schedule.content_hash(), schedule.env) == (about["hash"], about["env"]) and about["env"] in gym.registry
