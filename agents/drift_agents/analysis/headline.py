"""A run in at most four sentences, made from the same figures as its tables.

* `write_headline` - what drifts cost, what GLOVE changed, what was played; of one seed no difference is counted
"""

from __future__ import annotations

from collections.abc import Sequence

from drift_agents.agent import NOTABLE_LOOPS
from drift_agents.analysis.runs import Runs, difference, estimate, sum_of
from drift_agents.analysis.schedule_runs import MEMORY_NAMES, VERIFIER_NAMES, ScheduleRuns
from drift_agents.analysis.table import format_difference, format_estimate
from drift_agents.analysis.tables import GLOVE, PLAIN
from drift_agents.experiment.own_lines import OWN_LOOP
from drift_envs.metrics import Estimate


def write_headline(parts: Sequence[ScheduleRuns]) -> list[str]:
    """The run in a few sentences.

    Args:
        parts: the schedules that were played.
    """
    first, *others = [text for text in (_lost(parts), _compared(parts), _played(parts), _looped(parts)) if text]
    if len(_seeds(parts)) == 1:
        first = f"One seed: means without intervals, which need more seeds. {first}"
    return [first, *others]


def _seeds(parts: Sequence[ScheduleRuns]) -> set[int]:
    return {seed for part in parts for run in part.players.runs.values() for seed in run.seeds}


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _played(parts: Sequence[ScheduleRuns]) -> str:
    agents = list(dict.fromkeys(run.player for part in parts for _, run in part.players.agents()))
    everyone = {player for part in parts for player in part.players.runs}
    seeds = _seeds(parts)
    episodes = sum(len(rows) for part in parts for run in part.players.runs.values() for rows in run.rows)
    references = f" and {_count(len(everyone - set(agents)), 'reference')}" if everyone - set(agents) else ""
    memories, verifiers = (
        ", ".join(dict.fromkeys(names.get(label, label) for label in (one.partition("(")[0] for one in labels)))
        for names, labels in (
            (MEMORY_NAMES, [player.memory for player in agents]),
            ({**VERIFIER_NAMES, PLAIN: "none"}, [player.verifier for player in agents]),
        )
    )
    return (
        f"{_count(len(agents), 'agent')} (memories: {memories}; verifiers: {verifiers}){references} played "
        f"{_count(len(parts), 'schedule')} with {_count(len(seeds), 'seed')}: {_count(episodes, 'episode')}."
    )


def _lost(parts: Sequence[ScheduleRuns]) -> str:
    """How far agents without a verifier fall."""
    found: list[tuple[Estimate, str]] = []
    for part in parts:
        for name, run in part.players.agents() if len(part.phases) > 1 else ():
            if run.player.verifier == PLAIN and run.player.memory != "none" and run.player.policy != OWN_LOOP:
                before, after = run.phase(part.phases[0]), part.after(run)
                change = difference(after, before, part.measure.of)
                if change.n:
                    first, last = (format_estimate(_estimate(part, one)) for one in (before, after))
                    found.append((change, f"{name.strip()} on {part.schedule}, from {first} to {last}"))
    if not found:
        return ""
    worst, whose = min(found, key=lambda pair: pair[0].mean)
    largest = f"{_signed(worst)} points, {whose}."
    if worst.n == 1 or len(found) == 1:
        return f"The worst change of an agent with memory and no verifier after the drifts: {largest}"
    lower = sum(_differs(change, -1) for change, _ in found)
    return (
        f"After the drifts {lower} of {len(found)} agents with memory and no verifier (counted once a schedule) "
        f"{'scores' if lower == 1 else 'score'} lower than before; the worst change is {largest}"
    )


def _compared(parts: Sequence[ScheduleRuns]) -> str:
    """How often GLOVE is above and below the plain agent and `overwrite` after drifts."""
    clauses = []
    for baseline, called in ((PLAIN, "plain"), ("overwrite", "overwrite")):
        changes = []
        for part in parts:
            for _, run in part.players.agents():
                other = part.players.runs.get(run.player._replace(verifier=baseline))
                if run.player.verifier.partition("(")[0] != GLOVE or other is None or len(part.phases) < 2:
                    continue
                change = difference(part.after(run), part.after(other), part.measure.of)
                changes += [change] if change.n else []
        if changes:
            above, below = (sum(_differs(change, sign) for change in changes) for sign in (1, -1))
            low, high = (_signed(pick(changes, key=_by_mean)) for pick in (min, max))
            span = low if low == high else f"from {low} to {high}"
            clause = f"GLOVE minus {called} after the drifts: {span} points"
            if changes[0].n > 1 and len(changes) > 1:
                clause += f", above 0 in {above} of {len(changes)} pairs of agents, below 0 in {below}"
            clauses.append(f"{clause}.")
    return " ".join(clauses)


def _looped(parts: Sequence[ScheduleRuns]) -> str:
    """Which agents moved in circles for longer than five steps (`drift_agents.agent.count_loop_steps`)."""
    found = []
    for part in parts:
        for _, run in part.players.agents():
            looped, steps = (sum(run.whole.per_instance(sum_of(field))) for field in ("loop_steps", "steps"))
            if steps and looped / steps >= NOTABLE_LOOPS:
                found.append((looped / steps, f"{part.players.full_name(run.player)} on {part.schedule}"))
    if not found:
        return ""
    share, whose = max(found)
    return (
        f"Warning: {_count(len(found), 'agent')} (by schedule) moved in circles, with at least {NOTABLE_LOOPS:.0%} of "
        f"the steps in loops; most: {share:.0%}, {whose}."
    )


def _differs(change: Estimate, sign: int) -> bool:
    """Whether a difference has that sign by its interval."""
    return sign * change.mean > 0 and change.excludes_zero


def _estimate(part: ScheduleRuns, run: Runs) -> Estimate:
    return estimate(run.per_instance(part.measure.of), one_run=run.is_one_run)


def _by_mean(value: Estimate) -> float:
    return value.mean


def _signed(value: Estimate) -> str:
    return format_difference(value).rstrip("*")
