"""Figures as PNG and SVG: the one table of colours, the style of players, and the drift curve.

A family of rules has the same colour in every picture, curve and board. The colours are those of Okabe and Ito (2008),
which differ for colour-blind readers too, and are legible on light and dark pages. Players differ in colour, dash and
marker, so that plots can be read without colour.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from textwrap import fill
from typing import Any, NamedTuple

from drift_agents.analysis.runs import WINDOW, PlayerIndex, Row, Runs, estimate
from drift_agents.errors import MissingDependencyError

REFERENCES, OTHER = "references", "other"

FAMILY_COLOURS: Mapping[str, str] = {
    "keep": "#56b4e9",
    "newest": "#0072b2",
    "patience": "#009e73",
    "detectors": "#e69f00",
    "belief": "#cc79a7",
    "probing": "#d55e00",
    REFERENCES: "#8a949e",
    OTHER: "#b8c0c8",
}
"""By family, as `research/verify_map/rules.yaml` names them: what happens to a record that a response contradicts."""

_FAMILIES = {
    "none": "keep",
    "announce_only": "keep",
    "overwrite": "newest",
    "forget": "patience",
    "majority": "patience",
    "adwin": "detectors",
    "page_hinkley": "detectors",
    "window": "detectors",
}
_PROBING = "glove"
_ORACLE = "oracle_"

_MEMORIES = (
    "none",
    "vanilla",
    "memory_bank",
    "voyager",
    "generative_agents",
    "beliefmem",
    "full_transcript",
    "reasoning_bank",
    "adamem",
    "managed",
    "synapse",
    "consensus",
)
_MEMORY_COLOURS = ("#8a949e", "#56b4e9", "#009e73", "#e69f00", "#0072b2", "#cc79a7", "#d55e00")
_OWN = "#8f5aa8"
"""Of memories and loops that are not ours."""


def family_of(verifier: str) -> str:
    """The family of a verifier or a reference.

    Args:
        verifier: its label, with or without options.

    Example:
        >>> family_of("glove(budget=2)"), family_of("none"), family_of("oracle_reset"), family_of("mine")
        ('probing', 'keep', 'references', 'other')
    """
    name = verifier.partition("(")[0]
    if name.startswith(_PROBING):
        return "probing"
    return REFERENCES if name.startswith(_ORACLE) else _FAMILIES.get(name, OTHER)


def colour_of(memory: str) -> str:
    """The colour of a memory where several stand in one picture; the seventh begins anew.

    Args:
        memory: its label, with or without options.

    Example:
        >>> colour_of("vanilla(k=5)") == FAMILY_COLOURS["keep"], colour_of("my loop")
        (True, '#8f5aa8')
    """
    name = memory.partition("(")[0]
    return _MEMORY_COLOURS[_MEMORIES.index(name) % len(_MEMORY_COLOURS)] if name in _MEMORIES else _OWN


STYLES = (
    # Okabe and Ito (2008), ordered so that neighbours differ in grey too.
    ("#000000", "-", "o"),
    ("#d55e00", "-", "s"),
    ("#0072b2", "--", "^"),
    ("#009e73", "-.", "D"),
    ("#e69f00", ":", "v"),
    ("#cc79a7", (0, (5, 1, 1, 1, 1, 1)), "P"),
    ("#56b4e9", (0, (1, 1)), "X"),
)
"""Colour, dash and mark."""

SETTINGS: Any = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "svg.hashsalt": "drift-envs",  # equal runs give equal files
    "svg.fonttype": "none",
}
# A legend's characters, its lines and what stands before a label, in inches; lines for which every figure has room;
# characters in a line of a label.
_CHARACTER, _LINE, _HANDLE, _ROOM, _LABEL = 0.069, 0.19, 0.6, 2, 48


class PlayerStyle(NamedTuple):
    """How a player is drawn.

    Args:
        colour: of lines and bars.
        dash: of lines.
        mark: at some of the points.
    """

    colour: str
    dash: Any
    mark: str


def style_of(number: int) -> PlayerStyle:
    """How the player of that number is drawn; after seven of them colours come again, with another dash and mark.

    Args:
        number: from 0.

    Example:
        >>> style_of(0).colour == style_of(7).colour, style_of(0).mark == style_of(7).mark
        (True, False)
    """
    again, place = divmod(number, len(STYLES))
    colour, (_, dash, mark) = STYLES[place][0], STYLES[(place + again) % len(STYLES)]
    return PlayerStyle(colour, dash, mark)


@contextmanager
def new_figure(rows: int, columns: int, *, width: float = 3.6, height: float = 2.6) -> Iterator[tuple[Any, Any]]:
    """A figure with panels side by side, in the style of this package.

    Args:
        rows: of panels.
        columns: of panels.
        width: of a panel, in inches.
        height: of a panel, in inches.

    Yields:
        The figure, and its panels as an array of shape `(rows, columns)`.

    Raises:
        MissingDependencyError: without matplotlib.
    """
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependencyError('`matplotlib` is not installed, run `pip install "drift-envs[plots]"`') from error
    with matplotlib.rc_context(SETTINGS):
        figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
        yield figure, figure.subplots(rows, columns, squeeze=False)


def add_legend(figure: Any, handles: Sequence[Any], labels: Sequence[str], columns: int) -> None:
    """Put a legend below the panels; the figure grows by what it takes.

    Args:
        figure: from `new_figure`.
        handles: of what was drawn.
        labels: what each is called; long ones are broken.
        columns: of the legend, if they fit into the figure.
    """
    broken = [fill(label, _LABEL, subsequent_indent="  ") for label in labels]
    lines = [label.split("\n") for label in broken]
    wide = _HANDLE + _CHARACTER * max((len(line) for label in lines for line in label), default=0)
    columns = max(1, min(columns, int(figure.get_figwidth() / wide)))
    rows = math.ceil(len(broken) / columns)
    deepest = max((sum(map(len, lines[i : i + rows])) for i in range(0, len(lines), rows)), default=0)
    figure.set_figheight(figure.get_figheight() + _LINE * max(0, deepest - _ROOM))
    figure.legend(handles, broken, loc="outside lower center", ncols=columns)


class PlotSeries(NamedTuple):
    """One curve.

    Args:
        middle: the mean over instances, episode by episode.
        low: where its 95 % interval begins.
        high: where it ends.
    """

    middle: list[float]
    low: list[float]
    high: list[float]


def series(runs: Runs, field: str, *, scale: float = 100, window: int = WINDOW) -> PlotSeries:
    """A field, averaged over the last few episodes of its phase: the mean over instances, with intervals.

    Where no instance has a value, it is not a number.

    Args:
        runs: a player's rows.
        field: what is drawn.
        scale: by which it is multiplied; by default percent of a share.
        window: the most episodes of an average.
    """
    instances = [_smooth(rows, field, scale, window) for rows in runs.rows]
    length = min(map(len, instances), default=0)
    found = [estimate([one[at] for one in instances], one_run=runs.is_one_run) for at in range(length)]
    return PlotSeries([one.mean for one in found], [one.low for one in found], [one.high for one in found])


def _smooth(rows: Sequence[Row], field: str, scale: float, window: int) -> list[float]:
    found = []
    for at, row in enumerate(rows):
        near = [one for one in rows[max(0, at - window + 1) : at + 1] if one["phase"] == row["phase"]]
        values = [float(one[field]) for one in near if one[field] is not None]
        found.append(scale * sum(values) / len(values) if values else math.nan)
    return found


def drifts_of(players: PlayerIndex) -> list[tuple[int, str]]:
    """The episodes with which phases begin, of the first instance, and the phases' names.

    Args:
        players: the players.
    """
    rows = next(iter(players.runs.values())).rows[0]
    return [(at, str(row["phase"])) for at, row in enumerate(rows) if at and row["phase"] != rows[at - 1]["phase"]]


def mark_drifts(axis: Any, drifts: Sequence[tuple[int, str]]) -> None:
    """Where phases begin, if there are not too many to be legible.

    Args:
        axis: the panel, with its lines.
        drifts: episodes and names of the phases, as `drifts_of` gives them.
    """
    for at, phase in drifts if len(drifts) <= 12 else ():
        axis.axvline(at + 0.5, color="#4b5560", linewidth=1, linestyle=(0, (2, 2)))
        axis.annotate(
            phase, (at + 0.5, 1), xycoords=("data", "axes fraction"), xytext=(3, -9),
            textcoords="offset points", fontsize=7, color="#4b5560",
        )  # fmt: skip
    low, high = axis.get_ylim()
    axis.set_ylim(low, high + 0.1 * (high - low))  # room for the names of the phases


def draw_means(axis: Any, means: Sequence[float], number: int, apart: float) -> Any:
    """Draw means over episodes; lines are shifted by their numbers, so that no line hides an equal one.

    Args:
        axis: the panel.
        means: one for each episode, in percent.
        number: the line's number, from 0, for its style; the line of number 1 is not shifted.
        apart: the shift between two lines, in percent.

    Returns:
        The line, for a legend.
    """
    look = style_of(number)
    (line,) = axis.plot(
        range(1, len(means) + 1),
        [mean + apart * (number - 1) for mean in means],
        color=look.colour,
        linestyle=look.dash,
        marker=look.mark,
        markevery=(number * 3, 10),
        markersize=4,
    )
    return line


def mark_phases(axis: Any, rows: Sequence[Row]) -> None:
    """Mark where the phases after the first one begin.

    Args:
        axis: the panel, with its lines.
        rows: of one schedule.
    """
    starts: dict[str, int] = {}
    for row in rows:
        starts[row["phase"]] = min(row["episode"], starts.get(row["phase"], row["episode"]))
    mark_drifts(axis, [(start, phase) for phase, start in starts.items() if phase != "source"])
