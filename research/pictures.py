"""Pictures of research: panels of equal kind as files, in the style of `drift_agents.analysis.plots`.

* `write_panels` - draws them side by side, and one below the other for narrow screens
* `PlotFile` - what was drawn
* `make_folder` - the folder of pictures
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

from drift_agents.analysis.plots import add_legend, new_figure
from drift_agents.errors import ExperimentError

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
