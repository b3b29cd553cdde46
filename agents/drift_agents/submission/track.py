"""Tracks: the same schedules and instances for all agents, open or hidden until they are revealed.

* `Track` - schedules, lengths, and seeds or a commitment to them
* `AgentEntry` - an agent and its packages, as a participant hands them over
* `make_track`, `read_track` - from an experiment file without agents, and from a track's own file
* `new_salt`, `read_salt` - the secret of a hidden track
* `derive_seeds`, `commit` - its instances, and what is published before
* `read_agent`, `make_entry` - the agent of a file, with its packages
* `combine` - the experiment of an agent on a track
* `check_entry`, `check_track` - whether the installed packages, and a submission, are those of an entry and a track
* `find_fixed` - schedules that are the same for all seeds

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

import gymnasium as gym
from pydantic import BaseModel, ConfigDict, Field

from drift_agents.errors import SubmissionError
from drift_agents.experiment.config import SEED_STOP, Experiment
from drift_agents.experiment.loader import parse_experiment, read_yaml
from drift_agents.experiment.worlds import make_world, read_schedule
from drift_agents.submission.bundle import Hash, PackageStatement, parse_model, read_json
from drift_agents.submission.checked import Checked
from drift_agents.submission.prepare import state_packages
from drift_envs._version import __version__

SALT_BYTES = 32
_COMMITMENT, _INSTANCE = b"drift-agents track 1\0", b"drift-agents instance 1\0"
_SETTINGS = ("schedules", "references", "rounds", "episodes", "sweep", "construct", "learning", "worlds")
"""Keys of an experiment file that a track fixes; seeds and agents are apart."""
_OWN = {"matching", "recall", "memory", "verifier", "controller", "team", "policy"}
"""Keys under `worlds` that belong to an agent; the others are the track's."""
_PLACEHOLDER = {"memory": "none", "policy": "random"}


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TrackSchedule(_Model):
    """A schedule of a track, with the hash of its content and the id of its environment."""

    hash: str = Field(pattern=r"^[0-9a-f]{16}$")
    env: str


