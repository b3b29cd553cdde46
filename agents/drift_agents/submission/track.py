"""Tracks: the same schedules and instances for all agents, open or hidden until they are revealed.

* `Track` - schedules, lengths, and seeds or a commitment to them
* `AgentEntry` - an agent and its packages, as a participant hands them over
* `make_track`, `read_track` - from an experiment file without agents, and from a track's own file
* `new_salt`, `read_salt`, `check_salt` - the secret of a hidden track
* `seeds_of`, `commit` - its instances, and what is published before
* `read_agent`, `combine` - the agent of a file with its packages, and its experiment on a track
* `check_entry`, `check_track` - whether the installed packages, and a submission, are those of an entry and a track

Seeds of a hidden track are HMAC-SHA256 values (RFC 2104) under a salt of 32 random bytes: without the salt they are
indistinguishable from random ones. The published commitment is SHA-256 of the salt and the track's content, so that
neither can be changed afterwards.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from drift_agents.errors import SubmissionError
from drift_agents.experiment.config import SEED_STOP, Experiment
from drift_agents.experiment.environments import read_schedule
from drift_agents.experiment.folder import MANIFEST, find_differences
from drift_agents.experiment.loader import parse_experiment, read_yaml
from drift_agents.experiment.mistakes import COMMAND, FILE_NAME
from drift_agents.submission.bundle import Hash, Name, PackageStatement, StrictModel, parse_model, read_json
from drift_agents.submission.prepare import state_packages
from drift_agents.submission.validate import Checked
from drift_envs._version import __version__
from drift_envs.registration import IDS, knob_table_of
from drift_envs.schedule.timeline import Timeline

SALT_BYTES = 32
_TRIED, _FAR = 5, 1000  # seeds and ticks that are looked at
_COMMITMENT, _INSTANCE = b"drift-agents track 1\0", b"drift-agents instance 2\0"
_SETTINGS = ("schedules", "references", "rounds", "episodes", "sweep", "environments")
"""Keys of an experiment file that a track fixes; seeds and agents are apart."""


class TrackSchedule(StrictModel):
    """A schedule of a track: the hash of its content and the id of its environment, which are its version."""

    hash: str = Field(pattern=r"^[0-9a-f]{16}$")
    env: str


class Track(StrictModel):
    """The same schedules and instances for all agents.

    Args:
        format: the number of the format.
        name: its name.
        about: one sentence.
        version: of drift-envs, when the track was made.
        instances: how many seeds.
        first_seed: of an open track: the seeds are this one and those after it.
        commitment: of a hidden track: to the salt and to this content.
        salt: of a hidden track that was revealed, in hexadecimal digits.
        schedules: the schedules that are played, sweeps included.
        settings: what an experiment file says beside agents and seeds.
    """

    format: Literal[1] = 1
    name: Name
    about: str = Field(default="", max_length=1000)
    version: str
    instances: int = Field(strict=True, ge=1, le=10_000)
    first_seed: int | None = Field(default=None, strict=True, ge=0, lt=SEED_STOP)
    commitment: Hash | None = None
    salt: Hash | None = None
    schedules: dict[str, TrackSchedule]
    settings: dict[str, Any]

    @property
    def is_hidden(self) -> bool:
        """Whether its instances were derived from a salt, revealed or not."""
        return self.commitment is not None

    def digest(self) -> str:
        """The SHA-256 of the content, without commitment and salt: what salt, entries and results are bound to."""
        data = self.model_dump(mode="json", exclude={"commitment", "salt"})
        return hashlib.sha256(json.dumps(data, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


class AgentEntry(StrictModel):
    """An agent and its packages, as a participant hands them over.

    Args:
        track: the digest of the track that it enters.
        name: the agent's name.
        about: one sentence.
        agents: blocks of agents, as in an experiment file; they are the same on every schedule. A program of the
            participant's is a policy with its `command` and the texts of its `files`.
        packages: other packages of its parts, with their versions and the hash of their files.
    """

    track: Hash
    name: Name
    about: str = Field(default="", max_length=500)
    agents: list[dict[str, Any]]
    packages: tuple[PackageStatement, ...] = ()


def make_track(path: Path, salt: bytes | None = None) -> Track:
    """A track from an experiment file without agents.

    The reference `clairvoyant` is always played, since its interactions are the budget of the ranking.

    Args:
        path: the file; `seeds` are a number, or `{first: f, count: n}`.
        salt: the secret of a hidden track, which uses the number of the seeds alone.

    Raises:
        ExperimentError: if the file has mistakes.
        SubmissionError: if it names agents or lists seeds one by one.
    """
    data, line = read_yaml(path)
    if isinstance(data, Mapping):
        if "agents" in data:
            raise SubmissionError(f"{path}: agents: should not be in a track; agents enter it from files of their own")
        data = {**data, "agents": {"memory": "none", "policy": "random"}}
    experiment = parse_experiment(data, str(path), line)
    first, count = experiment.seeds[0], len(experiment.seeds)
    if experiment.seeds != tuple(range(first, first + count)) or any(
        settings.seeds is not None for settings in experiment.environments.values()
    ):
        raise SubmissionError(f"{path}: seeds: should be a number or `{{first: f, count: n}}`, for all schedules")
    plain = experiment.to_dict()
    track = Track(
        name=experiment.name,
        about=experiment.about,
        version=__version__,
        instances=count,
        first_seed=None if salt is not None else first,
        schedules=_schedules(experiment),
        settings={key: plain[key] for key in _SETTINGS if key in plain}
        | {"references": list(dict.fromkeys([*experiment.references, "clairvoyant"]))},
    )
    if "train" in plain or "learning" in plain:
        raise SubmissionError(f"{path}: a track should have no `train` and no `learning`: its agents play in processes")
    if salt is None:
        return track
    _check_secret(path, experiment)
    return track.model_copy(update={"commitment": commit(track, salt)})


def _check_secret(path: Path, experiment: Experiment) -> None:
    """Check that a salt hides something: the times of drifts, and maps where there are any, come from the seed.

    Raises:
        SubmissionError: if they are known without it.
    """
    for source in experiment.schedules:
        if experiment.settings_of(source).rounds is not None:
            raise SubmissionError(
                f"{path}: {source}: a hidden track should have `episodes`. With `rounds` drifts come after as many "
                "episodes as everyone can count"
            )
        for change in experiment.changes(source):
            schedule = read_schedule(source, change)
            if schedule.env not in IDS:
                continue
            drawn = [Timeline(schedule, knob_table_of(str(schedule.env)), seed) for seed in range(_TRIED)]
            starts = {tuple(phase.start for phase in one.phases(_FAR)) for one in drawn}
            maps = [one.values(0)["map"] for one in drawn if "map" in one.names]
            if len(starts) == 1 or (maps and all(one == maps[0] for one in maps)):
                what = "times of drifts" if len(starts) == 1 else "maps"
                raise SubmissionError(
                    f"{path}: {schedule.name}: a hidden track should draw maps and times from the seed. The {what} "
                    f"are the same with each of {_TRIED} seeds"
                )


def _schedules(experiment: Experiment) -> dict[str, TrackSchedule]:
    found = (read_schedule(source, change) for source in experiment.schedules for change in experiment.changes(source))
    return {one.name: TrackSchedule(hash=one.content_hash(), env=str(one.env)) for one in found}


def read_track(path: Path) -> Track:
    """A track from its file.

    Raises:
        SubmissionError: if the file holds none, or its salt is not the one that was committed to.
    """
    track = parse_model(Track, read_json(path), path)
    if (track.first_seed is None) == (track.commitment is None):
        raise SubmissionError(f"{path}: a track should have one of `first_seed` and `commitment`")
    if track.salt is not None:
        check_salt(track, bytes.fromhex(track.salt), str(path))
    return track


def new_salt(path: Path) -> bytes:
    """Draw a salt and write it to a new file that its owner alone can read.

    Raises:
        SubmissionError: if the file exists or cannot be written.
    """
    salt = secrets.token_bytes(SALT_BYTES)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(f"{salt.hex()}\n")
    except FileExistsError as error:
        raise SubmissionError(f"{path}: exists already; a salt is never overwritten") from error
    except OSError as error:
        raise SubmissionError(f"{path}: cannot be written: {error.strerror}") from error
    return salt


def read_salt(path: Path) -> bytes:
    """A salt from its file.

    Raises:
        SubmissionError: if the file does not hold one; the message does not show what it holds.
    """
    try:
        salt = bytes.fromhex(path.read_text("ascii").strip())
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it should hold hexadecimal digits"
        raise SubmissionError(f"{path}: the salt cannot be read: {reason}") from None
    if len(salt) != SALT_BYTES:
        raise SubmissionError(f"{path}: a salt should have {SALT_BYTES} bytes. Received {len(salt)}")
    return salt


def commit(track: Track, salt: bytes) -> str:
    """The commitment to a salt and a track: SHA-256 over both; the salt has a fixed length and stands first.

    Args:
        track: the track; its own commitment and salt do not count.
        salt: 32 bytes.
    """
    return hashlib.sha256(_COMMITMENT + salt + bytes.fromhex(track.digest())).hexdigest()


def check_salt(track: Track, salt: bytes, where: str) -> None:
    """Check that the salt is the one that a hidden track committed to.

    Raises:
        SubmissionError: if it is not, or the track is open.
    """
    if track.commitment is None:
        raise SubmissionError(f"{where}: {track.name} is an open track, which has no salt")
    if not hmac.compare_digest(commit(track, salt), track.commitment):
        raise SubmissionError(
            f"{where}: the salt is not the one that {track.name} committed to, or the track was changed since"
        )


def seeds_of(track: Track, salt: bytes | None = None) -> tuple[int, ...]:
    """The seeds of a track.

    Those of a hidden track are HMAC-SHA256 under the salt, of the track's digest and the number of the instance: the
    first seven bytes of each value, without the last three bits, are a seed.

    Args:
        track: the track.
        salt: of a hidden track that was not revealed.

    Raises:
        SubmissionError: if the track is hidden and no salt is known, or it is another one.
    """
    if track.first_seed is not None:
        return tuple(range(track.first_seed, track.first_seed + track.instances))
    if salt is None and track.salt is not None:
        salt = bytes.fromhex(track.salt)
    if salt is None:
        raise SubmissionError(f"{track.name}: is a hidden track: its instances need the salt of its organiser")
    check_salt(track, salt, track.name)
    about = _INSTANCE + bytes.fromhex(track.digest())
    values = (hmac.digest(salt, about + number.to_bytes(8, "big"), "sha256") for number in range(track.instances))
    return tuple(int.from_bytes(value[:7], "big") >> 3 for value in values)


def read_agent(path: Path, track: Track) -> AgentEntry:
    """The agent of a file: an entry (JSON), or YAML with `name`, `agents` and, if needed, `about`.

    Packages of a YAML file are looked up here; those of an entry stay as they are stated.

    Args:
        path: the file.
        track: the track that the agent enters.

    Raises:
        SubmissionError: if the file has other keys, or is an entry to another track.
        ExperimentError: if a part is unknown.
    """
    if path.suffix == ".json":
        entry = parse_model(AgentEntry, read_json(path), path)
        if entry.track != track.digest():
            raise SubmissionError(f"{path}: enters another track, or {track.name} was changed since")
        return entry
    data, _ = read_yaml(path)
    if not isinstance(data, Mapping) or not set(data) <= {"name", "about", "agents", "program", "files"}:
        raise SubmissionError(f"{path}: should have the keys `name`, `agents` or `program`, and no other but `about`")
    agents = _read_program(path, data) if "program" in data else data.get("agents")
    plain = {key: value for key, value in data.items() if key not in ("program", "files")}
    plain |= {"track": track.digest(), "agents": [agents] if isinstance(agents, Mapping) else agents}
    entry = parse_model(AgentEntry, plain, path)
    return entry.model_copy(update={"packages": state_packages(combine(track, entry, (0,)))})


def _read_program(path: Path, data: Mapping[str, Any]) -> dict[str, Any]:
    """The block of agents of a program: `program` with its arguments, and `files` beside the agent's file.

    Raises:
        SubmissionError: if `agents` are there too, or a file cannot be read.
    """
    names = data.get("files", [])
    if "agents" in data or not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise SubmissionError(f"{path}: `program` should stand without `agents`, and with a list of `files`, if any")
    files = {}
    for name in names:
        if FILE_NAME.fullmatch(name) is None:
            raise SubmissionError(f"{path}: files: should be names without a folder. Received {name!r}")
        try:
            files[name] = (path.parent / name).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "is not UTF-8"
            raise SubmissionError(f"{path}: files: {name} cannot be read: {reason}") from error
    return {"memory": "none", "policy": {str(data.get("name")): {COMMAND: data["program"], "files": files}}}


def combine(track: Track, entry: AgentEntry, seeds: tuple[int, ...]) -> Experiment:
    """The experiment of an agent on a track.

    Args:
        track: the track.
        entry: the agent.
        seeds: the instances.

    Raises:
        ExperimentError: if a part of the agent is unknown or has no such option.
        SubmissionError: if a schedule is not the track's any more.
    """
    name = f"{track.name}-{entry.name}"
    data = {**track.settings, "name": name, "agents": entry.agents, "seeds": list(seeds), "isolated": True}
    experiment = parse_experiment(data, entry.name)
    here = _schedules(experiment)
    for name, stated in track.schedules.items():
        if here.get(name) != stated:
            raise SubmissionError(
                f"{track.name}: {name} is not the schedule of the track any more ({stated.hash} on {stated.env}); the "
                f"track was made with drift-envs {track.version}"
            )
    return experiment


def check_entry(entry: AgentEntry, experiment: Experiment) -> None:
    """Check that the packages installed here are those that the participant stated, file by file.

    Args:
        entry: the entry.
        experiment: its experiment on a track.

    Raises:
        SubmissionError: if one is missing, or has another version or other files.
    """
    stated, here = (
        ", ".join(f"{package.name} {package.version} (files {package.sha256[:16]})" for package in packages)
        for packages in (entry.packages, state_packages(experiment))
    )
    if stated != here:
        raise SubmissionError(f"{entry.name}: {stated or 'no package'} should be installed. Received {here or 'none'}")


def check_track(checked: Checked, track: Track, salt: bytes | None = None) -> Iterator[str]:
    """What of a submission is not as the track has it.

    Args:
        checked: a valid submission.
        track: the track.
        salt: of a hidden track that was not revealed.

    Yields:
        A sentence for each difference.

    Raises:
        SubmissionError: if the seeds of the track are unknown.
    """
    seeds = seeds_of(track, salt)
    if checked.experiment is None:
        yield f"{MANIFEST}: describes no run"
        return
    if checked.experiment.seeds != seeds:
        yield f"{MANIFEST}: the seeds are not the {len(seeds)} of {track.name}"
    plain = checked.experiment.to_dict()
    there = {key: plain[key] for key in _SETTINGS if key in plain}
    for line in find_differences(there, track.settings):
        yield f"{MANIFEST}: {line} (there: submitted, here: {track.name})"
    found = (TrackSchedule(hash=one.content_hash(), env=str(one.env)) for one in checked.schedules.values())
    if dict(zip(checked.manifest["schedules"], found, strict=True)) != track.schedules:
        yield f"{MANIFEST}: the schedules, by hash, are not those of {track.name}"
