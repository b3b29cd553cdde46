"""The tables of one schedule.

* `Measure` - what is reported: the success rate of explicit drifts, the score of implicit ones
* `PlayerIndex` - who stands in which row, and what it is called
* `scores` - the main table, in the paper's layout
* `phase_details` - early and late rounds, recovery, regret and truth of memory after each drift
* `costs` - interactions, realignments, model calls and supervision
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from drift_agents.analysis.runs import Player, Row, Runs, estimate, mean_of, recoveries, sum_of
from drift_agents.analysis.table import MISSING, Table, show, show_count
from drift_agents.analysis.tables.paper import GPT_4O, paper_figures

ACROSS = 3
"""Phases side by side in one table; more of them go on in the next."""

EDGE = 5
"""How many rounds are the first and the last ones of a phase."""

MEMORY_NAMES = {
    "none": "No memory",
    "vanilla": "Vanilla",
    "memory_bank": "MemoryBank",
    "voyager": "Voyager",
    "generative_agents": "Generative Agents",
    "beliefmem": "BeliefMem",
    "managed": "Managed",
    "adamem": "AdaMEM",
    "synapse": "Synapse",
    "reasoning_bank": "ReasoningBank",
    "consensus": "Consensus",
}
VERIFIER_NAMES = {
    "glove": "GLOVE",
    "glove_active": "GLOVE, active test",
    "glove_passive": "GLOVE, passive test",
    "glove_spread": "GLOVE, doubt spreads",
    "base+extra": "extra episodes",
}
REFERENCE_NAMES = {
    "oracle_realign": "oracle realign",
    "oracle_reset": "oracle reset",
}
ALONE = {"clairvoyant": "Clairvoyant", "dyna_q_plus": "Dyna-Q+", "windowed_q": "Windowed Q-learning"}
"""Players without memory and verifier, by policy."""


def memory_name(player: Player) -> str:
    """What a player's memory is called."""
    memory, mark, options = player.memory.partition("(")
    return f"{MEMORY_NAMES.get(memory, memory)}{mark and ' ('}{options}"


class Measure(NamedTuple):
    """What is reported of an episode, in percent.

    Args:
        name: as in the heading.
        field: of the rows.
    """

    name: str
    field: str

    @property
    def of(self) -> Callable[[Sequence[Row]], float]:
        """The mean over rows, in percent."""
        return mean_of(self.field, 100)


def measure_of(visibility: str) -> Measure:
    """The success rate of explicit drifts, the score of implicit ones, as in the paper's section 5.1."""
    return (
        Measure("score in percent", "score") if visibility == "implicit" else Measure("success in percent", "success")
    )


class PlayerIndex:
    """Who stands in which row, and what it is called: each memory, its verifiers below it, clairvoyant last.

    Args:
        runs: all players of a schedule, in the order of the log.
        players: what the run's manifest says about them.
        schedule: the schedule's name.
    """

    def __init__(self, runs: Sequence[Runs], players: Sequence[Mapping[str, Any]], schedule: str) -> None:
        self.runs = {run.player: run for run in runs}
        self._about = {Player.of(one): one for one in players if one["schedule"] == schedule}
        self._policies = list(dict.fromkeys(run.player.policy for run in runs if run.player.policy not in ALONE))

    def rows(self) -> Iterator[tuple[str, Runs, bool]]:
        """Name, runs, and whether it is a reference, row by row."""
        for player, run in self.runs.items():
            yield self.name(player), run, self.is_reference(player)

    def agents(self) -> Iterator[tuple[str, Runs]]:
        """Name and runs of those that are no reference."""
        for name, run, reference in self.rows():
            if not reference:
                yield name, run

    def policies(self) -> list[str]:
        """The policies, those of references left out."""
        return list(self._policies)

    def name(self, player: Player) -> str:
        """What a player is called."""
        if player.policy in ALONE:
            return ALONE[player.policy]
        memory = memory_name(player)
        told = [player.policy] if len(self._policies) > 1 else []
        policy = f" ({', '.join([*told, *player.way])})" if told or player.way else ""
        if player.verifier == "none":
            return f"{memory}{policy}"
        if player.verifier in REFERENCE_NAMES:
            return f"  {REFERENCE_NAMES[player.verifier]}{policy}"
        verifier, mark, options = player.verifier.partition("(")
        return f"  + {VERIFIER_NAMES.get(verifier, verifier)}{mark and ' ('}{options}{policy}"

    def full_name(self, player: Player) -> str:
        """What a player is called where its memory's row does not stand above it: `Vanilla + GLOVE`."""
        name = self.name(player)
        return f"{memory_name(player)} {name.strip()}" if name.startswith(" ") else name

    def is_reference(self, player: Player) -> bool:
        """Whether it is told the truth on purpose."""
        return bool(self._about.get(player, {}).get("reference"))

    def supervision(self, player: Player) -> str:
        """What it is told beyond its own observations."""
        return str(self._about.get(player, {}).get("supervision", MISSING))


