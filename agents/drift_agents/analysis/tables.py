"""The tables of a run, and the run in at most four sentences, made from the same figures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from drift_agents.agent.agent import NOTABLE_LOOPS
from drift_agents.analysis.names import ALONE, MEMORY_NAMES, REFERENCE_NAMES, VERIFIER_NAMES
from drift_agents.analysis.rows import (
    Player,
    Row,
    Runs,
    ScheduleRuns,
    difference,
    estimate,
    mean_of,
    recoveries,
    sum_of,
)
from drift_agents.analysis.table import MISSING, Table, format_count, format_difference, format_estimate, format_seeds
from drift_agents.experiment.own_lines import OWN_LOOP
from drift_envs.metrics import Estimate

ACROSS = 3
"""Phases side by side in one table; further ones follow in the next."""

EMPTY = ("", "0", MISSING)
"""Cells that keep no column of costs and counts in its table."""

PLAIN, GLOVE, RESET = "none", "glove", "oracle_reset"
"""Verifiers by their names: none, the paper's, and the reference that removes all records at a drift."""


def interactions(rows: Sequence[Row]) -> float:
    """The agent's own steps and those of all probes."""
    return sum_of("steps", "probe_steps")(rows)


def tabulate_overview(parts: Sequence[ScheduleRuns]) -> Table:
    """A line for each schedule and memory, score and cost for each verifier; means without intervals.

    *Before* is the source phase of the plain agent, the columns of verifiers are the mean over all phases that a drift
    began (over the whole run where nothing drifts). A verifier that was played with several options has a column for
    each, headed by them; of the references *oracle reset* has one. Beside the scores stand their costs, the
    interactions of an instance over the whole run, those of a training phase and of probes included. Memories whose
    figures are equal share a line; agents without memory have one only where no memory was played.
    """
    lines: dict[tuple[str, ...], tuple[ScheduleRuns, dict[str, Runs]]] = {}
    for part in parts:
        has_memory = any(player.memory != "none" for player in part.players.runs)
        for player, runs in part.players.runs.items():
            if player.policy in ALONE or (has_memory and player.memory == "none"):
                continue
            name = part.players.name(player._replace(verifier=PLAIN))
            _, found = lines.setdefault((part.schedule, name), (part, {}))
            found.setdefault(player.verifier, runs)
    played = dict.fromkeys(label for _, found in lines.values() for label in (PLAIN, *found))
    shown = {label: short for part in parts for label, short in part.players.labels.items()}
    verifiers = [*(label for label in played if label not in REFERENCE_NAMES), RESET]
    gloves = [label for label in verifiers if _verifier_of(label) == GLOVE]
    heads = {label: _head(shown.get(label, label), [shown.get(one, one) for one in verifiers]) for label in verifiers}
    mark = "'s" if len(gloves) == 1 else ":"
    cells: dict[tuple[str, ...], list[str]] = {}
    for (schedule, memory), (part, found) in lines.items():
        first = found.get(PLAIN) or next(iter(found.values()))
        figures = [_mean(part, first.phase(part.phases[0])) if len(part.phases) > 1 else MISSING]
        figures += [_mean(part, part.after(found[name])) if name in found else MISSING for name in verifiers]
        figures += [_cost(found[name]) if name in found else MISSING for name in verifiers]
        figures += [_probe_share(found[label]) if label in found else MISSING for label in gloves]
        cells.setdefault((schedule, *figures), []).append(memory)
    table = Table(
        "In percent: before any drift, and the mean of all phases that a drift began; "
        "cost: interactions of an instance, probes included",
        (
            "schedule: memories",
            "before",
            *(heads[label] for label in verifiers),
            *(f"{heads[label]}:\ncost" for label in verifiers),
            *(f"{heads[label]}{mark}\nprobes, %" for label in gloves),
        ),
    )
    for (schedule, *figures), memories in cells.items():
        table.add(f"{schedule}: {', '.join(memories)}", *figures)
    return table.used()


