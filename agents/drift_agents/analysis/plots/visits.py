"""Where an agent went on the lake, before and after a drift.

* `draw_visits` - a map of visits for each phase, from the steps that a run kept
* `count_visits` - the share of steps that began on each tile
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from drift_agents.analysis.plots.style import PlotFile, new_figure, save
from drift_agents.analysis.runs import Player
from drift_agents.analysis.schedule_runs import PlayerIndex
from drift_agents.experiment.folder import TRACES
from drift_agents.experiment.trace import SUFFIX, EpisodeTrace, read_header, read_trace

LAKE = "DriftFrozenLake-v0"
ACROSS = 4
"""Phases side by side at the most."""


class Visits(NamedTuple):
    """Where steps of a phase began.

    Args:
        tiles: the map.
        shares: the share of the phase's steps that began on each tile, shape `(rows, columns)`.
    """

    tiles: tuple[str, ...]
    shares: np.ndarray


def count_visits(traces: Iterable[EpisodeTrace], phase_of: Mapping[int, str]) -> dict[str, Visits]:
    """The share of steps that began on each tile, phase by phase; steps whose state names no tile are left out.

    Args:
        traces: the steps of one cell on the lake.
        phase_of: the phase of each episode; those that have none are left out.
    """
    counts: dict[str, tuple[tuple[str, ...], np.ndarray]] = {}
    for trace in traces:
        phase = phase_of.get(trace.episode)
        if phase is None:
            continue
        for step in trace.steps:
            tiles = tuple(step.knobs["map"])
            position = _position(step.state, tiles)
            if position is None:
                continue
            if phase not in counts or counts[phase][0] != tiles:
                counts[phase] = tiles, np.zeros((len(tiles), len(tiles[0])))
            counts[phase][1][position] += 1
    return {phase: Visits(tiles, found / found.sum()) for phase, (tiles, found) in counts.items()}


def _position(state: str, tiles: Sequence[str]) -> tuple[int, int] | None:
    """The row and the column of a state of the lake; `None` where the text, as of another wrapper, has none."""
    try:
        content = json.loads(state)
    except ValueError:
        return None
    position = content.get("cur_pos") if isinstance(content, dict) else None
    if not isinstance(position, list) or len(position) != 2 or not all(type(number) is int for number in position):
        return None
    row, column = position
    return (row, column) if 0 <= row < len(tiles) and 0 <= column < len(tiles[0]) else None


def draw_visits(
    run: Path, schedule: str, env: str, players: PlayerIndex, phases: Sequence[str], folder: Path, prefix: str
) -> list[PlotFile]:
    """A map of visits for each phase, of the first instance of every agent whose steps were kept.

    Args:
        run: the run's folder.
        schedule: its name.
        env: the environment's id; only the lake has tiles.
        players: the players with their names.
        phases: the phases.
        folder: where to.
        prefix: how the files' names begin.
    """
    if env != LAKE:
        return []
    shown = phases[:ACROSS]
    found: list[tuple[str, dict[str, Visits]]] = []
    files = {}
    for path in sorted((run / TRACES).glob(f"*{SUFFIX}")):
        header = read_header(path)
        files[header.schedule, Player.of(header._asdict()), header.seed] = path
    for player, runs in players.runs.items():
        steps = files.get((schedule, player, runs.seeds[0]))
        if steps is not None and not players.is_reference(player):
            visits = count_visits(read_trace(steps), {row["episode"]: row["phase"] for row in runs.rows[0]})
            if visits:
                found.append((players.full_name(player), visits))
    if not found:
        return []
    title = f"Where the agent was on {schedule}"
    with new_figure(len(found), len(shown), width=2.4, height=2.5) as (figure, axes):
        image = None
        for line, (name, visits) in zip(axes, found, strict=True):
            for axis, phase in zip(line, shown, strict=True):
                axis.set_title(f"{name}\n{phase}", fontsize=8)
                if phase not in visits:
                    axis.set_visible(False)
                    continue
                tiles, shares = visits[phase]
                image = axis.imshow(100 * shares, cmap="cividis", vmin=0, vmax=25)
                for row, letters in enumerate(tiles):
                    for column, letter in enumerate(letters):
                        if letter != "F":
                            colour = "black" if shares[row, column] > 0.12 else "white"
                            axis.text(column, row, letter, ha="center", va="center", color=colour, fontsize=8)
                axis.set_xticks(range(len(tiles[0])))
                axis.set_yticks(range(len(tiles)))
                axis.tick_params(labelsize=6, length=0)
                axis.set_xlabel("column", fontsize=7)
                axis.set_ylabel("row", fontsize=7)
        if image is not None:
            figure.colorbar(image, ax=axes, shrink=0.6, label="share of the phase's steps, %", extend="max")
        figure.suptitle(title)
        return [save(figure, title, folder, f"{prefix}-visits")]
