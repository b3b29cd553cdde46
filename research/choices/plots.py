"""Specification curves: the effects of a claim under all combinations, sorted, over the choices that each had."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

from research.choices.model import ChoiceStudy
from research.choices.verdicts import AGAINST, FOR, OPEN, ClaimVerdict
from research.pictures import WIDTH, PlotFile, write_panels

LOOKS = {FOR: ("#0072b2", "o"), AGAINST: ("#d55e00", "s"), OPEN: ("#4b5560", "D")}
"""Colour and mark of a combination by what it says."""
_LABELS = 0.36
"""The share of a panel's width that the labels take."""
_TITLE, _CURVE, _SPACE, _ROW, _GAP = 0.55, 1.9, 0.08, 0.16, 0.4
"""Inches of a panel's title, of its curve, between the curve and the choices, and of a choice's value; the gap between
two choices, in values."""
_LONGEST = 30
"""Characters of a label."""
_SMALL, _LARGE = 6.5, 9.0
"""Points of a label: in the narrow picture, and in the wide one, which pages show at two thirds of its size."""


def picture_of(paper: str) -> str:
    """The name of a paper's picture, without ending."""
    return f"choices_{paper.lower()}"


def title_of(paper: str) -> str:
    """What a paper's picture shows."""
    return f"{paper}: each claim under the choices that the paper leaves open, by effect (for / against / open)"


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
    labels = [_label_rows(found, study) for _, found, study in claims]
    plot = _CURVE + _SPACE + _ROW * max(own[-1].level + 1 for own in labels)

    def draw(panels: Sequence[Any]) -> None:
        for panel, (name, found, _), own in zip(panels, claims, labels, strict=True):
            _draw_claim(panel, name, found, own, plot)

    return write_panels(title_of(paper), draw, len(claims), folder, picture_of(paper), columns=2, height=plot + _TITLE)


class _Row(NamedTuple):
    """A value of a choice: where it stands from above, its label, and the combinations that have it."""

    level: float
    label: str
    places: list[int]


def _label_rows(found: ClaimVerdict, study: ChoiceStudy) -> list[_Row]:
    """A row for each value that is there; the first of a choice has the choice's name before it."""
    rows: list[_Row] = []
    level = 0.0
    for choice in found.results[0].combination.values:
        label = f"{choice}: "
        for value in study.choices[choice].values:
            places = [place for place, one in enumerate(found.results) if one.combination.values[choice] == value]
            if places:
                label += value
                rows.append(_Row(level, label if len(label) <= _LONGEST else f"{label[: _LONGEST - 1]}…", places))
                label, level = "", level + 1
        level += _GAP
    return rows


def _draw_claim(panel: Any, name: str, found: ClaimVerdict, rows: Sequence[_Row], plot: float) -> None:
    """A panel whose axes are `plot` inches high."""
    panel.set_axis_off()
    size = _LARGE if panel.figure.get_figwidth() == WIDTH else _SMALL
    for says, (colour, mark) in LOOKS.items():  # for the legend, which is made of what is labelled in panels
        panel.plot([], [], color=colour, marker=mark, linestyle="none", label=says)
    counts = " / ".join(str(found.count(says)) for says in LOOKS)
    panel.set_title(f"{fill(name, 58)}\n{found.verdict}: {counts}, n {found.n}", loc="left", fontsize=size + 1.5)
    curve = panel.inset_axes((_LABELS, 1 - _CURVE / plot, 1 - _LABELS, _CURVE / plot))
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
    high = _ROW * (rows[-1].level + 1) / plot
    below = panel.inset_axes((_LABELS, 1 - (_CURVE + _SPACE) / plot - high, 1 - _LABELS, high), sharex=curve)
    for level, _, places in rows:
        below.plot(places, [level] * len(places), linestyle="none", marker="s", markersize=2.6, color="#000000")
    below.set_yticks([row.level for row in rows], [row.label for row in rows], fontsize=size)
    below.set_ylim(rows[-1].level + 0.5, -0.5)
    below.set_xticks([])
    below.tick_params(length=0)
    for side in ("left", "bottom"):
        below.spines[side].set_visible(False)
