"""Specification curves: the effects of a claim under all combinations, sorted, over the choices that each had."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

from research.choices.model import ChoiceStudy
from research.choices.verdicts import AGAINST, FOR, OPEN, ClaimVerdict
from research.pictures import PlotFile, write_panels

LOOKS = {FOR: ("#0072b2", "o"), OPEN: ("#4b5560", "D"), AGAINST: ("#d55e00", "s")}
"""Colour and mark of a combination by what it says."""
_LABELS, _CURVE = 0.34, 0.42
"""Shares of a panel: the width of the labels, the height of the curve."""
_HEIGHT = 4.6


def picture_of(paper: str) -> str:
    """The name of a paper's picture, without ending."""
    return f"choices_{paper.lower()}"


def title_of(paper: str) -> str:
    """What a paper's picture shows."""
    return f"{paper}: each claim under the choices that the paper leaves open, by effect"


def draw_curves(paper: str, claims: Sequence[tuple[str, ClaimVerdict, ChoiceStudy]], folder: Path) -> PlotFile:
    """Draw the claims of a paper, a panel each.

    Args:
        paper: its name.
        claims: their words, with what they come to and the paper's choices.
        folder: of the pictures.

    Raises:
        ExperimentError: if a file cannot be written.
        MissingDependencyError: without matplotlib.
    """

    def draw(panels: Sequence[Any]) -> None:
        for panel, (name, found, study) in zip(panels, claims, strict=True):
            _draw_claim(panel, name, found, study)

    return write_panels(title_of(paper), draw, len(claims), folder, picture_of(paper), columns=3, height=_HEIGHT)


def _draw_claim(panel: Any, name: str, found: ClaimVerdict, study: ChoiceStudy) -> None:
    panel.set_axis_off()
    for says, (colour, mark) in LOOKS.items():  # for the legend, which is made of what is labelled in panels
        panel.plot([], [], color=colour, marker=mark, linestyle="none", label=says)
    panel.set_title(fill(f"{name}: {found.verdict}", 44), loc="left")
    curve = panel.inset_axes((_LABELS, 1 - _CURVE, 1 - _LABELS, _CURVE))
    curve.axhline(0, color="#4b5560", linewidth=0.8)
    for says, (colour, mark) in LOOKS.items():
        at = [place for place, one in enumerate(found.results) if one.says == says]
        if at:
            effects = [found.results[place].effect for place in at]
            means = [effect.mean for effect in effects]
            reach = [[e.mean - e.low for e in effects], [e.high - e.mean for e in effects]]
            curve.errorbar(at, means, reach, color=colour, fmt=mark, markersize=3, linewidth=0.9)
    curve.set_ylabel(found.play.unit)
    curve.set_xticks([])
    curve.margins(x=0.02)
    below = panel.inset_axes((_LABELS, 0, 1 - _LABELS, 1 - _CURVE - 0.03), sharex=curve)
    rows = 0.0
    places: list[int] = []
    levels: list[float] = []
    ticks: list[tuple[float, str]] = []
    for choice in found.results[0].combination.values:
        for value in study.choices[choice].values:
            own = [place for place, one in enumerate(found.results) if one.combination.values[choice] == value]
            if own:
                ticks.append((rows, value if len(value) < 28 else f"{value[:26]}…"))
                places += own
                levels += [rows] * len(own)
                rows += 1.0
        rows += 0.6  # a gap between choices
    below.plot(places, levels, linestyle="none", marker="s", markersize=2.6, color="#000000")
    below.set_yticks([row for row, _ in ticks], [value for _, value in ticks], fontsize=6.5)
    below.invert_yaxis()
    below.set_xticks([])
    below.tick_params(length=0)
    for side in ("left", "bottom"):
        below.spines[side].set_visible(False)
