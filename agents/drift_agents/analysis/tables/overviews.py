"""Tables over several schedules or policies.

* `ScheduleRuns` - one schedule of a run: who played it, and its phases
* `over_sweep` - what a swept value does: one table a measure, one column a value
* `over_policies` - source -> last drift, policy by policy, in the layout of the paper's table 3
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from drift_agents.analysis.runs import Runs, difference, estimate
from drift_agents.analysis.table import MISSING, Table, show, show_count, show_difference
from drift_agents.analysis.tables.comparisons import RIVALS
from drift_agents.analysis.tables.probing import false_alarms, probe_share, show_delays
from drift_agents.analysis.tables.scores import Measure, PlayerIndex, memory_name


class ScheduleRuns(NamedTuple):
    """One schedule of a run.

    Args:
        schedule: its name.
        naming: who played it.
        measure: what is reported.
        order: its phases; the first one is the source.
    """

    schedule: str
    naming: PlayerIndex
    measure: Measure
    order: Sequence[str]

    def after(self, run: Runs) -> Runs:
        """The rows after the first drift; all rows where none came."""
        return run if len(self.order) < 2 else run.without(self.order[0])


def over_sweep(parts: Sequence[tuple[Any, ScheduleRuns]], path: str) -> list[Table]:
    """What a swept value does.

    Args:
        parts: the schedules with their values, in the order of the file.
        path: where in the schedule the value stands.
    """
    if not parts:
        return []
    first = parts[0][1]
    heads = [f"{path.rpartition('.')[2]}\n{_short(value)}" for value, _ in parts]
    name, drifts = first.measure.name.capitalize(), any(len(part.order) > 1 for _, part in parts)
    measures: list[tuple[str, bool, Callable[[ScheduleRuns, Runs], str]]] = [
        (f"{name} before any drift" if drifts else f"{name}; nothing drifts", True, _before),
        *([(f"{name} after the drifts", True, _after)] if drifts else []),
        ("Noticed the last drift, median delay in interactions", False, _noticed),
        ("False alarms in 1,000 interactions", False, _alarms),
        ("Probe steps, % of all interactions", False, _probing),
    ]
    sheets = []
    for title, with_references, cell in measures:
        sheet = Table(title, ("method", *heads))
        for method, run, reference in first.naming.rows():
            if reference and not with_references:
                continue
            cells = [
                MISSING if here is None else cell(part, here)
                for part, here in ((part, part.naming.runs.get(run.player)) for _, part in parts)
            ]
            if any(text not in (MISSING, "0") for text in cells) or with_references:
                sheet.add(
                    method if with_references else first.naming.full_name(run.player), *cells, reference=reference
                )
        if sheet.rows:
            sheets.append(sheet)
    gains = Table(f"Paired differences{' after the drifts' if drifts else ''}, in points", ("", *heads))
    for player in first.naming.runs:
        for verifier, called in RIVALS.items():
            rival = player._replace(verifier=verifier)
            if player.verifier.startswith("glove") and rival in first.naming.runs:
                label = f"{first.naming.name(player).strip(' +')} - {called}, {memory_name(player)}"
                gains.add(label, *(_gain(part, part.naming.runs, player, rival) for _, part in parts))
    return [*sheets, gains] if gains.rows else sheets


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _before(part: ScheduleRuns, run: Runs) -> str:
    here = run.phase(part.order[0])
    return show(estimate(here.per_instance(part.measure.of), one_run=run.is_one_run))


def _after(part: ScheduleRuns, run: Runs) -> str:
    return show(estimate(part.after(run).per_instance(part.measure.of), one_run=run.is_one_run))


def _noticed(part: ScheduleRuns, run: Runs) -> str:
    return show_delays(run, part.order[-1]) if run.player.verifier != "none" and len(part.order) > 1 else MISSING


def _alarms(part: ScheduleRuns, run: Runs) -> str:
    return show_count(estimate(run.per_instance(false_alarms)))


def _probing(part: ScheduleRuns, run: Runs) -> str:
    return show_count(estimate(run.per_instance(probe_share)))


def _gain(part: ScheduleRuns, runs: Mapping[Any, Runs], player: Any, rival: Any) -> str:
    if player not in runs or rival not in runs:
        return MISSING
    return show_difference(difference(part.after(runs[player]), part.after(runs[rival]), part.measure.of))


def over_policies(parts: Sequence[ScheduleRuns]) -> list[Table]:
    """Source -> last drift, policy by policy, GLOVE below the plain agents, means over the memories (table 3).

    Args:
        parts: the schedules.
    """
    policies = list(dict.fromkeys(policy for part in parts for policy in part.naming.policies()))
    if len(policies) < 2:
        return []
    sheet = Table("Policies: source → last drift, means over memories", ("policy", *(part.schedule for part in parts)))
    for policy in policies:
        plain = [_by_policy(part, policy, "none") for part in parts]
        glove = [_by_policy(part, policy, "glove") for part in parts]
        sheet.add(policy, *map(_change, plain))
        sheet.add("  + GLOVE", *(_change(ours, theirs[-1]) for ours, theirs in zip(glove, plain, strict=True)))
    return [sheet]


def _by_policy(part: ScheduleRuns, policy: str, verifier: str) -> list[float]:
    """The means of the source and of the last phase over all memories that were played with both verifiers."""
    players = [
        player
        for player in part.naming.runs
        if player.policy == policy
        and player.verifier == verifier
        and all(player._replace(verifier=other) in part.naming.runs for other in ("none", "glove"))
    ]
    ends = []
    for phase in (part.order[0], part.order[-1]):
        values = [
            estimate(part.naming.runs[player].phase(phase).per_instance(part.measure.of)).mean for player in players
        ]
        ends.append(sum(values) / len(values) if values else math.nan)
    return ends


def _change(ends: Sequence[float], plain: float | None = None) -> str:
    if any(map(math.isnan, ends)):
        return MISSING
    text = " → ".join(f"{value:.0f}" for value in ends)
    return text if plain is None or math.isnan(plain) else f"{text} ({ends[-1] - plain:+.0f})"
