"""The run in at most five sentences, made from the same figures as the tables.

* `write_sentences` - what was played, lost and recovered, and its price
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from drift_agents.analysis.runs import Measurement, Player, Runs, difference, estimate, mean_of
from drift_agents.analysis.schedule_runs import ScheduleRuns
from drift_agents.analysis.table import format_difference, format_estimate
from drift_agents.analysis.tables.comparisons import SIGNIFICANT, Comparison, is_glove
from drift_agents.analysis.tables.probing import probe_share
from drift_envs.metrics import Estimate

MOST = 5
"""Sentences at the most."""


class _Figure(NamedTuple):
    """A figure, and whose it is."""

    value: Estimate
    whose: str


def write_sentences(
    parts: Sequence[ScheduleRuns], comparisons: Sequence[tuple[Comparison, float]], most: int = MOST
) -> list[str]:
    """The run in a few sentences: each holds figures, with their intervals where they have some.

    What was played, what the agents without a verifier lost to drifts, GLOVE's differences, and its probes come first.
    A run without some of these has the best agents, the best references and the lengths of episodes instead.

    Args:
        parts: the schedules that were played.
        comparisons: all comparisons, each with its corrected p-value.
        most: sentences at the most.
    """
    sentences = [
        _played(parts),
        _lost(parts),
        *(_compared(parts, comparisons, verifier, called) for verifier, called in _AGAINST),
        _between(
            "Probe steps are",
            "of the interactions of agents with GLOVE",
            " %",
            _agents(parts, probe_share, is_glove),
            1,
        ),
        _best(parts, "agent", is_reference=False),
        _best(parts, "reference", is_reference=True),
        _between("An episode takes", "steps on average", "", _agents(parts, mean_of("steps")), 1),
    ]
    return [sentence for sentence in sentences if sentence][:most]


_AGAINST = (("none", "plain"), ("overwrite", "overwrite"))


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _played(parts: Sequence[ScheduleRuns]) -> str:
    agents = {run.player for part in parts for _, run in part.players.agents()}
    everyone = {run.player for part in parts for _, run, _ in part.players.rows()}
    seeds = {seed for part in parts for run in part.players.runs.values() for seed in run.seeds}
    episodes = sum(int(count) for part in parts for run in part.players.runs.values() for count in _lengths(run))
    references = f" and {_count(len(everyone - agents), 'reference')}" if everyone - agents else ""
    return (
        f"{_count(len(agents), 'agent')}{references} played {_count(len(parts), 'schedule')} with "
        f"{_count(len(seeds), 'seed')}: {_count(episodes, 'episode')}."
    )


def _lengths(run: Runs) -> list[float]:
    return [length for length in run.per_instance(len) if not math.isnan(length)]


def _lost(parts: Sequence[ScheduleRuns]) -> str:
    """How far agents without a verifier fall."""
    found: list[tuple[_Figure, str]] = []
    for part in parts:
        for name, run in part.players.agents() if len(part.phases) > 1 else ():
            if run.player.verifier == "none" and run.player.memory != "none":
                before, after = run.phase(part.phases[0]), part.after(run)
                first, last = (format_estimate(_estimate(part, one)) for one in (before, after))
                change = _Figure(difference(after, before, part.measure.of), f"{name.strip()} on {part.schedule}")
                if change.value.n:
                    found.append((change, f"from {first} to {last}"))
    if not found:
        return ""
    fell = sum(change.value.excludes_zero and change.value.mean < 0 for change, _ in found)
    (worst, how) = min(found, key=lambda pair: pair[0].value.mean)
    return (
        f"{fell} of {_count(len(found), 'plain agent')} (memories without a verifier, by schedule) are below their own "
        f"level after the drifts; the largest change is {_signed(worst.value)} points, {worst.whose}, {how}."
    )


def _compared(
    parts: Sequence[ScheduleRuns], comparisons: Sequence[tuple[Comparison, float]], verifier: str, called: str
) -> str:
    """How often GLOVE is above and below a baseline after drifts."""
    first = {part.schedule: part.phases[0] for part in parts if part.phases}
    names = {part.schedule: part.players for part in parts}
    found = [
        (one, p_value)
        for one, p_value in comparisons
        if one.baseline.verifier == verifier and one.phase != first.get(one.schedule) and one.estimate.n
    ]
    if not found:
        return ""
    known = [(one.estimate, p_value) for one, p_value in found if one.estimate.excludes_zero]
    above, below = (sum(sign * value.mean > 0 for value, _ in known) for sign in (1, -1))
    held = sum(p_value < SIGNIFICANT for _, p_value in known)
    low, high = (pick((one for one, _ in found), key=lambda one: one.estimate.mean) for pick in (min, max))
    told = [
        f"{_signed(one.estimate)} ({names[one.schedule].full_name(one.player._replace(verifier='none'))} on "
        f"{one.schedule}, {one.phase})"
        for one in (low, high)
    ]
    span = (
        f"all are {_signed(low.estimate)}" if low.estimate[:3] == high.estimate[:3] else f"from {told[0]} to {told[1]}"
    )
    return (
        f"GLOVE minus {called} after drifts, in points: above 0 in {above} of {_count(len(found), 'comparison')}, "
        f"below in {below} ({held} hold after Holm's correction); {span}."
    )


def _best(parts: Sequence[ScheduleRuns], what: str, *, is_reference: bool) -> str:
    """Between which figures the best players of the schedules lie."""
    best = []
    for part in parts:
        figures = [
            _Figure(_estimate(part, part.after(run)), f"{part.players.full_name(run.player)} on {part.schedule}")
            for _, run, reference in part.players.rows()
            if reference is is_reference
        ]
        known = [figure for figure in figures if figure.value.n]
        if known:
            best.append(max(known, key=lambda figure: figure.value.mean))
    return _between(f"The best {what} of a schedule reaches", "after its drifts", " %", best)


def _agents(
    parts: Sequence[ScheduleRuns], measure: Measurement, wanted: Callable[[Player], bool] = lambda player: True
) -> list[_Figure]:
    """A figure of each agent on each schedule."""
    return [
        _Figure(
            estimate(run.per_instance(measure), one_run=run.is_one_run),
            f"{part.players.full_name(run.player)} on {part.schedule}",
        )
        for part in parts
        for _, run in part.players.agents()
        if wanted(run.player)
    ]


def _between(begin: str, end: str, unit: str, figures: Sequence[_Figure], digits: int = 0) -> str:
    """A sentence about the least and the largest of some figures."""
    known = [figure for figure in figures if figure.value.n]
    if not known:
        return ""
    low, high = (pick(known, key=lambda figure: figure.value.mean) for pick in (min, max))
    told = [f"{format_estimate(figure.value, digits)}{unit} ({figure.whose})" for figure in (low, high)]
    return f"{begin} {told[0] if low == high else f'from {told[0]} to {told[1]}'} {end}."


def _estimate(part: ScheduleRuns, run: Runs) -> Estimate:
    return estimate(run.per_instance(part.measure.of), one_run=run.is_one_run)


def _signed(value: Estimate) -> str:
    return format_difference(value).rstrip("*")
