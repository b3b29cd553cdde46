"""The figures of the GLOVE paper, for the cells that this project plays too.

* `paper_figures` - one figure a phase, as the paper prints them
* `backbones` - the language models of its tables
"""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from typing import Any

from drift_agents.analysis.runs import Player
from drift_agents.experiment.loader import parse_text

GPT_4O = "GPT-4o"


@lru_cache(maxsize=1)
def _tables() -> dict[str, Any]:
    file = resources.files("drift_agents.analysis.tables") / "paper.yaml"
    data, _ = parse_text(file.read_text("utf-8"), "paper.yaml")
    return dict(data)


def backbones() -> tuple[str, ...]:
    """The language models of the paper's tables.

    Example:
        >>> backbones()[0]
        'GPT-4o'
    """
    return tuple(_tables())


def paper_figures(schedule: str, player: Player, backbone: str = GPT_4O) -> tuple[float, ...] | None:
    """What the paper prints for that cell, in percent.

    Args:
        schedule: the schedule's name.
        player: who plays; only the memories themselves and those with GLOVE stand in the paper.
        backbone: one of `backbones()`.

    Returns:
        One figure a phase in the order source, drift I, drift II; `None` where the paper has no such cell.

    Example:
        >>> paper_figures("frozen_lake/explicit", Player("vanilla", "glove", "planner"))
        (80, 75, 80)
    """
    suffix = {"none": "", "glove": "+glove"}.get(player.verifier)
    if suffix is None or player.unusual_parts:
        return None
    figures = _tables()[backbone].get(schedule, {}).get(f"{player.memory}{suffix}")
    return None if figures is None else tuple(figures)
