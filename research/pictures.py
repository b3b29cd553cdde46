"""Pictures of research: panels of equal kind as files, in one style.

Players differ in colour (Okabe and Ito, 2008), dash and marker, so that plots can be read without colour.

* `write_panels` - draws panels side by side, and one below the other for narrow screens
* `style_of`, `mark_drifts` - how a player is drawn, and where phases begin
* `PlotFile` - what was drawn
* `make_folder` - the folder of pictures
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

from drift_agents.errors import ExperimentError, needs_extra

DPI = 120

WIDTH, NARROW = 12.0, 4.1
"""Widths of a figure and of its form for narrow screens, in inches."""

DARK = (
    ("#ffffff", "#14181d"),
    ("#000000", "#e8ebee"),
    ("#4b5560", "#a9b4be"),
    ("#0072b2", "#2f86c9"),
)
"""Colours of a light page, and what they become on a dark one."""

_TITLE = 0.095
"""Inches of a title's character."""


class PlotFile(NamedTuple):
    """What was drawn.

    Args:
        title: what it shows.
        png: the file with pixels.
        svg: the file with shapes.
        narrow: the same with panels one below the other.
    """

    title: str
    png: Path
    svg: Path
    narrow: Path


def make_folder(folder: Path) -> None:
    """Make the folder of pictures.

    Raises:
        ExperimentError: if it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ExperimentError(f"{folder}: cannot be written: {error.strerror}") from error


def write_panels(
    title: str,
    draw: Callable[[Sequence[Any]], None],
    count: int,
    folder: Path,
    name: str,
    *,
    columns: int = 3,
    height: float = 2.9,
    legend_columns: int = 6,
) -> PlotFile:
    """Draw panels and write their files: side by side over the whole width, and one below the other.

    Args:
        title: what the figure shows.
        draw: draws into the panels, which come as a list; what it labels stands in the legend.
        count: of panels.
        folder: where to.
        name: of the files, without ending.
        columns: panels side by side, at the most.
        height: of a panel, in inches.
        legend_columns: of the legend, at the most.

    Raises:
        ExperimentError: if a file cannot be written.
        MissingDependencyError: without matplotlib.
    """
    picture = PlotFile(title, *(folder / f"{name}{ending}" for ending in (".png", ".svg", "-narrow.svg")))
    for across, width, files in (
        (min(columns, count), WIDTH, (picture.png, picture.svg)),
        (1, NARROW, (picture.narrow,)),
    ):
        with new_figure(math.ceil(count / across), across, width=width / across, height=height) as (figure, axes):
            panels = list(axes.flat)
            draw(panels[:count])
            for panel in panels[count:]:
                panel.set_visible(False)
            found = [panel.get_legend_handles_labels() for panel in panels[:count]]
            handles = {label: handle for pair in found for handle, label in zip(*pair, strict=True)}
            if handles:
                add_legend(figure, list(handles.values()), list(handles), min(legend_columns, len(handles)))
            figure.suptitle(fill(title, int(width / _TITLE)))
            _save(figure, files)
    return picture


def _save(figure: Any, files: Sequence[Path]) -> None:
    """Write a figure as pixels or shapes, by the files' endings; an SVG follows the colour scheme of its reader."""
    for path in files:
        try:
            if path.suffix == ".png":
                figure.savefig(path, dpi=DPI, metadata={"Software": None})
                continue
            text = io.StringIO()
            figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
            path.write_text(text.getvalue().replace("<defs>", f"<style>{_dark_rules()}</style>\n <defs>", 1), "utf-8")
        except OSError as error:
            raise ExperimentError(f"{error.filename or path}: cannot be written: {error.strerror}") from error


def _dark_rules() -> str:
    """Rules for a dark page: matplotlib writes colours as style attributes, and black text without one."""
    rules = [
        f'[style*="{what}: {light}"]{{{what}:{dark}!important}}' for light, dark in DARK for what in ("fill", "stroke")
    ]
    rules.append(f'text:not([style*="fill:"]){{fill:{dict(DARK)["#000000"]}}}')
    return f"@media (prefers-color-scheme:dark){{{''.join(rules)}}}"


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
    with needs_extra("matplotlib", "plots"):
        import matplotlib
        from matplotlib.figure import Figure
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
