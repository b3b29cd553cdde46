"""One schedule of a run: its players, what they are called, what is measured, and the phases.

* `ScheduleRuns`, `part_of` - all of it together
* `PlayerIndex` - the players with their rows, names and supervision
* `Measure`, `measure_of` - what is reported: the success rate of explicit drifts, the score of implicit ones
* `memory_name` - the display name of a player's memory
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from drift_agents.analysis.runs import Player, Row, Runs, mean_of, phases_of
from drift_agents.analysis.table import MISSING
from drift_agents.experiment.own_lines import OWN_LOOP

MEMORY_NAMES = {
    "none": "No memory",
    "vanilla": "Vanilla",
    "full_transcript": "Full transcript",
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
}
REFERENCE_NAMES = {
    "oracle_realign": "oracle realign",
    "oracle_reset": "oracle reset",
    "oracle_truth": "oracle truth",
}
ALONE = {"clairvoyant": "Clairvoyant"}
"""Players without memory and verifier, by policy."""


_DIGEST = re.compile(r"\(sha256=\w+\)")
"""Which file a part of one's own came from: `run.json` and the list of cells say it."""


def memory_name(player: Player) -> str:
    """The display name of a player's memory, without the digest of its file."""
    memory, mark, options = _DIGEST.sub("", player.memory).partition("(")
    return f"{MEMORY_NAMES.get(memory, memory)}{mark and ' ('}{options}"


class Measure(NamedTuple):
    """The reported field of an episode, in percent.

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
    """The players of a schedule, row by row: each memory, its verifiers below it, clairvoyant last.

    Args:
        runs: all players of a schedule, in the order of the log.
        manifest_players: the entry `players` of the run's manifest.
        schedule: the schedule's name.
    """

    def __init__(self, runs: Sequence[Runs], manifest_players: Sequence[Mapping[str, Any]], schedule: str) -> None:
        self.runs = {run.player: run for run in runs}
        self._about = {Player.of(one): one for one in manifest_players if one["schedule"] == schedule}
        self._policies = {run.player.policy for run in runs if run.player.policy not in (*ALONE, OWN_LOOP)}

    def rows(self) -> Iterator[tuple[str, Runs, bool]]:
        """Name, runs, and whether it is a reference, row by row; below another memory a verifier has its full name."""
        above = None
        for player, run in self.runs.items():
            name = self.name(player) if player.memory == above else self.full_name(player)
            above = player.memory
            yield name, run, self.is_reference(player)

    def agents(self) -> Iterator[tuple[str, Runs]]:
        """Name and runs of those that are no reference."""
        for name, run, reference in self.rows():
            if not reference:
                yield name, run

    def name(self, player: Player) -> str:
        """The display name of a player in a table."""
        if player.policy in ALONE:
            return ALONE[player.policy]
        memory = memory_name(player)
        labels = [player.policy] if len(self._policies) > 1 and player.policy != OWN_LOOP else []
        policy = f" ({', '.join([*labels, *player.unusual_parts])})" if labels or player.unusual_parts else ""
        if player.verifier == "none":
            return f"{memory}{policy}"
        if player.verifier in REFERENCE_NAMES:
            return f"  {REFERENCE_NAMES[player.verifier]}{policy}"
        verifier, mark, options = player.verifier.partition("(")
        return f"  + {VERIFIER_NAMES.get(verifier, verifier)}{mark and ' ('}{options}{policy}"

    def full_name(self, player: Player) -> str:
        """The display name without a memory's row above it: `Vanilla + GLOVE`."""
        name = self.name(player)
        return f"{memory_name(player)} {name.strip()}" if name.startswith(" ") else name

    def is_reference(self, player: Player) -> bool:
        """Whether it is a privileged reference."""
        return bool(self._about.get(player, {}).get("reference"))

    def supervision(self, player: Player) -> str:
        """Its level of `drift_agents.types.SUPERVISION`."""
        return str(self._about.get(player, {}).get("supervision", MISSING))


class ScheduleRuns(NamedTuple):
    """One schedule of a run.

    Args:
        schedule: its name.
        players: the players.
        measure: what is reported.
        phases: its phases; the first one is the source.
    """

    schedule: str
    players: PlayerIndex
    measure: Measure
    phases: Sequence[str]

    def after(self, run: Runs) -> Runs:
        """The rows after the first drift; all rows where none came."""
        return run if len(self.phases) < 2 else run.without(self.phases[0])


def part_of(manifest: Mapping[str, Any], schedule: str, runs: Sequence[Runs]) -> ScheduleRuns:
    """One schedule of a run, with its players, measure and phases.

    Args:
        manifest: what was played.
        schedule: the schedule's name.
        runs: its players' rows.
    """
    measure = measure_of(str(manifest["schedules"].get(schedule, {}).get("visibility")))
    return ScheduleRuns(schedule, PlayerIndex(runs, manifest["players"], schedule), measure, phases_of(runs))
