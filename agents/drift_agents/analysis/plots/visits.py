"""Where an agent went on the lake, before and after a drift.

* `draw_visits` - a map of visits for each phase, from the steps that a run kept
* `count_visits` - the share of steps that began on each tile
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from drift_agents.analysis.plots.style import WIDTH, PlotFile, write_panels
from drift_agents.analysis.runs import Player
from drift_agents.analysis.schedule_runs import PlayerIndex
from drift_agents.experiment.folder import TRACES
from drift_agents.experiment.trace import SUFFIX, EpisodeTrace, read_header, read_trace

LAKE = "DriftFrozenLake-v0"
ACROSS = 4
"""Phases side by side at the most."""

SIZE, PITCH = 1.15, 1.12
"""The side of a map in inches, and the distance of two maps in sides."""

FULL = 25
"""The share at which colours end, in percent."""


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

    def draw(axes: Sequence[Any]) -> None:
        mesh = None
        for axis, (name, visits) in zip(axes, found, strict=True):
            for place, phase in enumerate(shown):
                if phase in visits:
                    mesh = _draw_map(axis, visits[phase], place * PITCH)
                    axis.text(place * PITCH + 0.5, 1.04, phase, ha="center", va="top", fontsize=7.5)
            axis.set_title(name, fontsize=8.5, pad=3)
            axis.set_xlim(-0.02, len(shown) * PITCH)
            axis.set_ylim(1.2, -0.02)
            axis.set_aspect("equal")
            axis.axis("off")
        label = "share of the phase's steps, %"
        bar = axes[0].figure.colorbar(mesh, ax=list(axes), location="bottom", shrink=0.3, aspect=30, extend="max")
        bar.set_label(label, fontsize=8)

    columns = min(len(found), max(1, int(WIDTH / (SIZE * len(shown) * PITCH))))
    return [write_panels(title, draw, len(found), folder, f"{prefix}-visits", columns=columns, height=SIZE + 0.6)]


def _draw_map(axis: Any, visits: Visits, left: float) -> Any:
    """Draw a map as tiles within one unit of length, and return what the colours stand for."""
    rows, columns = visits.shares.shape
    unit = 1 / max(rows, columns)
    mesh = axis.pcolormesh(
        left + unit * np.arange(columns + 1),
        unit * np.arange(rows + 1),
        100 * visits.shares,
        cmap="cividis",
        vmin=0,
        vmax=FULL,
        edgecolors="#8a949e",
        linewidth=0.4,
    )
    for row, letters in enumerate(visits.tiles):
        for column, letter in enumerate(letters):
            if letter != "F":
                # Not quite white and black, which a dark page turns into each other.
                colour = "#010101" if 100 * visits.shares[row, column] > FULL / 2 else "#fefefe"
                place = left + unit * (column + 0.5), unit * (row + 0.5)
                axis.text(*place, letter, ha="center", va="center", color=colour, fontsize=7)
    return mesh