def _verifier_of(label: str) -> str:
    return label.partition("(")[0]


def _head(label: str, among: Sequence[str]) -> str:
    """The head of a verifier's column, with its options where another column has the same verifier."""
    if label == PLAIN:
        return "plain"
    if label == RESET:
        return REFERENCE_NAMES[label].replace(" ", "\n")
    verifier = _verifier_of(label)
    name, options = VERIFIER_NAMES.get(verifier, verifier), label[len(verifier) + 1 : -1]
    has_several = [_verifier_of(one) for one in among].count(verifier) > 1
    return "\n".join((name, *options.split(", "))) if options and has_several else name


def _mean(part: ScheduleRuns, runs: Runs) -> str:
    value = estimate(runs.per_instance(part.measure.of))
    return f"{value.mean:.0f}" if value.n else MISSING


def _cost(runs: Runs) -> str:
    """The interactions of an instance over the whole run, probes included."""
    return format_count(estimate(runs.whole.per_instance(interactions)))


def _probe_share(runs: Runs) -> str:
    """The share of probe steps in the interactions of all instances together, in percent."""
    probes, total = sum(runs.per_instance(sum_of("probe_steps"))), sum(runs.per_instance(interactions))
    return f"{100 * probes / total:.1f}" if total else MISSING


def tabulate_scores(part: ScheduleRuns) -> list[Table]:
    """Scores by phase, and after each drift recovery and dynamic regret."""
    tables = []
    for shown in _side_by_side(part.phases):
        drifts = [phase for phase in shown if phase != part.phases[0]]
        heads = [f"→ {phase}" if phase in drifts else phase for phase in shown]
        heads += [head for phase in drifts for head in (f"{phase}:\nrecovered", f"{phase}:\nregret")]
        table = Table(f"{part.measure.name.capitalize()}, by phase", ("method", *heads))
        for name, run, reference in part.players.rows():
            cells = [_format(run, run.phase(phase).per_instance(part.measure.of)) for phase in shown]
            for phase in drifts:
                here = run.phase(phase)
                cells += [_recovered(here), _format(run, here.per_instance(sum_of("regret")), 1)]
            table.add(name, *cells, reference=reference)
        tables.append(table.used())
    return tables


def _side_by_side(phases: Sequence[str]) -> Iterator[Sequence[str]]:
    for begin in range(0, len(phases), ACROSS):
        yield phases[begin : begin + ACROSS]


def _format(run: Runs, values: Sequence[float], digits: int = 0) -> str:
    return format_estimate(estimate(values, one_run=run.is_one_run), digits)


def _recovered(runs: Runs) -> str:
    """The median over all instances and how many recovered, as in `3, 10 of 10`."""
    found = recoveries(runs)
    if found is None:
        return MISSING
    longest = max(len(rows) for rows in runs.rows)
    median = f"> {longest}" if found.median is None else f"{found.median:g}"
    return f"{median}, {round(found.share * found.n)} of {found.n}"


def tabulate_costs(part: ScheduleRuns) -> Table:
    """What each player took over the whole run, the training phase included, and its supervision."""
    table = Table(
        "Costs of the whole run, mean of an instance",
        (
            "method",
            "steps before\nthe test",
            "steps",
            "probe\nsteps",
            "total\nsteps",
            "probe\nresets",
            "falls",
            "purchases",
            "model\ncalls",
            "tokens",
            "dollars",
            "records",
            "rewritten\ntexts",
            "supervision",
        ),
    )
    trains = any(rows for run in part.players.runs.values() for rows in run.training)
    for name, test, reference in part.players.rows():
        run = test.whole

        def count(*fields: str, run: Runs = run) -> str:
            return format_count(estimate(run.per_instance(sum_of(*fields))))

        def last(field: str, test: Runs = test) -> str:
            return format_count(estimate(test.per_instance(lambda played: float(played[-1][field]))))

        has_model = any(row["model_calls"] for rows in run.rows for row in rows)
        dollars = sum(run.per_instance(sum_of("cost"))) / len(run.rows)
        table.add(
            name,
            format_count(estimate([interactions(rows) for rows in test.training])) if trains else MISSING,
            count("steps"),
            count("probe_steps"),
            count("steps", "probe_steps"),
            *(count(f"probe_{kind}") for kind in ("resets", "falls", "purchases")),
            count("model_calls") if has_model else MISSING,
            count("tokens_in", "tokens_out") if has_model else MISSING,
            f"{dollars:.4g}" if dollars > 0 else MISSING,
            MISSING if test.player.memory == "none" or test.player.policy == OWN_LOOP else last("memory_size"),
            last("rewritten"),
            part.players.supervision(run.player),
            reference=reference,
        )
    return table.used(EMPTY)