class Track(_Model):
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
        beacon_source: of a hidden track: which public random value, unknown at the commitment, its seeds depend on.
        beacon: that value, once it is known.
        schedules: the schedules that are played, sweeps included.
        settings: what an experiment file says beside agents and seeds.
    """

    format: Literal[1] = 1
    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=80)
    about: str = Field(default="", max_length=1000)
    version: str
    instances: int = Field(strict=True, ge=1, le=10_000)
    first_seed: int | None = Field(default=None, strict=True, ge=0, lt=SEED_STOP)
    commitment: Hash | None = None
    salt: Hash | None = None
    beacon_source: str = Field(default="", max_length=300)
    beacon: str | None = Field(default=None, min_length=1, max_length=1000)
    schedules: dict[str, TrackSchedule]
    settings: dict[str, Any]

    @property
    def is_hidden(self) -> bool:
        """Whether its instances were derived from a salt, revealed or not."""
        return self.commitment is not None

    def digest(self) -> str:
        """The SHA-256 of the content, without commitment, salt and beacon: what the salt and entries are bound to."""
        later = {"commitment", "salt", "beacon"} | ({"beacon_source"} if not self.beacon_source else set())
        data = self.model_dump(mode="json", exclude=later)
        return hashlib.sha256(json.dumps(data, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


class AgentEntry(_Model):
    """An agent and its packages, as a participant hands them over.

    Args:
        format: the number of the format.
        track: the digest of the track that it enters.
        name: the agent's name.
        about: one sentence.
        agents: blocks of agents, as in an experiment file.
        worlds: options of its parts on single schedules.
        packages: other packages of its parts, with their versions and the hash of their files.
    """

    format: Literal[1] = 1
    track: Hash
    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=80)
    about: str = Field(default="", max_length=500)
    agents: list[dict[str, Any]]
    worlds: dict[str, dict[str, Any]] = Field(default_factory=dict)
    packages: tuple[PackageStatement, ...] = ()


def make_track(path: Path, salt: bytes | None = None, beacon_source: str = "") -> Track:
    """A track from an experiment file without agents.

    The reference `clairvoyant` is always played, since its interactions are the budget of the ranking.

    Args:
        path: the file; `seeds` are a number, or `{first: f, count: n}`.
        salt: the secret of a hidden track, which uses the number of the seeds alone.
        beacon_source: the public random value that is mixed in.

    Raises:
        ExperimentError: if the file has mistakes.
        SubmissionError: if it names agents, lists seeds one by one, or a schedule is not a shipped one.
    """
    data, line = read_yaml(path)
    if isinstance(data, Mapping) and "agents" in data:
        raise SubmissionError(f"{path}: agents: should not be in a track; agents enter it from files of their own")
    if isinstance(data, Mapping):
        data = {**data, "agents": _PLACEHOLDER}
    experiment = parse_experiment(data, str(path), line)
    first, count = experiment.seeds[0], len(experiment.seeds)
    if experiment.seeds != tuple(range(first, first + count)) or any(
        world.seeds is not None for world in experiment.worlds.values()
    ):
        raise SubmissionError(f"{path}: seeds: should be a number or `{{first: f, count: n}}`, for all schedules")
    plain = experiment.to_dict()
    own = {key for world in plain.get("worlds", {}).values() for key in world if key in _OWN}
    if own:
        raise SubmissionError(f"{path}: worlds: should leave {', '.join(sorted(own))} to the agents")
    settings = {key: plain[key] for key in _SETTINGS if key in plain}
    settings["references"] = list(dict.fromkeys([*experiment.references, "clairvoyant"]))
    track = Track(
        name=experiment.name,
        about=experiment.about,
        version=__version__,
        instances=count,
        first_seed=None if salt is not None else first,
        beacon_source=beacon_source,
        schedules=_schedules(experiment),
        settings=settings,
    )
    return track if salt is None else track.model_copy(update={"commitment": commit(track, salt)})


def _schedules(experiment: Experiment) -> dict[str, TrackSchedule]:
    found = {}
    for source in experiment.schedules:
        for change in experiment.changes(source):
            schedule = read_schedule(source, change)
            found[schedule.name] = TrackSchedule(hash=schedule.content_hash(), env=str(schedule.env))
    return found


def read_track(path: Path) -> Track:
    """A track from its file.

    Raises:
        SubmissionError: if the file holds none, or its salt is not the one that was committed to.
    """
    track = parse_model(Track, read_json(path), path)
    if (track.first_seed is None) == (track.commitment is None):
        raise SubmissionError(f"{path}: a track should have one of `first_seed` and `commitment`")
    if (track.beacon is not None and not track.beacon_source) or (track.beacon_source and not track.is_hidden):
        raise SubmissionError(f"{path}: a beacon should stand with its source, in a hidden track")
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


def derive_seeds(track: Track, salt: bytes) -> tuple[int, ...]:
    """The seeds of a hidden track: HMAC-SHA256 under the salt, of the track's digest and the number of the instance.

    The first four bytes of each value are a seed; one that came before is passed over. The value of a beacon is part
    of each message, so that an organiser who draws the salt cannot choose the seeds.

    Args:
        track: the track.
        salt: 32 bytes.
    """
    beacon = b"" if track.beacon is None else hashlib.sha256(track.beacon.encode()).digest()
    seeds: dict[int, None] = {}
    number = 0
    while len(seeds) < track.instances:
        message = _INSTANCE + bytes.fromhex(track.digest()) + number.to_bytes(8, "big") + beacon
        seeds[int.from_bytes(hmac.digest(salt, message, "sha256")[:4], "big")] = None
        number += 1
    return tuple(seeds)


def seeds_of(track: Track, salt: bytes | None = None) -> tuple[int, ...]:
    """The seeds of a track.

    Args:
        track: the track.
        salt: of a hidden track that was not revealed.

    Raises:
        SubmissionError: if the track is hidden and no salt is known, it is another one, or its beacon is not known.
    """
    if track.first_seed is not None:
        return tuple(range(track.first_seed, track.first_seed + track.instances))
    if salt is None and track.salt is not None:
        salt = bytes.fromhex(track.salt)
    if salt is None:
        raise SubmissionError(f"{track.name}: is a hidden track: its instances need the salt of its organiser")
    check_salt(track, salt, track.name)
    if track.beacon_source and track.beacon is None:
        raise SubmissionError(
            f"{track.name}: its seeds depend on {track.beacon_source!r}: give the value with `drift-agents track close`"
        )
    return derive_seeds(track, salt)


def read_agent(path: Path, track: Track) -> AgentEntry:
    """The agent of a file: an entry (JSON), or YAML with `name`, `agents` and, if needed, `about` and `worlds`.

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
    if not isinstance(data, Mapping) or not set(data) <= {"name", "about", "agents", "worlds"}:
        raise SubmissionError(f"{path}: should have the keys `name`, `agents`, and no others but `about` and `worlds`")
    agents = data.get("agents")
    plain = {**data, "agents": [agents] if isinstance(agents, Mapping) else agents}
    return make_entry(parse_model(AgentEntry, {"track": track.digest(), **plain}, path), track)


