"""Whether the lines of a submission are those of the experiment's cells, without playing.

* `check_lines` - cells, hashes, seeds, stages, rounds, phases and ticks
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from drift_agents.experiment.config import SOLO
from drift_agents.experiment.construction import has_construction
from drift_agents.experiment.folder import EPISODES, FINISHED, MANIFEST, RunFolder
from drift_agents.experiment.logs import CONSTRUCT, TEST, read_rows
from drift_agents.experiment.plan import Cell, PlannedEpisode, plan_episodes
from drift_agents.submission.checked import WHO, Checked, Row, identity_of, who_of
from drift_envs.registration import IDS, knob_table_of
from drift_envs.schedule.loader import load_schedule
from drift_envs.schedule.model import Schedule
from drift_envs.schedule.timeline import Timeline


def check_lines(found: Checked) -> Iterator[str]:
    """Compare the lines with the planned cells; fills `rows` and `places`.

    Args:
        found: the submission, with manifest, experiment and cells.

    Yields:
        What is wrong, in words.

    Raises:
        ExperimentError: if the file cannot be read, or a line is not one of a run.
    """
    path = found.folder / EPISODES
    rows = found.rows = read_rows(path)
    names = found.names()
    played = [(who, list(own)) for who, own in groupby(range(len(rows)), lambda at: who_of(rows[at]))]
    planned = {(names[cell.place], *identity_of(cell), cell.seed): cell for cell in found.cells}
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
    return ", ".join(f"{field} {value}" for field, value in zip(WHO, who, strict=True))


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
