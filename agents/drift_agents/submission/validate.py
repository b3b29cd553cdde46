"""What can be checked of a submission without playing and without the agent's package.

* `Checked` - what was found in a submission, and everything that is wrong in it
* `check_submission` - files, hashes, experiment, schedules, lines, counts, costs and recorded replies
* `CHECKS` - the checks in words, as certificates state them
* `count_lines` - the sums over all lines
* `same_digits` - equal numbers but for rounding
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import gymnasium as gym
from pydantic import BaseModel

from drift_agents.errors import DriftAgentsError
from drift_agents.experiment.config import SOLO, Experiment
from drift_agents.experiment.construction import has_construction
from drift_agents.experiment.folder import EPISODES, FINISHED, MANIFEST, REPLIES, RunFolder, find_differences
from drift_agents.experiment.logs import CONSTRUCT, TEST, read_rows
from drift_agents.experiment.plan import Cell, PlannedEpisode, plan_cells, plan_episodes
from drift_agents.llm.budget import check_price
from drift_agents.llm.cache import ReplyStore
from drift_agents.submission.bundle import (
    NAMES,
    OPTIONAL,
    STATEMENT,
    CountStatement,
    Natural,
    Statement,
    digest_of,
    parse_model,
    read_json,
    read_statement,
    state_file,
)
from drift_agents.types import SUPERVISION
from drift_envs.errors import DriftEnvsError
from drift_envs.registration import IDS, knob_table_of
from drift_envs.schedule.files import shipped_schedules
from drift_envs.schedule.loader import load_schedule
from drift_envs.schedule.model import Schedule
from drift_envs.schedule.timeline import Timeline

CHECKS = (
    "the files are those that submission.json states, by name, size and SHA-256",
    "run.json: configuration hash, cells and players follow from the experiment; each schedule's hash is that of its "
    "content",
    "every line has all fields with the right types, and values within their limits",
    "the lines are those of the experiment's cells, in order, with the planned seeds, rounds, phases and ticks",
    "each cell's lines have the hash that finished.jsonl states",
    "score plus regret, the optimum, is the same for all agents in an episode of an instance",
    "the counts and costs are the sums over the lines",
    "each recorded reply stands under the hash of its request",
)
"""What `check_submission` checks, in words."""

MOST_FINDINGS = 20
"""The most findings that are listed."""

_TOLERANCE = 1e-9
_SUMS = ("steps", "probe_steps", "model_calls", "tokens_in", "tokens_out")
_NOT_NEGATIVE = (
    "steps",
    "probe_steps",
    "probe_resets",
    "probe_falls",
    "probe_purchases",
    "surprises",
    "realignments",
    "memory_size",
    "model_calls",
    "tokens_in",
    "tokens_out",
    "cost",
    "tokens_estimated",
)
_SHARES = ("score", "memory_truth_rate", "item_truth_rate")

_WHO = ("schedule", "memory", "verifier", "controller", "team", "policy", "seed")
"""The fields of a line that name its cell."""

Row = Mapping[str, Any]


@dataclass
class Checked:
    """What was found in a submission.

    Args:
        folder: its folder.
        digest: the hash that stands for it; empty if `submission.json` cannot be read.
        statement: the content of `submission.json`.
        manifest: the content of `run.json`.
        experiment: the experiment; names of parts are not looked up, since their packages may be missing here.
        cells: the cells of the experiment.
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
    places: dict[str, tuple[int, int]] = field(default_factory=dict)
    rows: Sequence[Row] = ()
    findings: list[str] = field(default_factory=list)

    @property
    def is_valid(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings

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
        What was found. A stage whose input is wrong is left out, so that one fault is reported once.
    """
    found = Checked(folder)
    try:
        found.findings += _check_files(found)
        if found.is_valid:
            found.findings += _check_manifest(found)
        if found.is_valid:
            found.findings += _shortened(_check_lines(found))
        if found.is_valid:
            found.findings += _shortened(_check_values(found))
            found.findings += _check_counts(found)
            found.findings += _check_replies(found)
    except (DriftAgentsError, DriftEnvsError) as error:
        found.findings += str(error).replace(f"{found.folder}/", "").splitlines()
    except RecursionError:
        found.findings += ["a file is nested too deeply"]
    return found


def _shortened(findings: Iterable[str]) -> list[str]:
    kept = list(findings)
    rest = len(kept) - MOST_FINDINGS
    return kept if rest <= 0 else [*kept[:MOST_FINDINGS], f"and {rest} more"]


def _check_files(found: Checked) -> Iterator[str]:
    found.statement = read_statement(found.folder)
    found.digest = digest_of(found.folder)
    stated = found.statement.files
    present = {path.name for path in found.folder.iterdir()} - {STATEMENT}
    for name in sorted(set(stated) - set(NAMES)):
        yield f"{STATEMENT}: states {name!r}, which is no file of a submission"
    for name in NAMES[1:]:
        if name not in stated and name not in OPTIONAL:
            yield f"{STATEMENT}: does not state {name}"
    for name in sorted(present - set(stated)):
        yield f"{name}: is not stated in {STATEMENT}"
    for name in (name for name in NAMES[1:] if name in stated):
        if name not in present:
            yield f"{name}: is missing"
            continue
        real = state_file(found.folder / name)
        if real != stated[name]:
            yield (
                f"{name}: is not the stated file: {stated[name].bytes} bytes {stated[name].sha256[:12]}... stated, "
                f"{real.bytes} bytes {real.sha256[:12]}... found"
            )


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


def _check_manifest(found: Checked) -> Iterator[str]:
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
    names = _names(found)
    expected = Counter((names[cell.place], *_identity(cell), cell.reference) for cell in found.cells)
    stated = [(*(one.get(key) for key in _WHO[:-1]), one["reference"]) for one in players]
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


def _identity(cell: Cell) -> tuple[str, str, str, str, str]:
    """Memory, verifier, controller, team and policy as lines call them."""
    memory, verifier, policy = cell.labels
    return (memory, verifier, *cell.decision.labels, policy)


def _check_lines(found: Checked) -> Iterator[str]:
    path = found.folder / EPISODES
    rows = found.rows = read_rows(path)
    names = _names(found)
    played = [(who, list(own)) for who, own in groupby(range(len(rows)), lambda at: _who(rows[at]))]
    planned = {(names[cell.place], *_identity(cell), cell.seed): cell for cell in found.cells}
    if [who for who, _ in played] != list(planned):
        yield from _different_cells([who for who, _ in played], list(planned))
        return
    finished = RunFolder(found.folder).finished()
    if set(finished) != {cell.key for cell in found.cells}:
        yield f"{FINISHED}: does not name exactly the cells of the experiment"
    plans = _Plans(found)
    with open(path, "rb") as file:
        for (who, places), cell in zip(played, planned.values(), strict=True):
            begin = file.tell()
            content = b"".join(file.readline() for _ in places)
            found.places[cell.key] = (begin, len(content))
            if finished.get(cell.key) != hashlib.sha256(content).hexdigest():
                yield f"{EPISODES}:{places[0] + 1}: the lines of {cell.key} are not those that {FINISHED} states"
            own = [rows[at] for at in places]
            yield from _check_cell(found, cell, str(who[0]), own, places[0] + 1, plans)


def _names(found: Checked) -> dict[str, str]:
    """The name of the schedule that is played at each place; both stand in the order of the experiment."""
    return dict(zip(dict.fromkeys(cell.place for cell in found.cells), found.manifest["schedules"], strict=True))


def _who(row: Row) -> tuple[Any, ...]:
    return tuple(row[field] for field in _WHO)


def _different_cells(played: Sequence[tuple[Any, ...]], planned: Sequence[tuple[Any, ...]]) -> Iterator[str]:
    """Which cells are missing, too many, or in another order."""
    missing, more = set(planned) - set(played), Counter(played) - Counter(planned)
    for who in [who for who in planned if who in missing][:3]:
        yield f"{EPISODES}: has no lines of {_told(who)}"
    for who in [who for who in dict.fromkeys(played) if who in more][:3]:
        yield f"{EPISODES}: has lines of {_told(who)} that the experiment does not have there"
    if not missing and not more:
        yield f"{EPISODES}: the cells do not stand in the order of the experiment"


def _told(who: Sequence[Any]) -> str:
    return ", ".join(f"{field} {value}" for field, value in zip(_WHO, who, strict=True))


class _Plans:
    """The planned episodes and the phases of each instance; computed once, without making an environment."""

    def __init__(self, found: Checked) -> None:
        self._found = found
        self._schedules: dict[str, Schedule] = {
            name: load_schedule(about["content"]) for name, about in found.manifest["schedules"].items()
        }
        self._known: dict[tuple[str, int], tuple[Timeline | None, tuple[PlannedEpisode, ...]]] = {}

    def schedule(self, name: str) -> Schedule:
        return self._schedules[name]

    def of(self, name: str, cell: Cell) -> tuple[Timeline | None, tuple[PlannedEpisode, ...]]:
        """The timeline, `None` for environments of other packages, and the planned episodes."""
        if (name, cell.seed) not in self._known:
            schedule, experiment = self._schedules[name], self._found.experiment
            timeline = None
            planned: tuple[PlannedEpisode, ...] = ()
            if schedule.env in IDS and experiment is not None:
                timeline = Timeline(schedule, knob_table_of(str(schedule.env)), cell.seed)
                planned = plan_episodes(schedule, timeline, experiment.world(cell.schedule))
            self._known[name, cell.seed] = timeline, planned
        return self._known[name, cell.seed]


def _check_cell(found: Checked, cell: Cell, name: str, rows: Sequence[Row], first: int, plans: _Plans) -> Iterator[str]:
    """The lines of one cell: numbers, stages, rounds, phases and ticks."""
    about = found.manifest["schedules"][name]
    for at, row in enumerate(rows):
        if row["episode"] != at:
            yield f"{EPISODES}:{first + at}: `episode` should be {at}. Received {row['episode']}"
            return
        if (row["env"], row["schedule_hash"]) != (about["env"], about["hash"]):
            yield f"{EPISODES}:{first + at}: `env` and `schedule_hash` should be those of {MANIFEST}"
            return
    stages = [row["stage"] for row in rows]
    before = stages.count(CONSTRUCT)
    if set(stages) - {CONSTRUCT, TEST} or stages != [CONSTRUCT] * before + [TEST] * (len(rows) - before):
        yield f"{EPISODES}:{first}: the stages of {cell.key} should be construction, then test"
        return
    if len(rows) - before != about["episodes"]:
        yield f"{EPISODES}:{first}: {cell.key} should have {about['episodes']} episodes. Received {len(rows) - before}"
        return
    construct = found.experiment.world(cell.schedule).construction if found.experiment else None
    tasks = construct.episodes * construct.epochs if construct and has_construction(cell, construct) else 0
    # A team may play a task several times.
    if before != tasks and (cell.decision.team.name == SOLO.name or before < tasks or not tasks):
        yield f"{EPISODES}:{first}: {cell.key} should have a construction of {tasks} episodes. Received {before}"
        return
    timeline, planned = plans.of(name, cell)
    if timeline is None:
        return
    if len(planned) != about["episodes"]:
        yield f"{MANIFEST}: schedules.{name}: should have {len(planned)} episodes. Received {about['episodes']}"
        return
    by_episode = plans.schedule(name).clock == "episode"
    for at, (row, plan) in enumerate(zip(rows[before:], planned, strict=True)):
        tick = plan.tick if plan.tick is not None else at if by_episode else row["tick"]
        if row["tick"] != tick or row["tick"] < 0 or row["phase"] != timeline.phase(tick).id:
            yield (
                f"{EPISODES}:{first + before + at}: tick and phase of {cell.key} should be those of the schedule. "
                f"Received {row['tick']}, {row['phase']!r}"
            )
            return
        if plan.round is not None and row["round"] != plan.round:
            yield f"{EPISODES}:{first + before + at}: `round` should be {plan.round}. Received {row['round']}"
            return


def _check_values(found: Checked) -> Iterator[str]:
    """Limits of single values, and what must be equal for all agents."""
    optimum: dict[tuple[Any, ...], tuple[float, int]] = {}
    limits = {name: _step_limit(about["env"]) for name, about in found.manifest["schedules"].items()}
    clocks = {name: about["clock"] for name, about in found.manifest["schedules"].items()}
    after: Counter[tuple[Any, ...]] = Counter()
    for number, row in enumerate(found.rows, 1):
        where = f"{EPISODES}:{number}"
        for name in _NOT_NEGATIVE:
            if row[name] < 0:
                yield f"{where}: `{name}` should not be negative. Received {row[name]}"
        for name in _SHARES:
            if row[name] is not None and not 0 <= row[name] <= 1:
                yield f"{where}: `{name}` should be in the interval [0, 1]. Received {row[name]}"
        if row["success"] != (row["score"] >= 1):
            yield f"{where}: `success` should say whether the score is 1. Received {row['success']}, {row['score']}"
        if row["steps"] > limits[row["schedule"]]:
            yield f"{where}: `steps` should be at most {limits[row['schedule']]}. Received {row['steps']}"
        if row["verifier"] == "none" and row["probe_steps"]:
            yield f"{where}: `probe_steps` should be 0 without a verifier. Received {row['probe_steps']}"
        if not row["model_calls"] and (row["tokens_in"] or row["tokens_out"] or row["cost"]):
            yield f"{where}: has tokens or a cost of language models, but no request"
        if row["stage"] != TEST or row["regret"] is None or clocks[row["schedule"]] != "episode":
            continue
        who = _who(row)
        instance = (row["schedule"], row["seed"], after[who])
        after[who] += 1
        best = row["score"] + row["regret"]
        other, line = optimum.setdefault(instance, (best, number))
        if not same_digits(best, other):
            yield (
                f"{where}: score plus regret, the optimum, should be the same for all agents of the instance. "
                f"Received {best}, and {other} in line {line}"
            )


def same_digits(one: float, other: float) -> bool:
    """Whether two numbers are equal but for rounding.

    Example:
        >>> same_digits(0.1 + 0.2, 0.3), same_digits(0.3, 0.3001)
        (True, False)
    """
    return math.isclose(one, other, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)


def _step_limit(env_id: str) -> float:
    """The step limit of an environment; without end where it is not registered here."""
    spec = gym.registry.get(env_id)
    return math.inf if spec is None or spec.max_episode_steps is None else spec.max_episode_steps


def count_lines(path: Path, cells: int) -> CountStatement:
    """The sums over all lines of a file.

    Args:
        path: the file.
        cells: how many cells it holds.

    Raises:
        ExperimentError: if the file cannot be read, or a line is not one of a run.
    """
    return _sum(read_rows(path), cells)


def _sum(rows: Sequence[Row], cells: int) -> CountStatement:
    sums = {name: sum(row[name] for row in rows) for name in _SUMS}
    return CountStatement(cells=cells, episodes=len(rows), cost=math.fsum(row["cost"] for row in rows), **sums)


def _prices(data: Any) -> Iterator[Any]:
    """Every option `price` of an experiment that has the form of a language model's price."""
    if isinstance(data, Mapping):
        yield from (value for key, value in data.items() if key == "price" and isinstance(value, list))
    if isinstance(data, (Mapping, list)):
        for value in data.values() if isinstance(data, Mapping) else data:
            yield from _prices(value)


def _check_counts(found: Checked) -> Iterator[str]:
    real, stated = _sum(found.rows, len(found.cells)), found.statement and found.statement.counts
    rates = [rate for price in _prices(found.manifest["experiment"]) for rate in check_price(price) if rate]
    dearest = max(rates, default=0.0) * (real.tokens_in + real.tokens_out) / 1e6
    if real.cost > dearest and not same_digits(real.cost, dearest):
        yield f"{EPISODES}: the cost, {real.cost}, should be at most {dearest}, all tokens at the highest price"
    for name in CountStatement.model_fields:
        here, there = getattr(real, name), getattr(stated, name)
        if not same_digits(here, there):
            yield f"{STATEMENT}: counts.{name} should be the sum over the lines, {here}. Received {there}"


def _check_replies(found: Checked) -> Iterator[str]:
    asked = any(row["model_calls"] for row in found.rows)
    path = found.folder / REPLIES
    if not path.is_file():
        if asked:
            yield f"{REPLIES}: is missing, although language models were asked: no cell could be played again"
        return
    with ReplyStore(path, read_only=True) as replies:
        misfiled = replies.count_misfiled()
        if misfiled:
            yield f"{REPLIES}: {misfiled} replies do not stand under the hash of their request"
        if asked and not len(replies):
            yield f"{REPLIES}: holds no reply, although language models were asked"
