"""Results as small files: the figures of a submission's episodes, without prompts, texts and seeds.

* `ResultFile` - one submission on one track
* `make_result` - from a checked submission and its certificate
* `write_result`, `read_results` - one file, and those of a track's folder

A file holds one cell a line. Instances are numbered, so that results of a hidden track can be published before it is
revealed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby, product
from pathlib import Path
from typing import Any, Literal

from drift_agents.errors import SubmissionError
from drift_agents.experiment.folder import write_text
from drift_agents.experiment.logs import TEST
from drift_agents.experiment.pipe.player import SELF_REPORTED
from drift_agents.submission.bundle import Hash, Name, PackageStatement, StrictModel, parse_model, read_json
from drift_agents.submission.replay import Certificate
from drift_agents.submission.track import Track
from drift_agents.submission.validate import Checked
from drift_agents.types import SUPERVISION

AXES = ("memory", "verifier", "controller", "team", "policy")
COLUMNS = (
    "phase",
    "score",
    "regret",
    "steps",
    "probe_steps",
    "memory_size",
    "model_calls",
    "tokens_in",
    "tokens_out",
    "tokens_estimated",
    "cost",
)
"""The fields of an episode that are kept."""

Episode = tuple[str, float, float | None, int, int, int, int, int, int, int, float]
"""The values of `COLUMNS`."""

_LEFT_OUT = ("content", "description")


class ReplayStatement(StrictModel):
    """What a certificate says of a submission, without the names of cells, which hold seeds."""

    cells: int
    of: int
    nonce: str
    platform: dict[str, str]
    isolation: dict[str, bool]


class ResultPlayer(StrictModel):
    """An agent or a reference: the labels of its parts, and the strongest supervision on any schedule."""

    memory: str
    verifier: str
    controller: str
    team: str
    policy: str
    supervision: str
    reference: str | None

    @property
    def key(self) -> tuple[str, ...]:
        """The labels, in the order of `AXES`."""
        return tuple(getattr(self, axis) for axis in AXES)


class ResultCell(StrictModel):
    """The episodes of one player on one schedule with one instance, both by their numbers."""

    player: int
    schedule: str
    instance: int
    episodes: list[Episode]


class ResultFile(StrictModel):
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
        replayed: what was played again; `None` if nothing was.
        secret: whether the instances were secret when it was added.
        self_reported: the columns that the agents, other than references, report of themselves.
        schedules: by name, what `run.json` says of them, without their content.
        players: who played.
        cells: the episodes.
    """

    format: Literal[3] = 3
    name: Name
    about: str = ""
    track: Hash
    submission: Hash
    versions: dict[str, str]
    packages: tuple[PackageStatement, ...] = ()
    platform: dict[str, str]
    replayed: ReplayStatement | None = None
    secret: bool
    self_reported: tuple[str, ...]
    schedules: dict[str, dict[str, Any]]
    players: tuple[ResultPlayer, ...]
    cells: tuple[ResultCell, ...]

    @property
    def status(self) -> str:
        """Why its agents have no rank; empty if they have one."""
        return "not replayed" if self.replayed is None else "" if self.secret else "known instances"

    def rows(self) -> Iterator[dict[str, Any]]:
        """One row an episode, with the fields that rankings read; seeds are numbers of instances."""
        for cell in self.cells:
            player, about = self.players[cell.player], self.schedules[cell.schedule]
            who = {"env": about["env"], "schedule": cell.schedule, "seed": cell.instance, "stage": TEST}
            who |= dict(zip(AXES, player.key, strict=True))
            for number, episode in enumerate(cell.episodes):
                yield who | {"episode": number, **dict(zip(COLUMNS, episode, strict=True))}


