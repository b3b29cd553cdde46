"""GLOVE against the plain agent and against `overwrite`, instance by instance.

* `Comparison` - one difference on one schedule in one phase
* `compare` - all of a schedule
* `is_glove` - whether a verifier is of GLOVE's family
* `sign_flip` - the p-value of a paired permutation test
* `holm` - p-values after Holm's correction
* `correct` - the same for the comparisons of a run, identical ones merged
* `tabulate_differences` - the table
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from drift_agents.analysis.runs import Player, Runs, difference, paired
from drift_agents.analysis.schedule_runs import Measure, PlayerIndex, memory_name
from drift_agents.analysis.table import MISSING, Table, format_difference, format_estimate
from drift_agents.analysis.tables.scores import ACROSS
from drift_envs.metrics import Estimate, recovery_ratio

BASELINES = {"none": "plain", "overwrite": "overwrite"}
"""The baselines of every verifier of GLOVE's family, with their names in the table."""

SIGNIFICANT = 0.05
FLIPS = 20_000
_AT_ONCE = 2**22
"""Signs that are drawn at once: all of them take gigabytes for ten thousands of instances."""


class Comparison(NamedTuple):
    """One difference on one schedule in one phase.

    Args:
        schedule: where.
        label: the pair that is compared.
        phase: when.
        estimate: the mean difference with its interval.
        p_value: of a mean difference at least as large where there is none; not a number in phases
            that no drift began, which no claim is about, and where all instances are one run.
        player: who.
        baseline: the player that it is compared with.
        episodes: what both played in the phase: comparisons with the same one are one comparison of several names.
    """

    schedule: str
    label: str
    phase: str
    estimate: Estimate
    p_value: float
    player: Player
    baseline: Player
    episodes: int


def compare(schedule: str, players: PlayerIndex, measure: Measure, phases: Sequence[str]) -> list[Comparison]:
    """All comparisons of a schedule.

    Args:
        schedule: its name.
        players: the players.
        measure: what is compared.
        phases: the phases; the first one is the source.
    """
    found = []
    for player, run in players.runs.items():
        for verifier, called in BASELINES.items():
            other = player._replace(verifier=verifier)
            baseline = players.runs.get(other)
            if baseline is None or not is_glove(player):
                continue
            label = f"{players.name(player).strip(' +')} - {called}, {memory_name(player)}"
            for phase in phases:
                ours, theirs = run.phase(phase), baseline.phase(phase)
                estimate = difference(ours, theirs, measure.of)
                tested = phase != phases[0] and estimate.n > 1
                values = paired(ours, theirs, measure=measure.of) if tested else [[], []]
                p_value = sign_flip([a - b for a, b in zip(*values, strict=True)]) if tested else math.nan
                played = hash((_episodes(ours), _episodes(theirs)))
                found.append(Comparison(schedule, label, phase, estimate, p_value, player, other, played))
    return found


def is_glove(player: Player) -> bool:
    """Whether a player's verifier is one of GLOVE's family."""
    return player.verifier.split("(")[0].split("_")[0] == "glove"


