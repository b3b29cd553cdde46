"""The drift curves of a run as the page's chart reads them.

* `list_curves` - a curve for each schedule, memory and measure
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import Any

from drift_agents.analysis.colours import FAMILY_COLOURS, OTHER, REFERENCES, colour_of, family_of
from drift_agents.analysis.html.vega import DASHES
from drift_agents.analysis.plots.curves import PlotSeries, drifts_of, series
from drift_agents.analysis.runs import WINDOW, Player, Runs
from drift_agents.analysis.schedule_runs import PlayerIndex, ScheduleRuns, memory_name
from drift_agents.experiment.own_lines import OWN_LOOP

CLAIRVOYANT = "clairvoyant"
CONFLICTS = "conflicts with memory in an episode"
MOST_LINES = 8
"""Agents that are legible in one curve."""
BELIEVED = "changed facts that memory still believes, in percent"


def list_curves(parts: Sequence[ScheduleRuns]) -> list[dict[str, Any]]:
    """Curves for each schedule: of several memories together, and of each memory with a line for each verifier.

    They are success or score, conflicts with memory, and the share of changed facts that memory still believes.
    Clairvoyant stands in all curves of success or score. Of single memories the one with the most lines comes first.

    Args:
        parts: the schedules that were played.

    Returns:
        Plain data: `schedule`, `memory`, `measure`, `percent` (whether values are; else they are counts of an episode),
        `drifts` (the episode after which each begins, and its name) and `lines`.
    """
    curves = []
    for part in parts:
        read = _Series()
        for title, lines in _lines_by_memory(part.players).items():
            about = {"schedule": part.schedule, "memory": title, "drifts": drifts_of(part.players)}
            measure = f"{part.measure.name}, mean of up to {WINDOW} episodes"
            found = [(name, run, read(run, part.measure.field)) for name, run in lines]
            curves.append({**about, "measure": measure, "percent": True, "lines": _style(found)})
            found = [
                (name, run, read(run, "surprises", scale=1, window=1))
                for name, run in lines
                if run.player.memory != "none" and run.player.policy != OWN_LOOP
            ]
            if any(any(data.middle) for _, _, data in found):
                curves.append({**about, "measure": CONFLICTS, "percent": False, "lines": _style(found)})
            found = [(name, run, read(run, "still_believed", window=1)) for name, run in lines]
            found = [one for one in found if not all(map(isnan, one[2].middle))]
            if found:
                curves.append({**about, "measure": BELIEVED, "percent": True, "lines": _style(found)})
    return curves


class _Series:
    """`series`, computed once for each player and field: a line stands in several curves."""

    def __init__(self) -> None:
        self._found: dict[tuple[Player, str], PlotSeries] = {}

    def __call__(self, run: Runs, field: str, **options: Any) -> PlotSeries:
        key = run.player, field
        if key not in self._found:
            self._found[key] = series(run, field, **options)
        return self._found[key]


def _style(lines: Sequence[tuple[str, Runs, PlotSeries]]) -> list[dict[str, Any]]:
    """Names, looks and rounded values of lines.

    Several memories differ in colour, and their verifiers in dash; of one memory the verifiers have the colours of
    their families.
    """
    players = [run.player for _, run, _ in lines]
    several = len({player.memory for player in players if player.policy != CLAIRVOYANT}) > 1
    verifiers = list(dict.fromkeys(player.verifier for player in players))
    return [
        {
            "name": name,
            "colour": _colour(run.player, several),
            "dash": DASHES[(verifiers.index(run.player.verifier) if several else number) % len(DASHES)],
            "mean": _round(data.middle),
            "low": _round(data.low),
            "high": _round(data.high),
        }
        for number, (name, run, data) in enumerate(lines)
    ]


def _colour(player: Player, several: bool) -> str:
    family = REFERENCES if player.policy == CLAIRVOYANT else family_of(player.verifier)
    if several and family != REFERENCES:
        return colour_of(player.memory)
    return colour_of(player.memory) if family == OTHER else FAMILY_COLOURS[family]


def _round(values: Sequence[float]) -> list[float | None]:
    """Two digits; `None` where there is no value, which leaves a gap."""
    return [None if isnan(value) else round(value, 2) for value in values]


def _lines_by_memory(players: PlayerIndex) -> dict[str, list[tuple[str, Runs]]]:
    """Lines to choose from: of several memories together first, then of each memory; clairvoyant stands in all.

    Together are all agents if they are few; else all without a verifier, and all with each verifier. A loop of one's
    own, which has no verifier, stands beside those too.
    """
    agents = [(player, run) for player, run in players.runs.items() if player.policy != CLAIRVOYANT]
    shared = [(CLAIRVOYANT, run) for player, run in players.runs.items() if player.policy == CLAIRVOYANT]
    by_memory: dict[str, list[tuple[str, Runs]]] = {}
    together: dict[str, list[tuple[str, Runs]]] = {}
    for player, run in agents:
        name, memory = players.name(player), memory_name(player)
        line = name.strip(" +") if name.startswith(" ") else f"plain{name.removeprefix(memory)}"
        by_memory.setdefault(memory, []).append((line, run))
        together.setdefault(f"all memories, {line.partition(' (')[0]}", []).append((players.full_name(player), run))
    found = {f"all agents ({len(agents)})": [(players.full_name(player), run) for player, run in agents]}
    if len(agents) > MOST_LINES:
        loops = [(players.full_name(player), run) for player, run in agents if player.policy == OWN_LOOP]
        several = {title: lines for title, lines in together.items() if len(lines) > 1}
        found = {title: [*lines, *(one for one in loops if one not in lines)] for title, lines in several.items()}
    if len(by_memory) == 1:
        found = {}
    found |= {memory: by_memory[memory] for memory in sorted(by_memory, key=lambda memory: -len(by_memory[memory]))}
    return {title: [*lines, *shared] for title, lines in found.items()} or {"": shared}
