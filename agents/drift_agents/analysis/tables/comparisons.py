"""GLOVE against the plain agent and against `overwrite`, instance by instance.

* `Comparison` - one difference on one schedule in one phase
* `compare` - all of a schedule
* `is_glove` - whether somebody is of GLOVE's family
* `sign_flip` - the chance of such a difference where there is none
* `holm` - such chances, corrected for how many there are
* `paired_differences` - the table
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from drift_agents.analysis.runs import Player, difference, paired
from drift_agents.analysis.schedule_runs import Measure, PlayerIndex, memory_name
from drift_agents.analysis.table import MISSING, Table, show, show_difference
from drift_agents.analysis.tables.scores import ACROSS
from drift_envs.metrics import Estimate, recovery_ratio

RIVALS = {"none": "plain", "overwrite": "overwrite"}
"""With whom every verifier of GLOVE's family is compared, and what the table calls them."""

SIGNIFICANT = 0.05
FLIPS = 20_000


class Comparison(NamedTuple):
    """One difference on one schedule in one phase.

    Args:
        schedule: where.
        label: who against whom.
        phase: when.
        estimate: the mean difference with its interval.
        chance: of a mean difference at least as large where there is none; not a number in phases
            that no drift began, which no claim is about, and where all instances are one run.
        player: who.
        rival: against whom.
    """

    schedule: str
    label: str
    phase: str
    estimate: Estimate
    chance: float
    player: Player
    rival: Player


def compare(schedule: str, naming: PlayerIndex, measure: Measure, order: Sequence[str]) -> list[Comparison]:
    """All comparisons of a schedule.

    Args:
        schedule: its name.
        naming: who played.
        measure: what is compared.
        order: the phases; the first one is the source.
    """
    found = []
    for player, run in naming.runs.items():
        for verifier, called in RIVALS.items():
            other = player._replace(verifier=verifier)
            rival = naming.runs.get(other)
            if rival is None or not is_glove(player):
                continue
            label = f"{naming.name(player).strip(' +')} - {called}, {memory_name(player)}"
            for phase in order:
                ours, theirs = run.phase(phase), rival.phase(phase)
                estimate = difference(ours, theirs, measure.of)
                tested = phase != order[0] and estimate.n > 1
                values = paired(ours, theirs, measure=measure.of) if tested else [[], []]
                chance = sign_flip([a - b for a, b in zip(*values, strict=True)]) if tested else math.nan
                found.append(Comparison(schedule, label, phase, estimate, chance, player, other))
    return found


def is_glove(player: Player) -> bool:
    """Whether a player's verifier is one of GLOVE's family."""
    return player.verifier.split("(")[0].split("_")[0] == "glove"


def sign_flip(differences: Sequence[float], seed: int = 0) -> float:
    """The chance of a mean at least as far from 0 where each difference could as well have the other sign.

    A paired permutation test, two-sided; exact for up to 14 differences, else from random flips.

    Args:
        differences: one an instance.
        seed: of the flips.

    Example:
        >>> sign_flip([1.0, 1.0, 1.0, 1.0, 1.0]), sign_flip([0.0, 0.0])
        (0.0625, 1.0)
    """
    values = np.asarray(differences, dtype=float)
    n = len(values)
    if n <= 14:
        signs = 1 - 2 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
        extra = 0
    else:
        signs = 1 - 2 * np.random.default_rng(seed).integers(2, size=(FLIPS, n), dtype=np.int8)
        extra = 1  # what was observed is one of the possible flips
    # Sums that are equal but for the order of their terms count as equal.
    reached = np.abs(signs @ values) >= abs(values.sum()) - 1e-9
    return float((reached.sum() + extra) / (len(signs) + extra))


def holm(chances: Sequence[float]) -> list[float]:
    """Chances corrected for how many there are (Holm 1979): the family is wrong anywhere with at most that chance.

    Args:
        chances: one a comparison; those that are not a number were not tested, and stay.

    Example:
        >>> holm([0.01, 0.04, 0.03])
        [0.03, 0.06, 0.06]
    """
    corrected = list(chances)
    tested = sorted((chance, index) for index, chance in enumerate(chances) if not math.isnan(chance))
    highest = 0.0
    for rank, (chance, index) in enumerate(tested):
        highest = max(highest, min(1.0, (len(tested) - rank) * chance))
        corrected[index] = highest
    return corrected


def paired_differences(
    comparisons: Sequence[tuple[Comparison, float]], naming: PlayerIndex, measure: Measure, order: Sequence[str]
) -> list[Table]:
    """The table of a schedule.

    Args:
        comparisons: those of the schedule, each with its corrected chance.
        naming: who played.
        measure: what is compared.
        order: the phases.
    """
    cells: dict[str, dict[str, str]] = {}
    for one, chance in comparisons:
        text = show_difference(one.estimate)
        cells.setdefault(one.label, {})[one.phase] = f"{text}*" if chance < SIGNIFICANT else text
    sheets = []
    for begin in range(0, len(order), ACROSS):
        shown = order[begin : begin + ACROSS]
        sheet = Table("Paired differences in points", ("", *shown))
        for label, found in cells.items():
            sheet.add(label, *(found[phase] for phase in shown))
        for label, ratios in _ratios(naming, measure, shown).items():
            sheet.add(label, *ratios)
        if cells:
            sheets.append(sheet)
    return sheets


def _ratios(naming: PlayerIndex, measure: Measure, shown: Sequence[str]) -> Mapping[str, list[str]]:
    """The recovery ratios that can be told, by label."""
    found = {}
    for player in filter(is_glove, naming.runs):
        trio = [naming.runs.get(player._replace(verifier=name)) for name in (player.verifier, "none", "oracle_reset")]
        if any(run is None for run in trio):
            continue
        values = [paired(*(run.phase(phase) for run in trio if run is not None), measure=measure.of) for phase in shown]
        ratios = [recovery_ratio(*three) if three[0] else None for three in values]
        if any(ratio is not None for ratio in ratios):
            name = naming.name(player).strip(" +")
            label = f"Recovery ratio{'' if name == 'GLOVE' else f' of {name}'}, {memory_name(player)}"
            found[label] = [MISSING if ratio is None else show(ratio, 2) for ratio in ratios]
    return found
