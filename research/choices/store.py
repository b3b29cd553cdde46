"""Stored cells: `research/results/choices`, a file of JSON lines for each schedule or study, a line a cell.

* `read_cells`, `StoredCell` - what was played
* `plan_claim`, `claims_with_choices` - what there is to play
* `play_claims`, `count_missing` - plays what is missing, or counts it
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from drift_agents.errors import EvidenceError, ExperimentError

from research.choices.cells import ChoiceCell, Measures, make_cell, play_cell
from research.choices.model import ChoiceStudy, Combination, combine, parse_effect, read_studies
from research.coverage import read_coverage
from research.verify_map.pages import ROOT

RESULTS = ROOT / "research" / "results" / "choices"
EVERY = 20.0
"""Seconds after which instances of an unfinished cell are written."""


@dataclass
class StoredCell:
    """A cell and its instances.

    Args:
        cell: what is played.
        values: seed -> what was measured.
    """

    cell: ChoiceCell
    values: dict[int, Measures] = field(default_factory=dict)


Cells = dict[str, StoredCell]
"""By key."""


def read_cells(folder: Path = RESULTS) -> Cells:
    """All cells of a folder.

    Raises:
        EvidenceError: if a file cannot be read.
    """
    cells: Cells = {}
    for path in sorted(folder.glob("*.jsonl")):
        cells |= _read_file(path)
    return cells


def _read_file(path: Path) -> Cells:
    cells: Cells = {}
    if not path.exists():
        return cells
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        try:
            data = json.loads(line)
            cell = ChoiceCell(data["kind"], data["place"], data["content"])
            columns = data["values"]
            seeds = range(data["first"], data["first"] + data["count"])
            rows = {
                seed: {name: column[i] for name, column in columns.items() if column[i] is not None}
                for i, seed in enumerate(seeds)
            }
            empty = data.get("without", [])
            values = {seed: row for seed, row in rows.items() if row or seed in empty}
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise EvidenceError(f"{path}:{number}: not a cell: {error}") from error
        cells[cell.key] = StoredCell(cell, values)
    return cells


def _write_cell(folder: Path, stored: StoredCell) -> None:
    """Write a cell into its file, whose lines are sorted by key; the file is replaced at once.

    A column holds `null` where an instance has no such value; instances that were played and have none at all stand
    under `without`.
    """
    path = folder / (stored.cell.place.replace("/", "-").replace(":", "-") + ".jsonl")
    cells = _read_file(path)
    if (there := cells.get(stored.cell.key)) is not None:  # another command may have played instances meanwhile
        stored = StoredCell(stored.cell, there.values | stored.values)
    cells[stored.cell.key] = stored
    lines = [_to_line(cells[key]) for key in sorted(cells)]
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        part.write_text("".join(lines), "utf-8")
        os.replace(part, path)
    except OSError as error:
        raise ExperimentError(f"{path}: cannot be written: {error.strerror}") from error


def _to_line(stored: StoredCell) -> str:
    seeds = range(min(stored.values), max(stored.values) + 1)
    names = sorted({name for values in stored.values.values() for name in values})
    empty = [seed for seed in seeds if stored.values.get(seed) == {}]
    data = {
        "key": stored.cell.key,
        "kind": stored.cell.kind,
        "place": stored.cell.place,
        "content": stored.cell.content,
        "first": seeds[0],
        "count": len(seeds),
        "values": {name: [_short(stored.values.get(seed, {}).get(name)) for seed in seeds] for name in names},
        **({"without": empty} if empty else {}),
    }
    return json.dumps(data, sort_keys=True, separators=(",", ":")) + "\n"


def _short(value: float | None) -> float | int | None:
    return int(value) if value is not None and value == int(value) else value


class CellInstance(NamedTuple):
    """One instance of a cell, with the agent and the combination of which the cell is made."""

    cell: ChoiceCell
    agent: Mapping[str, Any]
    combination: Combination
    seed: int


class PlannedClaim(NamedTuple):
    """A claim with its combinations and their cells.

    Args:
        claim: its id.
        study: the paper's choices.
        combinations: those that come to cells of their own.
        cells: for each, agent -> cell.
    """

    claim: str
    study: ChoiceStudy
    combinations: list[Combination]
    cells: list[dict[str, ChoiceCell]]


@cache
def plan_claim(claim: str) -> PlannedClaim:
    """The combinations of a claim; those that come to the same cells as an earlier one are left out.

    Raises:
        EvidenceError: if no claim with choices has that id.
    """
    named = {
        one.id: one.choices for paper in read_coverage() for one in paper.claims if one.id is not None and one.choices
    }
    for study in read_studies().values():
        if claim in study.claims and claim in named:
            play = study.claims[claim]
            used = {term.agent for text in play.differences for term in parse_effect(text)}
            combinations, cells, seen = [], [], set()
            for combination in combine(play, study.choices, named[claim]):
                own = {
                    name: make_cell(play.kind, agent, combination.setting)
                    for name, agent in play.agents.items()
                    if name in used
                }
                keys = tuple(cell.key for cell in own.values())
                if keys not in seen:
                    seen.add(keys)
                    combinations.append(combination)
                    cells.append(own)
            return PlannedClaim(claim, study, combinations, cells)
    raise EvidenceError(f"no claim with choices has the id {claim!r}. There are: {', '.join(claims_with_choices())}")


def claims_with_choices() -> list[str]:
    """The ids of all claims that are played under choices, in the order of the papers."""
    studies = read_studies()
    return [
        one.id
        for paper in read_coverage()
        for one in paper.claims
        if paper.name in studies and one.id in studies[paper.name].claims
    ]


def _tasks(claims: Iterable[str], n: int | None, done: Cells) -> Iterator[CellInstance]:
    """What is missing, by combination and then by seed, so that agents of one instance follow each other."""
    planned: set[str] = set()
    for claim in claims:
        plan = plan_claim(claim)
        play = plan.study.claims[claim]
        seeds = range(play.first, play.first + min(play.n, n or play.n))
        for combination, cells in zip(plan.combinations, plan.cells, strict=True):
            new = {name: cell for name, cell in cells.items() if cell.key not in planned}
            planned.update(cell.key for cell in new.values())
            for seed in seeds:
                for name, cell in new.items():
                    if cell.key not in done or seed not in done[cell.key].values:
                        yield CellInstance(cell, play.agents[name], combination, seed)


def count_missing(
    claims: Iterable[str], n: int | None = None, folder: Path = RESULTS
) -> Iterator[tuple[str, int, int]]:
    """What each claim has to play that neither an earlier one has nor is stored.

    Yields:
        The claim, its instances that are missing, and all of its instances.
    """
    seen: set[tuple[str, int]] = set()
    done = read_cells(folder)
    for claim in claims:
        every = {(task.cell.key, task.seed) for task in _tasks([claim], n, {})}
        missing = {(key, seed) for key, seed in every - seen if key not in done or seed not in done[key].values}
        seen |= every
        yield claim, len(missing), len(every)


def _play(task: CellInstance) -> Measures:
    return play_cell(task.cell.kind, task.agent, task.combination.setting, task.seed)


def play_claims(
    claims: Iterable[str],
    *,
    n: int | None = None,
    jobs: int = 1,
    folder: Path = RESULTS,
    tell: Callable[[str], None] = lambda _: None,
) -> int:
    """Play what is missing of claims; what is done is kept when it is stopped, at any time.

    Cells of an environment whose extra is not installed are left out.

    Args:
        claims: their ids.
        n: instances, at the most; those of the claims if not given.
        jobs: instances that are played at the same time.
        folder: of the results.
        tell: progress callback.

    Returns:
        How many instances were played.

    Raises:
        EvidenceError: if there is no such claim, or a file cannot be read.
        ExperimentError: if a file cannot be written.
    """
    done = read_cells(folder)
    missing = list(_tasks(claims, n, done))
    tasks = [task for task in missing if task.cell.missing_extra is None]
    for extra in sorted({str(task.cell.missing_extra) for task in missing} - {"None"}):
        count = sum(task.cell.missing_extra == extra for task in missing)
        tell(f"{count:,} instances are left out: they need the extra `{extra}`")
    began = written = time.monotonic()
    unwritten: Cells = {}
    if jobs == 1:
        results: Iterator[Measures] = map(_play, tasks)
        pool = None
    else:
        pool = get_context("spawn").Pool(jobs)
        results = pool.imap(_play, tasks)
    try:
        for number, (task, values) in enumerate(zip(tasks, results, strict=True), 1):
            stored = done.setdefault(task.cell.key, StoredCell(task.cell))
            stored.values[task.seed] = values
            unwritten[task.cell.key] = stored
            is_last = number == len(tasks) or tasks[number].combination is not task.combination
            if is_last or time.monotonic() - written > EVERY:
                for one in unwritten.values():
                    _write_cell(folder, one)
                unwritten.clear()
                written = time.monotonic()
            if is_last:
                left = (time.monotonic() - began) / number * (len(tasks) - number) / 60
                tell(f"{number:,} of {len(tasks):,} instances, about {left:.0f} minutes left")
    finally:
        if pool is not None:
            pool.terminate()
    return len(tasks)