def sign_flip(differences: Sequence[float], seed: int = 0) -> float:
    """The p-value of a two-sided paired permutation test: how often flipped signs give a mean as far from 0.

    Exact for up to 14 differences, else from seeded random flips. `scipy.stats.permutation_test` gives the same exact
    p-values, but draws other flips from a seed, and published p-values depend on the draws.

    Args:
        differences: one an instance.
        seed: of the flips.

    Example:
        >>> sign_flip([1.0, 1.0, 1.0, 1.0, 1.0]), sign_flip([0.0, 0.0])
        (0.0625, 1.0)
    """
    values = np.asarray(differences, dtype=float)
    n = len(values)
    # Sums that are equal but for the order of their terms count as equal.
    least = abs(values.sum()) - 1e-9
    if n <= 14:
        signs = 1 - 2 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
        return float((np.abs(signs @ values) >= least).mean())
    rng = np.random.default_rng(seed)
    reached = 1  # what was observed is one of the possible flips
    rows = max(_AT_ONCE // n // 4, 1) * 4  # the generator makes four signs of one word, so that blocks change nothing
    for begin in range(0, FLIPS, rows):
        signs = 1 - 2 * rng.integers(2, size=(min(rows, FLIPS - begin), n), dtype=np.int8)
        reached += int((np.abs(signs @ values) >= least).sum())
    return reached / (FLIPS + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values after Holm's correction (1979), which bounds the family-wise error rate.

    Args:
        p_values: one a comparison; NaN for those that were not tested, which stay.

    Example:
        >>> holm([0.01, 0.04, 0.03])
        [0.03, 0.06, 0.06]
    """
    from statsmodels.stats.multitest import multipletests  # half a second, which few commands need

    tested = [index for index, p_value in enumerate(p_values) if not math.isnan(p_value)]
    corrected = list(p_values)
    if tested:
        _, adjusted, _, _ = multipletests([p_values[index] for index in tested], method="holm")
        for index, p_value in zip(tested, adjusted.tolist(), strict=True):
            corrected[index] = p_value
    return corrected


def correct(comparisons: Sequence[Comparison], more: Sequence[float] = ()) -> list[float]:
    """The p-values of comparisons after Holm's correction, in which agents with the same episodes count once.

    Args:
        comparisons: of a run.
        more: the p-values of further ones in the same family.

    Returns:
        One a comparison, then those of the further ones.
    """
    keys = [*((one.schedule, one.phase, one.episodes) for one in comparisons), *range(len(more))]
    distinct = dict(zip(keys, [*(one.p_value for one in comparisons), *more], strict=True))
    corrected = dict(zip(distinct, holm(list(distinct.values())), strict=True))
    return [corrected[key] for key in keys]


def _episodes(run: Runs) -> int:
    """What tells whether two runs are the same: instances, scores and steps of all episodes."""
    return hash(
        tuple(
            (seed, row["episode"], row["score"], row["steps"])
            for seed, rows in zip(run.seeds, run.rows, strict=True)
            for row in rows
        )
    )


def tabulate_differences(
    comparisons: Sequence[tuple[Comparison, float]], players: PlayerIndex, measure: Measure, phases: Sequence[str]
) -> list[Table]:
    """The table of a schedule.

    Args:
        comparisons: those of the schedule, each with its corrected p_value.
        players: the players.
        measure: what is compared.
        phases: the phases.
    """
    cells: dict[str, dict[str, str]] = {}
    for one, p_value in comparisons:
        text = format_difference(one.estimate)
        cells.setdefault(one.label, {})[one.phase] = f"{text}*" if p_value < SIGNIFICANT else text
    tables = []
    for begin in range(0, len(phases), ACROSS):
        shown = phases[begin : begin + ACROSS]
        table = Table("Paired differences in points", ("", *shown))
        for label, found in cells.items():
            table.add(label, *(found[phase] for phase in shown))
        for label, ratios in _ratios(players, measure, shown).items():
            table.add(label, *ratios)
        if cells:
            tables.append(table)
    return tables


def _ratios(players: PlayerIndex, measure: Measure, shown: Sequence[str]) -> Mapping[str, list[str]]:
    """The recovery ratios that are defined, by label."""
    found = {}
    for player in filter(is_glove, players.runs):
        trio = [players.runs.get(player._replace(verifier=name)) for name in (player.verifier, "none", "oracle_reset")]
        if any(run is None for run in trio):
            continue
        values = [paired(*(run.phase(phase) for run in trio if run is not None), measure=measure.of) for phase in shown]
        ratios = [recovery_ratio(*three) if three[0] else None for three in values]
        if any(ratio is not None for ratio in ratios):
            name = players.name(player).strip(" +")
            label = f"Recovery ratio{'' if name == 'GLOVE' else f' of {name}'}, {memory_name(player)}"
            found[label] = [MISSING if ratio is None else format_estimate(ratio, 2) for ratio in ratios]
    return found