def scores(schedule: str, naming: PlayerIndex, measure: Measure, order: Sequence[str]) -> list[Table]:
    """The main table: phase by phase, with the paper's figures for the same cells.

    Args:
        schedule: the schedule's name.
        naming: who stands in which row.
        measure: what is reported.
        order: the phases.
    """
    sheets = []
    for begin in range(0, len(order), ACROSS):
        shown = order[begin : begin + ACROSS]
        heads = [("" if index + begin == 0 else "→ ") + phase for index, phase in enumerate(shown)]
        sheet = Table(f"{measure.name.capitalize()}, by phase", ("method", *heads, f"paper, {GPT_4O}"))
        for name, run, reference in naming.rows():
            cells = [
                show(estimate(part.per_instance(measure.of), one_run=part.is_one_run))
                for part in (run.phase(phase) for phase in shown)
            ]
            figures = None if reference else paper_figures(schedule, run.player)
            paper = MISSING if figures is None or begin else " → ".join(f"{figure:g}" for figure in figures)
            sheet.add(name, *cells, paper, reference=reference)
        sheets.append(sheet.used())
    return sheets


def phase_details(naming: PlayerIndex, measure: Measure, order: Sequence[str]) -> list[Table]:
    """After each drift: the first and the last rounds, recovery, regret and how true memory is.

    Args:
        naming: who stands in which row.
        measure: what is reported.
        order: the phases; the first one is the source.
    """
    sheets = []
    for phase in order[1:]:
        rounds = max(row["round"] for run in naming.runs.values() for rows in run.phase(phase).rows for row in rows)
        edge = max(1, min(EDGE, rounds // 2))
        sheet = Table(
            f"After {phase}",
            (
                "method",
                _span(1, edge),
                _span(rounds - edge + 1, rounds),
                "recovered\nafter rounds",
                "dynamic\nregret",
                "memory true\nat the end, %",
            ),
        )
        for name, run, reference in naming.rows():
            here = run.phase(phase)
            first, last = here.phase(phase, first=edge), here.phase(phase, last=edge)
            sheet.add(
                name,
                show(estimate(first.per_instance(measure.of), one_run=first.is_one_run)),
                show(estimate(last.per_instance(measure.of), one_run=last.is_one_run)),
                _recovered(here),
                show(estimate(here.per_instance(sum_of("regret")), one_run=here.is_one_run), 1),
                show(
                    estimate(
                        here.phase(phase, last=1).per_instance(mean_of("memory_truth_rate", 100)),
                        one_run=here.is_one_run,
                    )
                ),
                reference=reference,
            )
        sheets.append(sheet.used())
    return sheets


def _span(first: int, last: int) -> str:
    return f"round {first}" if first == last else f"rounds {first}-{last}"


def _recovered(runs: Runs) -> str:
    """The median over all instances and how many recovered, as in `3, 10 of 10`."""
    found = recoveries(runs)
    if found is None:
        return MISSING
    longest = max(len(rows) for rows in runs.rows)
    median = f"> {longest}" if found.median is None else f"{found.median:g}"
    return f"{median}, {round(found.share * found.n)} of {found.n}"


def costs(naming: PlayerIndex) -> Table:
    """What each player paid over the whole run, and with which supervision.

    Args:
        naming: who stands in which row.
    """
    sheet = Table(
        "Costs of the whole run, mean of an instance",
        (
            "method",
            "steps before\nthe test",
            "steps",
            "probe\nsteps",
            "total\nsteps",
            "realign-\nments",
            "false\nones",
            "model\ncalls",
            "tokens",
            "super-\nvision",
        ),
    )
    constructs = any(rows for run in naming.runs.values() for rows in run.construction)
    for name, test, reference in naming.rows():
        run = test.whole
        before = [sum_of("steps", "probe_steps")(rows) for rows in test.construction]

        def count(*fields: str, run: Runs = run) -> str:
            return show_count(estimate(run.per_instance(sum_of(*fields))))

        has_model = any(row["model_calls"] for rows in run.rows for row in rows)
        sheet.add(
            name,
            show_count(estimate(before)) if constructs else MISSING,
            count("steps"),
            count("probe_steps"),
            count("steps", "probe_steps"),
            count("realignments"),
            count("false_realignments"),
            count("model_calls") if has_model else MISSING,
            count("tokens_in", "tokens_out") if has_model else MISSING,
            naming.supervision(run.player),
            reference=reference,
        )
    return sheet.used()
