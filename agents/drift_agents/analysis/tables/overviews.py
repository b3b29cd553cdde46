"""Tables over several schedules or policies.

* `tabulate_summary` - one table of a run: what each memory lost to the drifts, and what was recovered
* `tabulate_sweep` - the effect of a swept value: one table a measure, one column a value
* `tabulate_policies` - source -> last drift, policy by policy, in the layout of the GLOVE paper's table 3
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from drift_agents.analysis.runs import Runs, difference, estimate, sum_of
from drift_agents.analysis.schedule_runs import ScheduleRuns, memory_name
from drift_agents.analysis.table import MISSING, Table, format_count, format_difference, format_estimate
from drift_agents.analysis.tables.comparisons import BASELINES
from drift_agents.analysis.tables.probing import false_alarms, format_delays, probe_share


def tabulate_sweep(parts: Sequence[tuple[Any, ScheduleRuns]], path: str) -> list[Table]:
    """What a swept value does.

    Args:
        parts: the schedules with their values, in the order of the file.
        path: where in the schedule the value stands.
    """
    if not parts:
        return []
    first = parts[0][1]
    heads = [f"{path.rpartition('.')[2]}\n{_short(value)}" for value, _ in parts]
    name, drifts = first.measure.name.capitalize(), any(len(part.phases) > 1 for _, part in parts)
    measures: list[tuple[str, bool, Callable[[ScheduleRuns, Runs], str]]] = [
        (f"{name} before any drift" if drifts else f"{name}; nothing drifts", True, _before),
        *([(f"{name} after the drifts", True, _after)] if drifts else []),
        ("Noticed the last drift, median delay in interactions", False, _noticed),
        ("False alarms in 1,000 interactions", False, _alarms),
        ("Probe steps, % of all interactions", False, _probing),
    ]
    tables = []
    for title, with_references, cell in measures:
        table = Table(title, ("method", *heads))
        for method, run, reference in first.players.rows():
            if reference and not with_references:
                continue
            cells = [
                MISSING if here is None else cell(part, here)
                for part, here in ((part, part.players.runs.get(run.player)) for _, part in parts)
            ]
            if any(text not in (MISSING, "0") for text in cells) or with_references:
                table.add(
                    method if with_references else first.players.full_name(run.player), *cells, reference=reference
                )
        if table.rows:
            tables.append(table)
    gains = Table(f"Paired differences{' after the drifts' if drifts else ''}, in points", ("", *heads))
    for player in first.players.runs:
        for verifier, called in BASELINES.items():
            baseline = player._replace(verifier=verifier)
            if player.verifier.startswith("glove") and baseline in first.players.runs:
                label = f"{first.players.name(player).strip(' +')} - {called}, {memory_name(player)}"
                gains.add(label, *(_gain(part, part.players.runs, player, baseline) for _, part in parts))
    return [*tables, gains] if gains.rows else tables


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _before(part: ScheduleRuns, run: Runs) -> str:
    here = run.phase(part.phases[0])
    return format_estimate(estimate(here.per_instance(part.measure.of), one_run=run.is_one_run))


def _after(part: ScheduleRuns, run: Runs) -> str:
    return format_estimate(estimate(part.after(run).per_instance(part.measure.of), one_run=run.is_one_run))


def _noticed(part: ScheduleRuns, run: Runs) -> str:
    return format_delays(run, part.phases[-1]) if run.player.verifier != "none" and len(part.phases) > 1 else MISSING


def _alarms(part: ScheduleRuns, run: Runs) -> str:
    return format_count(estimate(run.per_instance(false_alarms)))


def _probing(part: ScheduleRuns, run: Runs) -> str:
    return format_count(estimate(run.per_instance(probe_share)))


def _gain(part: ScheduleRuns, runs: Mapping[Any, Runs], player: Any, baseline: Any) -> str:
    if player not in runs or baseline not in runs:
        return MISSING
    return format_difference(difference(part.after(runs[player]), part.after(runs[baseline]), part.measure.of))


def tabulate_policies(parts: Sequence[ScheduleRuns]) -> list[Table]:
    """Source -> last drift, policy by policy, GLOVE below the plain agents, means over the memories (table 3).

    Args:
        parts: the schedules.
    """
    policies = list(dict.fromkeys(policy for part in parts for policy in part.players.policies()))
    if len(policies) < 2:
        return []
    table = Table("Policies: source → last drift, means over memories", ("policy", *(part.schedule for part in parts)))
    for policy in policies:
        plain = [_by_policy(part, policy, "none") for part in parts]
        glove = [_by_policy(part, policy, "glove") for part in parts]
        table.add(policy, *map(_change, plain))
        table.add("  + GLOVE", *(_change(ours, theirs[-1]) for ours, theirs in zip(glove, plain, strict=True)))
    return [table]


def _by_policy(part: ScheduleRuns, policy: str, verifier: str) -> list[float]:
    """The means of the source and of the last phase over all memories that were played with both verifiers."""
    compared = [
        player
        for player in part.players.runs
        if player.policy == policy
        and player.verifier == verifier
        and all(player._replace(verifier=other) in part.players.runs for other in ("none", "glove"))
    ]
    ends = []
    for phase in (part.phases[0], part.phases[-1]):
        values = [
            estimate(part.players.runs[player].phase(phase).per_instance(part.measure.of)).mean for player in compared
        ]
        ends.append(sum(values) / len(values) if values else math.nan)
    return ends


def _change(ends: Sequence[float], plain: float | None = None) -> str:
    if any(map(math.isnan, ends)):
        return MISSING
    text = " → ".join(f"{value:.0f}" for value in ends)
    return text if plain is None or math.isnan(plain) else f"{text} ({ends[-1] - plain:+.0f})"


PLAIN, GLOVE = "none", "glove"
BESIDE = ("overwrite", GLOVE, "oracle_reset")
"""Who stands beside the plain agent, by the name of the verifier."""


def tabulate_summary(parts: Sequence[ScheduleRuns]) -> Table:
    """A line for each schedule and memory that was played plain and with GLOVE.

    *Before* is the source phase of the plain agent, everything else the mean over all phases that a
    drift began. Success or score, as the schedule's own tables have it, which have the intervals too;
    the two are not averaged. Of a verifier that was played with several options the first counts.

    Args:
        parts: the schedules that were played; those of a sweep have an overview of their own.

    Returns:
        The table; it has no rows if nothing was played both ways.
    """
    table = Table(
        "In percent: before any drift, and the mean of all phases that a drift began",
        ("schedule, memory", "before", "plain", "+ overwrite", "+ GLOVE", "oracle\nreset", "probes, %\nof all steps"),
    )
    for part in parts:
        source = part.phases[0] if part.phases else None
        found: dict[tuple[str, ...], dict[str, tuple[str, Runs]]] = {}
        for player, runs in part.players.runs.items():
            verifier = player.verifier.partition("(")[0]
            who = (player.memory, player.policy, player.controller, player.team)
            found.setdefault(who, {}).setdefault(verifier, (part.players.name(player), runs))
        for verifiers in found.values():
            if source is None or PLAIN not in verifiers or GLOVE not in verifiers or len(part.phases) < 2:
                continue
            name, plain = verifiers[PLAIN]
            row = f"{part.schedule}, {name}"
            cells = [row, _figure(part, plain.phase(source)), _figure(part, plain.without(source))]
            for verifier in BESIDE:
                cells.append(
                    _figure(part, verifiers[verifier][1].without(source)) if verifier in verifiers else MISSING
                )
            table.add(*cells, _probe_share(verifiers[GLOVE][1]))
    return table


def _figure(part: ScheduleRuns, runs: Runs) -> str:
    value = estimate(runs.per_instance(part.measure.of))
    return f"{value.mean:.0f}" if value.n else MISSING


def _probe_share(runs: Runs) -> str:
    """The share of probe steps in all interactions, of all instances together."""
    probes = sum(runs.per_instance(sum_of("probe_steps")))
    total = sum(runs.per_instance(sum_of("steps", "probe_steps")))
    return f"{100 * probes / total:.1f}" if total else MISSING
