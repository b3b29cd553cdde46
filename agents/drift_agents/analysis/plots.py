"""The one table of colours, and the curve of a player around drifts.

A family of rules has the same colour in every picture, curve and board. The colours are those of Okabe and Ito (2008),
which differ for colour-blind readers too, and are legible on light and dark pages.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from drift_agents.analysis.rows import WINDOW, PlayerIndex, Row, Runs, estimate

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
    "clairvoyant": REFERENCES,
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
_MEMORY_COLOURS = tuple(
    FAMILY_COLOURS[name] for name in (REFERENCES, "keep", "patience", "detectors", "newest", "belief", "probing")
)
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
    """The episodes with which phases begin, of the first instance, and the phases' names."""
    rows = next(iter(players.runs.values())).rows[0]
    return [(at, str(row["phase"])) for at, row in enumerate(rows) if at and row["phase"] != rows[at - 1]["phase"]]
