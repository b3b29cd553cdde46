"""The pictures of a map: who wins where, and success over budgets.

* `draw_map` - a grid of drift rate and false responses for each environment: colour says who wins, the number by how
  much, hatching where that is not clear
* `draw_rule_curves` - success over the budget of interactions
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from drift_agents.analysis.plots import FAMILY_COLOURS, OTHER
from drift_agents.analysis.price import BUDGETS, UNLIMITED

from drift_envs.metrics import Estimate
from research.pictures import PlotFile, make_folder, style_of, write_panels
from research.verify_map.map import MapPoint
from research.verify_map.rules import RATES, RuleBook

RATE_LABELS = {"none": "never", "rare": "rare\n(60)", "often": "often\n(20)", "rush": "rush\n(8)"}
"""The drift rates with their mean episodes between changes."""

_INK = "#10151a"  # the ink on a coloured cell is dark on every page


def draw_map(points: Sequence[MapPoint], book: RuleBook, folder: Path, name: str = "map") -> PlotFile:
    """Draw a panel for each environment: drift rate by share of false responses.

    Args:
        points: of one charge.
        folder: where to; it is made.
        name: of the files, without ending.

    Raises:
        ExperimentError: if a file cannot be written.
        MissingDependencyError: without matplotlib.
    """
    make_folder(folder)
    environments = list(dict.fromkeys(one.point.environment for one in points))
    present = [family for family in (*book.families, OTHER) if any(one.family == family for one in points)]

    def draw(axes: Sequence[Any]) -> None:
        for axis, environment in zip(axes, environments, strict=True):
            _draw_grid(axis, [one for one in points if one.point.environment == environment], book)
            axis.set_title(environment)
        for family in present:
            axes[0].bar(0, 0, bottom=-9, color=_fill(family), label=_title(family, book))
        axes[0].bar(
            0, 0, bottom=-9, facecolor="#d9dee3", edgecolor=_INK, hatch="///", linewidth=0, label="lead not clear"
        )

    charge = points[0].charge
    title = "Which family of rules wins, and its lead over the best rule of another family in percentage points"
    if charge:
        title += f"; a failed episode costs {charge} more interactions"
    columns = 2 if len(environments) in (2, 4) else 3
    return write_panels(title, draw, len(environments), folder, name, columns=columns, height=2.9, legend_columns=4)


def _draw_grid(axis: Any, points: Sequence[MapPoint], book: RuleBook) -> None:
    rates = [rate for rate in RATES if any(one.point.rate == rate for one in points)]
    shares = sorted({one.point.false for one in points})
    for one in points:
        x, y = rates.index(one.point.rate), shares.index(one.point.false)
        axis.bar(x, 0.96, 0.96, bottom=y - 0.48, color=_fill(one.family))
        if not one.is_clear:
            axis.bar(x, 0.96, 0.96, bottom=y - 0.48, facecolor="none", edgecolor=_INK, hatch="///", linewidth=0)
        text = "" if one.rival is None else f"{one.rival.points.mean:+.1f}"
        axis.text(
            x, y, text, ha="center", va="center", fontsize=10, fontweight="bold", color=_INK,
            bbox={"boxstyle": "round,pad=0.2", "facecolor": "#fdfdfd", "edgecolor": "none", "alpha": 0.85},
        )  # fmt: skip
    axis.set_xticks(range(len(rates)), [RATE_LABELS[rate] for rate in rates])
    axis.set_yticks(range(len(shares)), [f"{share} %" for share in shares])
    axis.set_xlim(-0.5, len(rates) - 0.5)
    axis.set_ylim(-0.5, len(shares) - 0.5)
    axis.set_xlabel("drift (mean episodes between changes)")
    axis.set_ylabel("false responses")
    axis.tick_params(length=0)


def _fill(family: str) -> str:
    return FAMILY_COLOURS.get(family, FAMILY_COLOURS[OTHER])


def _title(family: str, book: RuleBook) -> str:
    return book.families.get(family, family)


def draw_rule_curves(
    curves: Mapping[str, Mapping[str, Sequence[Estimate]]], book: RuleBook, folder: Path, name: str = "curves"
) -> PlotFile:
    """Draw a panel for each environment: success over the budget, and without a limit apart.

    Args:
        curves: by environment and rule, as `research.verify_map.map.rule_curves` returns them.
        book: the rules, with their families.
        folder: where to; it is made.
        name: of the files, without ending.

    Raises:
        ExperimentError: if a file cannot be written.
        MissingDependencyError: without matplotlib.
    """
    make_folder(folder)
    numbers = {
        rule: number for number, rule in enumerate(dict.fromkeys(rule for own in curves.values() for rule in own))
    }
    families = {name: rule.family for name, rule in book.by_name().items()}
    apart = BUDGETS[-1] + 0.4

    def draw(axes: Sequence[Any]) -> None:
        for axis, (environment, rules) in zip(axes, curves.items(), strict=True):
            for rule, found in rules.items():
                look, limited, whole = style_of(numbers[rule]), found[: len(BUDGETS)], found[len(BUDGETS)]
                look = look._replace(colour=_fill(families.get(rule, OTHER)))
                low, high = ([getattr(one, end) for one in limited] for end in ("low", "high"))
                axis.fill_between(BUDGETS, low, high, color=look.colour, alpha=0.13, linewidth=0)
                axis.plot(
                    BUDGETS, [one.mean for one in limited], color=look.colour, linestyle=look.dash, marker=look.mark,
                    markersize=4, linewidth=1.3, label=rule,
                )  # fmt: skip
                axis.plot([apart], [whole.mean], color=look.colour, marker=look.mark, markersize=4)
            axis.set_xticks([*BUDGETS, apart], [*(f"{budget:g}" for budget in BUDGETS), UNLIMITED])
            axis.set_title(environment)
            axis.set_xlabel("budget, multiples of the clairvoyant's interactions")
            axis.set_ylabel("success, %")

    columns = 2 if len(curves) in (2, 4) else 3
    return write_panels("Success over the budget", draw, len(curves), folder, name, columns=columns)
