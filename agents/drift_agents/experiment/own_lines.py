"""Lines of a loop of one's own, as those of a run, so that its agent stands beside shipped ones.

A log has a line of JSON for each episode, as `drift_envs.integrations.lifetime.TextLifetime(log=FILE)` writes it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from drift_agents.errors import ExperimentError
from drift_agents.experiment.cell_environment import make_env, share_left_at_once
from drift_agents.experiment.config import SEED_STOP
from drift_agents.experiment.folder import (
    RunFolder,
    check_merged,
    describe_schedule,
    finished_lines,
    read_manifest,
    versions,
)
from drift_agents.experiment.logs import FIELDS, SUCCESS, TEST, read_rows
from drift_agents.types import NO_USAGE
from drift_envs.checks import is_integer, is_number
from drift_envs.errors import DriftEnvsError, NoOracleError
from drift_envs.schedule.loader import load_schedule
from drift_envs.schedule.model import Schedule
from drift_envs.schedule.timeline import Timeline

OWN_LOOP = "own loop"
"""The label that stands in the place of a policy's."""

_PARTS = {"verifier": "none", "controller": "direct", "team": "solo", "policy": OWN_LOOP}
"""The labels beside that of the memory, which is the loop's name."""

IMPORTED = "imported"
"""In the place of the configuration's hash: the lines are not those of an experiment alone."""

_NEEDED: Mapping[str, type] = {"episode": int, "phase": str, "tick": int, "score": float, "steps": int}
_COSTS = {"probe_steps": 0, "memory_size": 0, **NO_USAGE._asdict()}
"""What a line may have besides."""
_MEASURED: Mapping[str, type] = {"success": bool, "still_believed": float}
"""What a line may have where the agent's runner measures it: by default an episode of the highest score succeeds."""
_LONGEST_NAME = 60


class _Line(NamedTuple):
    where: str
    schedule: str
    seed: int
    data: dict[str, Any]


def import_lines(
    logs: Sequence[Path],
    name: str,
    out: Path,
    *,
    beside: Path | None = None,
    schedule: str | None = None,
    seed: int | None = None,
    fresh: bool = False,
) -> int:
    """Write the folder of a run with the lines of a log.

    Args:
        logs: files with a JSON object for each episode: `episode` (from 0), `phase`, `tick`, `score`, `steps`, and
            `schedule` and `seed` unless they are given here. It may have `schedule_hash`, `probe_steps`,
            `memory_size`, `model_calls`, `tokens_in`, `tokens_out`, `cost`, `success` and `still_believed`.
        name: of the agent, in tables and curves.
        out: the folder; it must not exist, or be empty.
        beside: the folder of a finished run, whose lines stand in the new folder too. The log should then have all
            episodes that it played of each schedule in the log, and no others.
        schedule: of lines without one: the name of a shipped schedule, or a file.
        seed: of lines without one.
        fresh: whether lines imported into the folder before are deleted.

    Returns:
        The number of episodes imported.

    Raises:
        ExperimentError: if a line, the run or the folder cannot be used; the message names the line.
        ScheduleError: if the schedule cannot be used.
    """
    if not name.strip() or name != name.strip() or not name.isprintable() or len(name) > _LONGEST_NAME or "(" in name:
        raise ExperimentError(
            f"`name` should be a name of at most {_LONGEST_NAME} characters in one line, without parentheses. "
            f"Received {name!r}"
        )
    _check_folder(out, beside, fresh)
    manifest, rows = _read_beside(beside)
    played_names = [_key(player[axis]) for player in manifest["players"] for axis in ("memory", "verifier", "policy")]
    if _key(name) in (*played_names, *_NO_MEMORY):
        raise ExperimentError(
            f"`name` should not be that of a part of the run in {beside}, nor of no memory. Received {name!r}"
        )
    own = add_rows(logs, name, manifest, rows, schedule=schedule, seed=seed)
    manifest["name"] = name if beside is None else f"{manifest['name']}, with {name}"
    if beside is None:
        manifest["experiment"]["seeds"] = sorted({row["seed"] for row in own})
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in logs}
    manifest["imported"] = {**manifest.get("imported", {}), name: digests}
    with RunFolder(out) as folder:
        folder.open(manifest, resume=False, fresh=fresh)
        folder.write_rows((*rows, *own))
    return len(own)


