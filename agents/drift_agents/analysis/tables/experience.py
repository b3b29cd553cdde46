"""What policies of addition and deletion come to: score and size of memory, and the error-free twin.

* `remembered` - a row for every agent with a managed memory
* `twin_of` - the error-free twin of a player

Source: Xiong et al., "How memory management impacts LLM agents", tables 1 and 2, figure 4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from drift_agents.analysis.experience import propagation
from drift_agents.analysis.runs import Player, Row, Runs, estimate, mean_of
from drift_agents.analysis.table import MISSING, Table, show, show_count
from drift_agents.analysis.tables.scores import PlayerIndex

MANAGED = "managed"
ERROR_FREE = "error_free=true"


def remembered(naming: PlayerIndex) -> Table:
    """A row for every agent with a managed memory; no rows where there is none.

    The gap is the mean score of the error-free twin minus the agent's own, over the whole run, instance by
    instance: what errors in memory, handed on, have cost.

    Args:
        naming: who stands in which row.
    """
    heads = ("method", "score, %", "records\nat the end", "at the\nmost", "gap to error-\nfree twin", "supervision")
    sheet = Table("Score and memory, whole run", heads)
    for player, runs in naming.runs.items():
        if player.memory.partition("(")[0] != MANAGED or naming.is_reference(player):
            continue
        twin = naming.runs.get(twin_of(player))
        sheet.add(
            naming.full_name(player),
            show(estimate(runs.per_instance(mean_of("score", 100)))),
            show_count(estimate(runs.per_instance(_last_size))),
            show_count(estimate(runs.per_instance(_greatest_size))),
            MISSING if twin is None else show(estimate(gaps(runs, twin))),
            naming.supervision(player),
        )
    return sheet.used()


def twin_of(player: Player) -> Player:
    """The error-free twin of a player; a player that is nobody's for one that is error-free itself.

    Args:
        player: who plays.

    Example:
        >>> twin_of(Player("managed(addition=all, period=5)", "none", "planner")).memory
        'managed(addition=all, error_free=true, period=5)'
    """
    name, _, options = player.memory.partition("(")
    told = [option for option in options.removesuffix(")").split(", ") if option]
    return player._replace(memory=f"{name}({', '.join(sorted([*told, ERROR_FREE]))})")


def gaps(runs: Runs, twin: Runs) -> list[float]:
    """Instance by instance, how far the score stays behind the twin's, in percent.

    Args:
        runs: an agent's.
        twin: those of its error-free twin.
    """
    found = dict(zip(twin.seeds, twin.rows, strict=True))
    return [
        100 * propagation(_scores(rows), _scores(found[seed]))[-1]
        if rows and len(found.get(seed, ())) == len(rows)
        else math.nan
        for seed, rows in zip(runs.seeds, runs.rows, strict=True)
    ]


def _scores(rows: Sequence[Row]) -> list[float]:
    return [float(row["score"]) for row in rows]


def _last_size(rows: Sequence[Row]) -> float:
    return float(rows[-1]["memory_size"])


def _greatest_size(rows: Sequence[Row]) -> float:
    return float(max(row["memory_size"] for row in rows))
