"""The style of plots: players differ in colour, dash and marker, so that plots can be read without colour.

* `PlayerStyle`, `style_of` - how a player is drawn
* `new_figure`, `add_legend` - a figure, and what its lines are called
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from textwrap import fill
from typing import Any, NamedTuple

from drift_agents.errors import MissingDependencyError

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