def make_entry(entry: AgentEntry, track: Track) -> AgentEntry:
    """The entry with the packages that are installed here."""
    experiment = combine(track, entry, (0,))
    return entry.model_copy(update={"packages": state_packages(experiment)})


def combine(track: Track, entry: AgentEntry, seeds: tuple[int, ...]) -> Experiment:
    """The experiment of an agent on a track.

    Args:
        track: the track.
        entry: the agent.
        seeds: the instances.

    Raises:
        ExperimentError: if a part of the agent is unknown or has no such option.
        SubmissionError: if the agent sets what the track fixes, or a schedule is not the track's any more.
    """
    worlds: dict[str, Any] = {name: dict(world) for name, world in track.settings.get("worlds", {}).items()}
    for name, own in entry.worlds.items():
        if not set(own) <= _OWN:
            raise SubmissionError(
                f"{entry.name}: worlds.{name}: should set {', '.join(sorted(_OWN))} only, the rest is the track's. "
                f"Received {', '.join(sorted(set(own) - _OWN))}"
            )
        worlds[name] = {**worlds.get(name, {}), **own}
    experiment = parse_experiment(
        {
            **track.settings,
            "worlds": worlds,
            "name": f"{track.name}-{entry.name}",
            "agents": entry.agents,
            "seeds": list(seeds),
        },
        entry.name,
    )
    here = _schedules(experiment)
    for name, stated in track.schedules.items():
        if here.get(name) != stated:
            raise SubmissionError(
                f"{track.name}: {name} is not the schedule of the track any more ({stated.hash} on {stated.env}); the "
                f"track was made with drift-envs {track.version}"
            )
    return experiment


def check_entry(entry: AgentEntry, track: Track) -> None:
    """Check that the packages installed here are those that the participant stated, file by file.

    Raises:
        SubmissionError: if one is missing, or has another version or other files.
    """
    stated, here = (
        ", ".join(f"{package.name} {package.version} (files {package.sha256[:16]})" for package in packages)
        for packages in (entry.packages, make_entry(entry, track).packages)
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
        yield "run.json: describes no run"
        return
    if checked.experiment.seeds != seeds:
        yield f"run.json: the seeds are not the {len(seeds)} of {track.name}"
    plain = checked.experiment.to_dict()
    worlds = {
        name: fixed
        for name, world in plain.get("worlds", {}).items()
        if (fixed := {key: value for key, value in world.items() if key not in _OWN})
    }
    own = {key: plain[key] for key in _SETTINGS if key in plain} | {"worlds": worlds}
    for key in _SETTINGS:
        default: Any = {} if key == "worlds" else None
        if own.get(key, default) != track.settings.get(key, default):
            yield f"run.json: {key}: is not as in {track.name}"
    stated = {name: (about["hash"], about["env"]) for name, about in checked.manifest["schedules"].items()}
    if stated != {name: (schedule.hash, schedule.env) for name, schedule in track.schedules.items()}:
        yield f"run.json: the schedules, by hash, are not those of {track.name}"


def find_fixed(track: Track) -> tuple[str, ...]:
    """Schedules whose instances differ in random outcomes alone: the seed draws no map, no task and no drift.

    A hidden track hides little there. The changes up to the first thousand ticks and the first tasks of three seeds
    are compared.

    Args:
        track: the track.
    """
    experiment = parse_experiment({**track.settings, "name": "fixed", "agents": _PLACEHOLDER, "seeds": 1})
    return tuple(
        read_schedule(source, change).name
        for source in experiment.schedules
        for change in experiment.changes(source)
        if len({_fingerprint(source, change, seed) for seed in (0, 1, 2)}) == 1
    )


_SEEN = 1000  # ticks


def _fingerprint(source: str, change: Any, seed: int) -> str:
    """What a seed draws: the values of all knobs at the phases' starts, and the first task."""
    world = make_world(read_schedule(source, change))
    env: gym.Env[Any, Any] = world.env
    _, info = env.reset(seed=seed)
    phases = world.timeline.phases(_SEEN)
    values = [(phase.start, sorted(world.timeline.values(phase.start).items())) for phase in phases]
    world.close()
    return repr((info.get("task"), values))