def tabulate_verification(part: ScheduleRuns) -> list[Table]:
    """Contradictions, realignments, false alarms, delay of detection and truth of memory, for agents with a memory.

    *Still believed* is the mean over a phase of the share of changed facts of which memory's answer is the old one.
    """
    tables = []
    runs = [
        (name, run, reference)
        for name, run, reference in part.players.rows()
        if run.player.memory != "none" and run.player.policy != OWN_LOOP
    ]
    for number, shown in enumerate(list(_side_by_side(part.phases[1:])) or [()]):
        heads = ["conflicts", "realignments", "false\nones", "false alarms\nin 1,000"] if number == 0 else []
        for phase in shown:
            heads += [f"{phase}:\nnoticed, delay", f"{phase}: true\nat the end, %", f"{phase}: still\nbelieved, %"]
        table = Table("Verification: conflicts with memory, realignments, detection, truth", ("method", *heads))
        for name, run, reference in runs:
            acted = any(row["realignments"] for rows in run.rows for row in rows)
            cells = []
            if number == 0:
                fields = ("surprises", "realignments", "false_realignments")
                cells = [format_count(estimate(run.whole.per_instance(sum_of(field)))) for field in fields]
                cells.append(format_count(estimate(run.per_instance(false_alarms))) if acted else MISSING)
            for phase in shown:
                last = run.phase(phase, last=1)
                truth = _format(run, last.per_instance(mean_of("memory_truth_rate", 100)))
                believed = _format(run, run.phase(phase).per_instance(mean_of("still_believed", 100)))
                cells += [_noticed(run, phase) if acted and not reference else MISSING, truth, believed]
            table.add(name, *cells, reference=reference)
        tables.append(table.used(EMPTY))
    return [table for table in tables if table.rows and len(table.columns) > 1]


def false_alarms(rows: Sequence[Row]) -> float:
    """Realignments that touched nothing changed, in 1,000 of the agent's own interactions."""
    return 1000 * sum_of("false_realignments")(rows) / sum_of("steps")(rows)


