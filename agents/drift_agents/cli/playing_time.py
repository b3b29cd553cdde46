"""The option `--dry-run` of `drift-agents run` without language models: how many minutes an experiment would take."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from rich.console import Console

from drift_agents.analysis.table import Table, print_table
from drift_agents.cli.run import ProgressBars
from drift_agents.experiment.cell_environment import EvaluationWrapper, make_env, read_schedule
from drift_agents.experiment.config import Experiment
from drift_agents.experiment.episode import play
from drift_agents.experiment.plan import Cell, plan_cells, plan_episodes
from drift_agents.experiment.runner import Progress, count_training, name_failures
from drift_agents.experiment.workers import count_cores
from drift_agents.interruption import one_process
from drift_envs.schedule.yaml import split_suffix
from drift_envs.utils.command_line import Verbosity

MEASURED_SECONDS = 30.0
"""How long an experiment without language models is played in all."""


class PlayingTime(NamedTuple):
    """What the schedules of one file would take.

    Args:
        schedule: the file's name; in a sweep the schedule with the swept value.
        cells: how many.
        episodes: of all these cells.
        seconds: processor time of all these cells.
        waiting: seconds in which they use no processor: a service answers, or the machine is busy.
        players: agents and references.
        played: those of which a cell was played.
    """

    schedule: str
    cells: int
    episodes: int
    seconds: float
    waiting: float
    players: int
    played: int


class _Duration(NamedTuple):
    processor: float
    waiting: float

    def times(self, factor: float) -> _Duration:
        return _Duration(self.processor * factor, self.waiting * factor)


_NOTHING = _Duration(0.0, 0.0)


@dataclass
class _Player:
    """An agent or a reference on the schedules of one file.

    Args:
        cells: its cells.
        episodes: of one cell.
        cell: the duration of one cell; `None` where none was played.
        each: the duration of an episode.
    """

    cells: Sequence[Cell]
    episodes: int
    cell: _Duration | None = None
    each: _Duration = _NOTHING

    @property
    def name(self) -> tuple[object, ...]:
        """What is equal on all schedules."""
        return _name(self.cells[0])


def _name(cell: Cell) -> tuple[object, ...]:
    return cell.labels, cell.decision.labels, cell.reference


def measure(experiment: Experiment, progress: Progress | None = None) -> list[PlayingTime]:
    """Play one cell of every agent and reference on one schedule of each file; the lines are thrown away.

    All of it takes about `MEASURED_SECONDS`: of longer cells the first episodes are played, and the others counted.
    Players that are not reached are counted with the episodes of the same player on other schedules, or with those of
    all players. An episode that is cut is counted as if it lasted as long as it may.

    Args:
        experiment: an experiment without language models.
        progress: callbacks for each file, which count the players.

    Raises:
        DriftAgentsError: if a part cannot be made, or something goes wrong in a cell, with its name.
    """
    files: dict[str, dict[tuple[object, ...], list[Cell]]] = {}
    for cell in plan_cells(experiment):
        file = split_suffix(cell.schedule)[0] if cell.change is None else cell.place
        files.setdefault(file, {}).setdefault(_name(cell), []).append(cell)
    bars = Progress() if progress is None else progress
    for file, cells_of in files.items():
        bars.begin(file, len(cells_of))
    end, left = time.monotonic() + MEASURED_SECONDS, sum(map(len, files.values()))
    measured: dict[str, list[_Player]] = {}
    for file, cells_of in files.items():
        measured[file] = players = [_make_player(experiment, cells) for cells in cells_of.values()]
        if time.monotonic() < end:
            _play(experiment, players[0], 0.0, 0.0)  # modules, catalogues and tables, which a process loads once
        for player in players:
            now = time.monotonic()
            if now < end or not any(one.cell for one in chain(*measured.values())):
                _play(experiment, player, max(0.0, end - now) / left, end)
            left -= 1
            bars.advance(file, 1)
    everyone = [player for players in measured.values() for player in players]
    return [_sum_up(file, players, everyone) for file, players in measured.items()]


def _make_player(experiment: Experiment, cells: Sequence[Cell]) -> _Player:
    settings, cell = experiment.settings_of(cells[0].schedule), cells[0]
    if settings.episodes is not None:
        return _Player(cells, settings.episodes + count_training(experiment, cell))
    with closing(make_limited_env(cell)) as env:
        return _Player(cells, len(plan_episodes(env.timeline, settings)) + count_training(experiment, cell))


class TimeIsUp(Exception):
    """Ends an episode."""


class LimitedEnv(EvaluationWrapper):
    """An environment whose episodes end at a time of the monotonic clock."""

    end = float("inf")

    def step(self, action: Any) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        """Step while there is time."""
        if time.monotonic() >= self.end:
            raise TimeIsUp
        return super().step(action)


def make_limited_env(cell: Cell) -> LimitedEnv:
    """The environment of a cell, reset with its seed."""
    env = LimitedEnv(make_env(read_schedule(cell.schedule, cell.change)).env)
    env.env.reset(seed=cell.seed)
    return env


def _play(experiment: Experiment, player: _Player, limit: float, end: float) -> None:
    """Play the episodes of a cell that begin within a limit of seconds, and end before `end`."""
    cell = player.cells[len(player.cells) // 2]
    with one_process(), name_failures(cell):
        begin = _now()
        env = make_limited_env(cell)
        env.end = end
        marks = [begin]
        try:
            with closing(play(cell, experiment.settings_of(cell.schedule), env=env)) as rows:
                for _ in rows:
                    marks.append(_now())
                    if sum(_between(begin, marks[-1])) >= limit:
                        break
                else:
                    player.episodes = max(1, len(marks) - 1)
        except TimeIsUp:
            pass
    played = len(marks) - 1
    if played > 1:
        # What an agent makes once is not counted for each episode.
        player.each = _between(marks[1], marks[-1]).times(1 / (played - 1))
    elif played == 1:
        player.each = _between(begin, marks[-1])
    else:
        most = None if env.spec is None else env.spec.max_episode_steps
        player.each = _between(begin, _now()).times((most or 1) / max(1, env.steps))
    total = [
        one + each * max(0, player.episodes - played)
        for one, each in zip(_between(begin, marks[-1]), player.each, strict=True)
    ]
    player.cell = _Duration(*total)


def _now() -> tuple[float, float]:
    """Seconds of processor time, and of the monotonic clock.

    Processes that this one has waited for count, too: agents can play in a process of their own.
    """
    return sum(os.times()[:4]), time.monotonic()


def _between(begin: tuple[float, float], end: tuple[float, float]) -> _Duration:
    processor = end[0] - begin[0]
    return _Duration(processor, max(0.0, end[1] - begin[1] - processor))


def _sum_up(file: str, players: Sequence[_Player], everyone: Sequence[_Player]) -> PlayingTime:
    """What all cells of a file take; of players that were not played by the episodes of others."""
    processor = waiting = 0.0
    for player in players:
        found = player.cell
        if found is None:
            played = [one for one in everyone if one.cell]
            alike = [one.each for one in played if one.name == player.name] or [one.each for one in played]
            mean = _Duration(*(sum(column) / len(alike) for column in zip(*alike, strict=True)))
            found = mean.times(player.episodes)
        processor += found.processor * len(player.cells)
        waiting += found.waiting * len(player.cells)
    cells = sum(len(player.cells) for player in players)
    episodes = sum(player.episodes * len(player.cells) for player in players)
    return PlayingTime(
        file, cells, episodes, processor, waiting, len(players), sum(one.cell is not None for one in players)
    )


def print_playing_time(experiment: Experiment, jobs: int | None, console: Console, verbosity: Verbosity) -> None:
    """Print cells, episodes and minutes, before an experiment is played.

    Args:
        experiment: an experiment without language models.
        jobs: how many cells are played at the same time; `None` for one a core.
        console: where the table is printed.
        verbosity: quiet ones print no progress.
    """
    with ProgressBars(None, verbosity) as bars:
        rows = measure(experiment, bars)
    table = Table(experiment.name, ("schedule", "cells", "episodes", "CPU minutes"))
    whole = PlayingTime("all", *(sum(column) for column in list(zip(*rows, strict=True))[1:]))
    for row in (*rows, whole):
        table.add(row.schedule, f"{row.cells:,}", f"{row.episodes:,}", f"{row.seconds / 60:.1f}")
    print_table(console, table)
    at_once = min(jobs or count_cores(), count_cores(), whole.cells)
    minutes, waiting = whole.seconds / 60 / at_once, whole.waiting / 60 / at_once
    console.print(f"minutes  {minutes:.1f} on {at_once} {'core' if at_once == 1 else 'cores'} that do nothing else")
    if waiting >= max(0.1, minutes / 2):
        console.print(
            f"waiting  {waiting:.1f} minutes more if a service of the agents was waited for; none if this machine is "
            "busy now"
        )
    console.print(
        "One cell of each agent and reference was played for each schedule file, of long ones the first episodes, and "
        "its lines thrown away; other cells can take more or less. Nothing was written."
    )
    if whole.played < whole.players:
        console.print(
            f"After {MEASURED_SECONDS:g} s {whole.played} of {whole.players} were played; the others are counted by "
            "the episodes of these."
        )
