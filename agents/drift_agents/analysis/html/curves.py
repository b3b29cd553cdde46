"""The drift curves of a run as the page's chart reads them.

* `list_curves` - a curve for each schedule, memory and measure
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import Any

from drift_agents.analysis.html.vega import COLOURS, DASHES, REFERENCE_COLOUR
from drift_agents.analysis.plots.curves import PlotSeries, drifts_of, series
from drift_agents.analysis.runs import WINDOW, Runs
from drift_agents.analysis.schedule_runs import PlayerIndex, ScheduleRuns, memory_name

CLAIRVOYANT = "clairvoyant"
CONFLICTS = "conflicts with memory in an episode"
EVERY_MEMORY = "all memories, plain"
BELIEVED = "changed facts that memory still believes, in percent"


def list_curves(parts: Sequence[ScheduleRuns]) -> list[dict[str, Any]]:
    """Curves for each schedule and memory, with a line for each verifier; and of all memories without one.

    They are success or score, conflicts with memory, and the share of changed facts that memory still believes.
    Clairvoyant stands in all curves of success or score. Of a schedule the memory with the most lines comes first.

    Args:
        parts: the schedules that were played.

    Returns:
        Plain data: `schedule`, `memory`, `measure`, `percent` (whether values are; else they are counts of an episode),
        `drifts` (the episode after which each begins, and its name) and `lines`.
    """
    curves = []
    for part in parts:
        for memory, lines in _lines_by_memory(part.players).items():
            about = {"schedule": part.schedule, "memory": memory, "drifts": drifts_of(part.players)}
            measure = f"{part.measure.name}, mean of up to {WINDOW} episodes"
            found = [(name, series(run, part.measure.field)) for name, run in lines]
            curves.append({**about, "measure": measure, "percent": True, "lines": _style(found)})
            found = [
                (name, series(run, "surprises", scale=1, window=1))
                for name, run in lines
                if run.player.memory != "none"
            ]
            if any(any(data.middle) for _, data in found):
                curves.append({**about, "measure": CONFLICTS, "percent": False, "lines": _style(found)})
            found = [(name, series(run, "still_believed", window=1)) for name, run in lines]
            found = [(name, data) for name, data in found if not all(map(isnan, data.middle))]
            if found:
                curves.append({**about, "measure": BELIEVED, "percent": True, "lines": _style(found)})
    return curves


def _style(lines: Sequence[tuple[str, PlotSeries]]) -> list[dict[str, Any]]:
    """Names, looks and rounded values of lines."""
    return [
        {
            "name": name,
            "colour": REFERENCE_COLOUR if name == CLAIRVOYANT else COLOURS[number % len(COLOURS)],
            "dash": DASHES[number % len(DASHES)],
            "mean": _round(data.middle),
            "low": _round(data.low),
            "high": _round(data.high),
        }
        for number, (name, data) in enumerate(lines)
    ]


def _round(values: Sequence[float]) -> list[float | None]:
    """Two digits; `None` where there is no value, which leaves a gap."""
    return [None if isnan(value) else round(value, 2) for value in values]


def _lines_by_memory(players: PlayerIndex) -> dict[str, list[tuple[str, Runs]]]:
    found: dict[str, list[tuple[str, Runs]]] = {}
    plain, shared = [], []
    for player, run in players.runs.items():
        if player.policy == CLAIRVOYANT:
            shared.append((CLAIRVOYANT, run))
            continue
        name, memory = players.name(player), memory_name(player)
        if name.startswith(" "):
            line = name.strip(" +")
        else:
            line = f"plain{name.removeprefix(memory)}"
            plain.append((name, run))
        found.setdefault(memory, []).append((line, run))
    fullest = sorted(found, key=lambda memory: -len(found[memory]))
    by_memory = {memory: found[memory] for memory in fullest}
    if len(found) > 1 and len(plain) > 1:
        by_memory[EVERY_MEMORY] = plain
    return {memory: [*lines, *shared] for memory, lines in by_memory.items()} or {"": shared}
