"""The drift curves of a run as the page's chart reads them.

* `list_curves` - a curve for each schedule and memory
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from drift_agents.analysis.html.vega import COLOURS, DASHES, REFERENCE_COLOUR
from drift_agents.analysis.plots.curves import drifts_of, series
from drift_agents.analysis.runs import WINDOW, Runs
from drift_agents.analysis.schedule_runs import PlayerIndex, ScheduleRuns, memory_name

CLAIRVOYANT = "clairvoyant"


def list_curves(parts: Sequence[ScheduleRuns]) -> list[dict[str, Any]]:
    """A curve for each schedule and memory, with a line for each verifier; clairvoyant stands in all of them.

    Of a schedule the memory with the most lines comes first.

    Args:
        parts: the schedules that were played.

    Returns:
        Plain data: `schedule`, `memory`, `measure`, `drifts` (the episode after which each begins, and its name) and
        `lines`, whose values are in percent.
    """
    return [
        {
            "schedule": part.schedule,
            "memory": memory,
            "measure": f"{part.measure.name}, mean of up to {WINDOW} episodes",
            "drifts": drifts_of(part.players),
            "lines": [_line(name, run, part.measure.field, number) for number, (name, run) in enumerate(lines)],
        }
        for part in parts
        for memory, lines in _lines_by_memory(part.players).items()
    ]


def _line(name: str, run: Runs, field: str, number: int) -> dict[str, Any]:
    data = series(run, field)
    values = {"mean": data.middle, "low": data.low, "high": data.high}
    return {
        "name": name,
        "colour": REFERENCE_COLOUR if name == CLAIRVOYANT else COLOURS[number % len(COLOURS)],
        "dash": DASHES[number % len(DASHES)],
        **{key: [round(value, 1) for value in found] for key, found in values.items()},
    }


def _lines_by_memory(players: PlayerIndex) -> dict[str, list[tuple[str, Runs]]]:
    found: dict[str, list[tuple[str, Runs]]] = {}
    shared = []
    for player, run in players.runs.items():
        if player.policy == CLAIRVOYANT:
            shared.append((CLAIRVOYANT, run))
        else:
            name = players.name(player)
            line = name.strip(" +") if name.startswith(" ") else "plain"
            found.setdefault(memory_name(player), []).append((line, run))
    fullest = sorted(found, key=lambda memory: -len(found[memory]))
    return {memory: [*found[memory], *shared] for memory in fullest} or {"": shared}