def _noticed(run: Runs, phase: str) -> str:
    """How many noticed the drift, and the median delay over all instances, as in `9 of 10, 12`.

    A drift within an episode is noticed in one that began before it, so that all rows count.
    """
    if any(row["false_realignments"] is None for rows in run.phase(phase).rows for row in rows):
        return MISSING
    found = [[row["detection_delay"] for row in rows if row["detected"] == phase] for rows in run.rows]
    delays = sorted(float(delay[0]) if delay else math.inf for delay in found)
    middle = delays[(len(delays) - 1) // 2]
    noticed = sum(math.isfinite(delay) for delay in delays)
    return f"{noticed} of {len(delays)}{f', {middle:g}' if math.isfinite(middle) else ''}"


class CellGroup(NamedTuple):
    """The cells of one agent on one schedule.

    Args:
        schedule: its name.
        player: who played.
        seeds: the instances, in ascending order.
        episodes: how many were played in all of them, the training phase included.
    """

    schedule: str
    player: Player
    seeds: tuple[int, ...]
    episodes: int

    @property
    def agent(self) -> str:
        """The labels of its parts, controller and team where they are not the default."""
        return ", ".join((*self.player[:3], *self.player.unusual_parts))


def list_cells(parts: Sequence[ScheduleRuns]) -> list[CellGroup]:
    """What was played, in the order of the log."""
    return [
        CellGroup(part.schedule, player, runs.seeds, sum(map(len, runs.whole.rows)))
        for part in parts
        for player, runs in part.players.runs.items()
    ]


def tabulate_cells(groups: Sequence[CellGroup]) -> Table:
    """The list of cells, with the labels that `episodes.jsonl` has.

    Args:
        groups: what was played.
    """
    table = Table("Cells", ("schedule: memory, verifier, policy", "seeds", "episodes"))
    for one in groups:
        table.add(f"{one.schedule}: {one.agent}", format_seeds(one.seeds), f"{one.episodes:,}")
    return table


def write_headline(manifest: Mapping[str, Any], parts: Sequence[ScheduleRuns]) -> list[str]:
    """The run in a few sentences.

    Args:
        manifest: the content of `run.json`.
        parts: the runs of each schedule.
    """
    first, *others = [
        text for text in (_lost(parts), _own(parts), _compared(parts), _played(parts), _looped(parts)) if text
    ]
    if len(_seeds(parts)) == 1:
        first = f"One seed: means without intervals, which need more seeds. {first}"
    left = [
        f"{part.schedule}: {share:.0%} of the tasks score 1 if the conversation is left at once"
        f"{'; a score that is no higher shows nothing' if share else ''}."
        for part in parts
        if (share := manifest["schedules"].get(part.schedule, {}).get("left_at_once")) is not None
    ]
    return [first, *others, *left]


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
    shown = {label: short for part in parts for label, short in part.players.labels.items()}
    memories, verifiers = (
        ", ".join(dict.fromkeys(names.get(name, name) for name in (shown[one].partition("(")[0] for one in labels)))
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


def _own(parts: Sequence[ScheduleRuns]) -> str:
    """How far loops of one's own fall, of which it is not known whether they have a memory."""
    found = []
    for part in parts:
        for name, run in part.players.agents() if len(part.phases) > 1 else ():
            if run.player.policy == OWN_LOOP:
                before, after = run.phase(part.phases[0]), part.after(run)
                change = difference(after, before, part.measure.of)
                first, last = (format_estimate(_estimate(part, one)) for one in (before, after))
                found.append(f"{name}: {_signed(change)} points on {part.schedule}, from {first} to {last}.")
    return " ".join(found)


def _compared(parts: Sequence[ScheduleRuns]) -> str:
    """How often GLOVE is above and below the plain agent and `overwrite` after drifts."""
    clauses = []
    for baseline, called in ((PLAIN, "plain"), ("overwrite", "overwrite")):
        changes = []
        for part in parts:
            for _, run in part.players.agents():
                other = part.players.runs.get(run.player._replace(verifier=baseline))
                if _verifier_of(run.player.verifier) != GLOVE or other is None or len(part.phases) < 2:
                    continue
                change = difference(part.after(run), part.after(other), part.measure.of)
                changes += [change] if change.n else []
        if changes:
            above, below = (sum(_differs(change, sign) for change in changes) for sign in (1, -1))
            low, high = (_signed(pick(changes, key=lambda change: change.mean)) for pick in (min, max))
            span = low if low == high else f"from {low} to {high}"
            clause = f"GLOVE minus {called} after the drifts: {span} points"
            if changes[0].n > 1 and len(changes) > 1:
                clause += f", above 0 in {above} of {len(changes)} pairs of agents, below 0 in {below}"
            clauses.append(f"{clause}.")
    return " ".join(clauses)


def _looped(parts: Sequence[ScheduleRuns]) -> str:
    """Which agents moved in circles for longer than five steps (`drift_agents.agent.agent.count_loop_steps`)."""
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


def _signed(value: Estimate) -> str:
    return format_difference(value).rstrip("*")
