"""The board's map of drifts: for each agent a dot a schedule, by severity and visibility, with what is kept there.

* `MapFigure` - the map of one agent, ready for the template
* `make_figures` - the maps of a track, memory by memory
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import groupby
from typing import Any, NamedTuple

from drift_agents.analysis.drift_map import DriftPlace
from drift_agents.analysis.ranking import WORLDS
from drift_agents.analysis.schedule_runs import ALONE, MEMORY_NAMES
from drift_agents.submission.board import TrackBoard

LEFT, RIGHT, TOP, BOTTOM = 34.0, 232.0, 14.0, 96.0
"""The plot in units of the SVG, whose view box is 244 x 128."""

LOWEST = 0.5
"""The severity in percent at which the logarithmic axis begins; less is drawn there."""

RADIUS = 9.0
SHADES = 5
"""Colours, each for an equal range of what is kept."""


class MapDot(NamedTuple):
    """A schedule on the map.

    Args:
        x: place in units of the SVG.
        y: place in units of the SVG.
        own: the place that its visibility gives, where it was moved away from other dots.
        kept: what is kept, in whole percent.
        shade: the number of its colour, from 0.
        title: schedule, severity, visibility and what is kept.
        world: one of `drift_agents.analysis.ranking.WORLDS`, for filters.
        kind: the schedule's label.
    """

    x: float
    y: float
    own: float
    kept: int
    shade: int
    title: str
    world: str
    kind: str


class MapFigure(NamedTuple):
    """The map of one agent.

    Args:
        name: the agent's row in the table.
        keys: the agents of that row, as the script names them.
        dots: one a schedule.
    """

    name: str
    keys: str
    dots: tuple[MapDot, ...]


def make_figures(board: TrackBoard) -> list[tuple[str, list[MapFigure]]]:
    """The maps of a track's agents by memory: that of the best agent first, references left out.

    Args:
        board: the track.

    Returns:
        Display names of memories, each with the maps of its agents: plain, with controls of probing, with others.
    """
    rows = [row for row in board.views[0].rows if row.standing.key in board.kept and row.standing.key[-1] not in ALONE]
    memories = list(dict.fromkeys(row.standing.key[0] for row in rows))
    rows.sort(key=lambda row: (memories.index(row.standing.key[0]), _verifier_order(row.standing.key[1])))
    return [
        (
            MEMORY_NAMES.get(memory, memory),
            [
                MapFigure(row.name, " ".join(map(name_key, row.keys)), place_dots(board, board.kept[row.standing.key]))
                for row in own
            ],
        )
        for memory, own in groupby(rows, lambda row: row.standing.key[0])
    ]


def _verifier_order(verifier: str) -> int:
    first = ("none", "announce_only", "overwrite")
    return first.index(verifier) if verifier in first else len(first)


def name_key(key: tuple[str, ...]) -> str:
    """The labels of an agent as one word, by which the script finds its map.

    Example:
        >>> name_key(("vanilla", "glove", "direct", "solo", "planner"))
        'vanilla/glove/direct/solo/planner'
    """
    return "/".join(key).replace(" ", "_")


def place_dots(board: TrackBoard, kept: Mapping[str, float]) -> tuple[MapDot, ...]:
    """The dots of one agent; dots that would cover each other are moved apart vertically.

    Args:
        board: the track, with the places of its schedules.
        kept: what is kept by schedule, in percent.
    """
    dots: list[MapDot] = []
    for name in sorted(kept.keys() & board.places.keys(), key=lambda name: (board.places[name].severity, name)):
        place, about = board.places[name], board.abouts[name]
        x, y = _project(place)
        step = 2 * RADIUS if y < (TOP + BOTTOM) / 2 else -2 * RADIUS
        own = y
        while any(math.hypot(x - dot.x, y - dot.y) < 2 * RADIUS - 1 for dot in dots):
            y += step
        share = kept[name]
        dots.append(
            MapDot(
                round(x, 1),
                round(y, 1),
                round(own, 1),
                round(share),
                min(int(share * SHADES / 100), SHADES - 1),
                f"{name}: severity {place.severity:.0f} %, visibility {place.visibility:.0f} %, kept {share:.0f} %",
                _world_of(about),
                str(about["visibility"]),
            )
        )
    return tuple(dots)


def _project(place: DriftPlace) -> tuple[float, float]:
    width = math.log(100 / LOWEST)
    x = LEFT + (RIGHT - LEFT) * math.log(max(place.severity, LOWEST) / LOWEST) / width
    return x, BOTTOM - (BOTTOM - TOP) * place.visibility / 100


def draw_ticks() -> dict[str, list[tuple[float, str]]]:
    """The ticks of both axes: places and texts."""
    return {
        "x": [(round(_project(DriftPlace(value, 0))[0], 1), str(value)) for value in (1, 10, 100)],
        "y": [(round(_project(DriftPlace(1, value))[1], 1), str(value)) for value in (0, 50, 100)],
    }


def _world_of(about: Mapping[str, Any]) -> str:
    return next((name for name, ids in WORLDS.items() if about["env"] in ids), "")