def make_result(checked: Checked, track: Track, name: str, certificate: Certificate | None = None) -> ResultFile:
    """The result of a submission.

    Args:
        checked: a valid submission, whose instances are those of the track.
        track: the track.
        name: the name on the board.
        certificate: of the submission; without one its agents have no rank.

    Raises:
        SubmissionError: if the submission or the name is not valid, or the certificate is another submission's, or
            states differences.
    """
    if checked.findings or checked.statement is None or checked.experiment is None:
        raise SubmissionError("\n".join([f"{checked.folder}: the submission is not valid:", *checked.findings]))
    if certificate is not None and certificate.submission != checked.digest:
        raise SubmissionError(
            f"the certificate should be of this submission, {checked.digest}. Received one of {certificate.submission}"
        )
    if certificate is not None and certificate.differences:
        raise SubmissionError(
            "\n".join(["the certificate should state no difference. Received:", *certificate.differences])
        )
    players: dict[tuple[str, ...], ResultPlayer] = {}
    for one in sorted(checked.manifest["players"], key=lambda one: -SUPERVISION.index(one["supervision"])):
        player = ResultPlayer(**{field: one[field] for field in ResultPlayer.model_fields})
        players.setdefault(player.key, player)
    numbers = {key: number for number, key in enumerate(players)}
    instances = {seed: number for number, seed in enumerate(checked.experiment.seeds)}
    tests = (row for row in checked.rows if row["stage"] == TEST)
    cells = []
    for (schedule, seed, key), rows in groupby(
        tests, lambda row: (row["schedule"], row["seed"], tuple(row[axis] for axis in AXES))
    ):
        episodes = [tuple(_shorten(row[name]) for name in COLUMNS) for row in rows]
        cells.append({"player": numbers[key], "schedule": schedule, "instance": instances[seed], "episodes": episodes})
    data = {
        "name": name,
        "about": checked.statement.about,
        "track": track.digest(),
        "submission": checked.digest,
        "versions": checked.manifest["versions"],
        "packages": checked.statement.packages,
        "platform": checked.statement.platform,
        "replayed": None
        if certificate is None
        else {
            "cells": len(certificate.cells),
            "of": certificate.of,
            "nonce": certificate.nonce,
            "platform": certificate.platform,
            "isolation": certificate.isolation,
        },
        "secret": track.is_hidden and track.salt is None,
        "self_reported": [name for name in COLUMNS if name in SELF_REPORTED],
        "schedules": {
            schedule: {key: value for key, value in about.items() if key not in _LEFT_OUT}
            for schedule, about in checked.manifest["schedules"].items()
        },
        "players": tuple(players.values()),
        "cells": cells,
    }
    return parse_model(ResultFile, data, Path(f"{name}.json"))


def _shorten(value: Any) -> Any:
    return round(value, 6) if isinstance(value, float) else value


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


def read_results(folder: Path, track: Track) -> list[ResultFile]:
    """The results beside a track's file, by name.

    Args:
        folder: the track's folder; its file `track.json` is passed over.
        track: the track.

    Raises:
        SubmissionError: if a file is no result, two have one name or one submission, one is of another track, or
            has not all cells of the track.
    """
    schedules = {name: (one.hash, one.env) for name, one in track.schedules.items()}
    results: dict[str, ResultFile] = {}
    for path in sorted(folder.glob("*.json")):
        if path.name == "track.json":
            continue
        result = parse_model(ResultFile, read_json(path), path)
        played = {name: (about.get("hash"), about.get("env")) for name, about in result.schedules.items()}
        if result.track != track.digest() or played != schedules:
            raise SubmissionError(f"{path}: is a result of another track, or the track was changed since")
        if result.name in results or any(result.submission == other.submission for other in results.values()):
            raise SubmissionError(f"{path}: {result.name} is there twice")
        cells = sorted((cell.player, cell.schedule, cell.instance) for cell in result.cells)
        whole = sorted(product(range(len(result.players)), schedules, range(track.instances)))
        if cells != whole or any(
            len(cell.episodes) != result.schedules[cell.schedule].get("episodes") for cell in result.cells
        ):
            raise SubmissionError(f"{path}: should have all episodes of every agent and instance, each once")
        results[result.name] = result
    return list(results.values())