def add_rows(
    logs: Sequence[Path],
    name: str,
    manifest: dict[str, Any],
    others: Sequence[Mapping[str, Any]],
    *,
    schedule: str | None = None,
    seed: int | None = None,
) -> list[dict[str, Any]]:
    """The rows of an agent's log; its schedules and the agent are added to a manifest.

    Args:
        logs: as in `import_lines`, whose further arguments these are.
        name: of the agent.
        manifest: of the run.
        others: the rows of the run so far.

    Raises:
        ExperimentError: if a line cannot be used.
        ScheduleError: if the schedule cannot be used.
    """
    given = None if schedule is None else load_schedule(schedule)
    lines = list(_read_lines(logs, None if given is None else given.name, seed))
    own: list[dict[str, Any]] = []
    for played, some in groupby(sorted(lines, key=lambda line: line.schedule), key=lambda line: line.schedule):
        own += _rows_of(played, list(some), name, given, manifest, others)
        about = {"schedule": played, "memory": name, **_PARTS}
        manifest["players"].append({**about, "reference": None, "supervision": "none"})
    return own


def _check_folder(out: Path, beside: Path | None, fresh: bool) -> None:
    """Check that the folder is new, empty, or one of imported lines that may be deleted."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    if not fresh:
        raise ExperimentError(
            f"{out}: should be a new or empty folder. Choose another one with --out, or delete what was imported there "
            "with --fresh"
        )
    if read_manifest(out)["config_hash"] != IMPORTED:
        raise ExperimentError(f"{out}: holds a run, which --fresh does not delete here. Choose another one with --out")
    if beside is not None and beside.resolve() == out.resolve():
        raise ExperimentError(f"{out}: should be another folder than that of --beside, which --fresh would delete")


def _key(label: str) -> str:
    """A part's label as it is compared with a name: `generative_agents(k=5)` is `Generative Agents` in tables."""
    return label.partition("(")[0].casefold().replace("_", "").replace(" ", "")


_NO_MEMORY = ("none", "nomemory")


def _read_beside(folder: Path | None) -> tuple[dict[str, Any], Sequence[Mapping[str, Any]]]:
    """The manifest and the rows of the run beside which the lines stand; without one they are empty."""
    if folder is None:
        empty = {"schedules": {}, "players": [], "experiment": {"imported": True}}
        return {"name": "", "config_hash": IMPORTED, "versions": versions(), **empty}, ()
    manifest, lines = read_manifest(folder), finished_lines(folder)
    check_merged(folder, manifest)
    return {**manifest, "config_hash": IMPORTED}, read_rows(lines)


def _read_lines(logs: Sequence[Path], schedule: str | None, seed: int | None) -> Iterator[_Line]:
    seen: dict[tuple[str, int, int], str] = {}
    count = 0
    for path in logs:
        try:
            texts = path.read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "is not UTF-8"
            raise ExperimentError(f"{path}: cannot be read: {reason}") from error
        for number, text in enumerate(texts, 1):
            if text.strip():
                line = _read_line(text, f"{path}:{number}", schedule, seed)
                key = (line.schedule, line.seed, line.data["episode"])
                if key in seen:
                    raise ExperimentError(
                        f"{line.where}: episode {key[2]} of {key[0]}, seed {key[1]}, stands in {seen[key]} too; "
                        "delete the log of an earlier try, and give every lifetime a seed of its own"
                    )
                seen[key] = line.where
                count += 1
                yield line
    if not count:
        raise ExperimentError(f"{', '.join(map(str, logs))}: has no line")


def _read_line(text: str, where: str, schedule: str | None, seed: int | None) -> _Line:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ExperimentError(f"{where}: should be a line of JSON: {error}") from error
    if not isinstance(data, dict):
        raise ExperimentError(f"{where}: should be a JSON object, as `TextLifetime(log=FILE)` writes it")
    found = {"schedule": schedule, "seed": seed, **{key: value for key, value in data.items() if value is not None}}
    for field, kind in {"schedule": str, "seed": int, **_NEEDED}.items():
        if found.get(field) is None:
            option = f"; give it with --{field}" if field in ("schedule", "seed") else ""
            raise ExperimentError(f"{where}: `{field}` is missing{option}")
        _check_value(found[field], kind, field, where)
    for field, default in _COSTS.items():
        _check_value(found.get(field, default), type(default), field, where)
    for field, sort in _MEASURED.items():
        if field in found:
            _check_value(found[field], sort, field, where)
    return _Line(where, found["schedule"], found["seed"], found)


