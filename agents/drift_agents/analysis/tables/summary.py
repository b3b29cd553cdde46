"""A run in one table: what each memory lost to the drifts, and what was won back.

* `in_short` - a line for each schedule and memory that was played plain and with GLOVE
"""

from __future__ import annotations

from collections.abc import Sequence

from drift_agents.analysis.runs import Runs, estimate, sum_of
from drift_agents.analysis.table import MISSING, Table
from drift_agents.analysis.tables.overviews import ScheduleRuns

PLAIN, GLOVE = "none", "glove"
BESIDE = ("overwrite", GLOVE, "oracle_reset")
"""Who stands beside the plain agent, by the name of the verifier."""


def in_short(parts: Sequence[ScheduleRuns]) -> Table:
    """A line for each schedule and memory that was played plain and with GLOVE.

    *Before* is the source phase of the plain agent, everything else the mean over all phases that a
    drift began. Success or score, as the schedule's own tables have it, which have the intervals too;
    the two are not averaged. Of a verifier that was played with several options the first counts.

    Args:
        parts: the schedules that were played; those of a sweep have an overview of their own.

    Returns:
        The table; it has no rows if nothing was played both ways.
    """
    sheet = Table(
        "In percent: before any drift, and the mean of all phases that a drift began",
        ("schedule, memory", "before", "plain", "+ overwrite", "+ GLOVE", "oracle\nreset", "probes, %\nof all steps"),
    )
    for part in parts:
        source = part.order[0] if part.order else None
        found: dict[tuple[str, ...], dict[str, tuple[str, Runs]]] = {}
        for player, runs in part.naming.runs.items():
            verifier = player.verifier.partition("(")[0]
            who = (player.memory, player.policy, player.controller, player.team)
            found.setdefault(who, {}).setdefault(verifier, (part.naming.name(player), runs))
        for verifiers in found.values():
            if source is None or PLAIN not in verifiers or GLOVE not in verifiers or len(part.order) < 2:
                continue
            name, plain = verifiers[PLAIN]
            row = f"{part.schedule}, {name}"
            cells = [row, _figure(part, plain.phase(source)), _figure(part, plain.without(source))]
            for verifier in BESIDE:
                cells.append(
                    _figure(part, verifiers[verifier][1].without(source)) if verifier in verifiers else MISSING
                )
            sheet.add(*cells, _probe_share(verifiers[GLOVE][1]))
    return sheet


def _figure(part: ScheduleRuns, runs: Runs) -> str:
    value = estimate(runs.per_instance(part.measure.of))
    return f"{value.mean:.0f}" if value.n else MISSING


def _probe_share(runs: Runs) -> str:
    """The share of probe steps in all interactions, of all instances together."""
    probes = sum(runs.per_instance(sum_of("probe_steps")))
    total = sum(runs.per_instance(sum_of("steps", "probe_steps")))
    return f"{100 * probes / total:.1f}" if total else MISSING