def _check_value(value: object, kind: type, field: str, where: str) -> None:
    if kind is str:
        what, is_right = "a text", isinstance(value, str)
    elif field == "seed":
        what, is_right = f"a whole number from 0 to {SEED_STOP - 1}", is_integer(value) and 0 <= value < SEED_STOP
    elif kind is bool:
        what, is_right = "true or false", isinstance(value, bool)
    elif kind is int:
        what, is_right = "a whole number of at least 0", is_integer(value) and value >= 0
    else:
        what = "a number"
        is_right = is_number(value) and math.isfinite(value) and (field == "score" or value >= 0)
    if not is_right:
        raise ExperimentError(f"{where}: `{field}` should be {what}. Received {value!r}")


def _rows_of(
    name: str,
    lines: Sequence[_Line],
    agent: str,
    given: Schedule | None,
    manifest: Mapping[str, Any],
    others: Sequence[Mapping[str, Any]],
) -> Iterator[dict[str, Any]]:
    """The rows of the lines of one schedule, which is added to the manifest if it is not there."""
    where, known = lines[0].where, manifest["schedules"]
    schedule = _find_schedule(name, given, known.get(name), where)
    for line in lines:
        stated = line.data.get("schedule_hash", schedule.content_hash())
        if stated != schedule.content_hash():
            raise ExperimentError(
                f"{line.where}: was played on another version of {name}: its hash should be "
                f"{schedule.content_hash()}. Received {stated!r}"
            )
    optima: dict[tuple[int, int], float] = {}
    if name in known:
        there = [row for row in others if row["schedule"] == name and row["stage"] == TEST]
        if schedule.clock == "episode":
            _check_episodes(name, lines, there)
        _check_seeds(name, lines, there)
        optima = {
            (row["seed"], row["tick"]): row["score"] + row["regret"] for row in there if row["regret"] is not None
        }
    elif manifest["players"] and others:
        raise ExperimentError(f"{where}: {name} was not played by the run; it has {', '.join(known)}")
    else:
        _check_numbers(name, lines)
        known[name] = describe_schedule(schedule, len({line.data["episode"] for line in lines}))
        optima, share = _examine_tasks(schedule, lines)
        if share is not None:
            known[name]["left_at_once"] = share
    rounds: dict[tuple[int, str], int] = {}
    for line in sorted(lines, key=lambda line: (line.seed, line.data["episode"])):
        data, key = line.data, (line.seed, line.data["phase"])
        rounds[key] = rounds.get(key, 0) + 1
        score = float(data["score"])
        optimum = optima.get((line.seed, data["tick"]))
        row = dict.fromkeys(FIELDS, 0) | dict.fromkeys(_UNKNOWN)
        row |= {field: type(default)(data.get(field, default)) for field, default in _COSTS.items()}
        row |= {
            "env": schedule.env, "schedule": name, "schedule_hash": schedule.content_hash(),
            "memory": agent, **_PARTS, "seed": line.seed, "stage": TEST,
            "episode": data["episode"], "round": rounds[key],
            "phase": data["phase"], "tick": data["tick"], "success": data.get("success", score >= SUCCESS),
            "score": score, "steps": data["steps"], "regret": None if optimum is None else optimum - score,
            "still_believed": data.get("still_believed"),
        }  # fmt: skip
        yield row


_UNKNOWN = (
    "false_realignments", "detected", "detection_delay", "memory_truth_rate", "items", "item_truth_rate",
    "still_believed",
)  # fmt: skip
"""Fields that only an evaluator inside the loop can fill."""


def _find_schedule(name: str, given: Schedule | None, played: Mapping[str, Any] | None, where: str) -> Schedule:
    """The schedule of that name: the one given, that of the run beside, or a shipped one."""
    if given is not None and given.name == name:
        return given
    try:
        found: Schedule = load_schedule(played["content"] if played is not None else name)
    except DriftEnvsError as error:
        raise ExperimentError(f"{where}: {name} is no shipped schedule; give its file with --schedule") from error
    return found


def _check_episodes(name: str, lines: Sequence[_Line], others: Sequence[Mapping[str, Any]]) -> None:
    """Check that the own agent played the episodes of the others, so that lines stand below each other."""
    there = {row["episode"]: (row["phase"], row["tick"]) for row in others}
    for line in lines:
        here = (line.data["phase"], line.data["tick"])
        number = line.data["episode"]
        if number not in there:
            raise ExperimentError(
                f"{line.where}: episode {number} of {name} was not played by the run, which has {len(there)}; play the "
                "same `rounds`"
            )
        if there[number] != here:
            tick, phase = there[number][1], there[number][0]
            raise ExperimentError(
                f"{line.where}: episode {number} of {name} should be tick {tick}, phase {phase!r}, as in the run; play "
                f"the same `rounds`. Received tick {here[1]}, phase {here[0]!r}"
            )


def _check_numbers(name: str, lines: Sequence[_Line]) -> None:
    """Check that the episodes of every lifetime are numbered from 0 without a gap."""
    following: dict[int, int] = {}
    for line in sorted(lines, key=lambda line: (line.seed, line.data["episode"])):
        expected = following.get(line.seed, 0)
        if line.data["episode"] != expected:
            raise ExperimentError(
                f"{line.where}: `episode` should be {expected}, which {name}, seed {line.seed}, lacks. "
                f"Received {line.data['episode']}"
            )
        following[line.seed] = expected + 1


def _check_seeds(name: str, lines: Sequence[_Line], others: Sequence[Mapping[str, Any]]) -> None:
    """Check that the own agent played every instance of the others to its end, since tables compare instances."""
    theirs = Counter(seed for seed, _ in {(row["seed"], row["episode"]) for row in others})
    ours = Counter(line.seed for line in lines)
    for line in lines:
        if line.seed not in theirs:
            seeds = ", ".join(map(str, sorted(theirs)))
            raise ExperimentError(
                f"{line.where}: seed {line.seed} of {name} was not played by the run, which has {seeds}"
            )
    missing = [
        f"{ours[seed]} of {count} of seed {seed}" for seed, count in sorted(theirs.items()) if ours[seed] < count
    ]
    if missing:
        raise ExperimentError(
            f"{lines[-1].where}: the log has {sum(ours.values())} of the {sum(theirs.values())} episodes of {name} in "
            f"the run: {', '.join(missing)}. Play all of them, or compare with a run of fewer seeds or rounds"
        )


def _examine_tasks(schedule: Schedule, lines: Sequence[_Line]) -> tuple[dict[tuple[int, int], float], float | None]:
    """The optimum of each episode, by seed and tick, and the share of tasks that score 1 if left at once.

    The optima are empty where no environment is installed or none has an oracle, the share is `None` where there are
    no conversations.

    Raises:
        ExperimentError: if a phase is not that of its tick.
    """
    if schedule.clock != "episode":
        return {}, None
    found: dict[tuple[int, int], float] = {}
    share: float | None = None
    try:
        env = make_env(schedule)
    except (DriftEnvsError, ImportError):
        return {}, None
    try:
        seeds = sorted({line.seed for line in lines})
        share = share_left_at_once(env, seeds, 1 + max(line.data["tick"] for line in lines))
        for seed in seeds:
            env.reset(seed=seed)
            _check_phases(env.timeline, [line for line in lines if line.seed == seed])
            for tick in {line.data["tick"] for line in lines if line.seed == seed}:
                found[seed, tick] = float(env.oracle.value(tick))
    except (AttributeError, NoOracleError):  # an environment without an oracle, or one without an optimum
        return {}, share
    finally:
        env.close()
    return found, share


def _check_phases(timeline: Timeline, lines: Sequence[_Line]) -> None:
    for line in lines:
        tick, phase = line.data["tick"], line.data["phase"]
        if phase != timeline.phase(tick).id:
            raise ExperimentError(
                f"{line.where}: `phase` at tick {tick} of {line.schedule}, seed {line.seed}, should be "
                f"{timeline.phase(tick).id!r}. Received {phase!r}"
            )
