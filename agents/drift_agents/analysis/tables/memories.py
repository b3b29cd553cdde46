"""Tables about memories: audited items, policies of addition and deletion, and the error-free twin.

* `tabulate_items` - items at the end of the test, by bank
* `tabulate_epochs` - items over the epochs of a construction
* `tabulate_managed` - score and size of managed memories, and the gap to the error-free twin
* `twin_of` - the error-free twin of a player
* `propagation`, `cumulative` - error propagation: the cumulative gap to the error-free twin

Sources: EDV, sections 5.3 and 5.5.2; Xiong et al., "How memory management impacts LLM agents", tables 1 and 2,
figure 4. `drift_agents.experiment.evaluator` writes the fields of items.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial

from drift_agents.analysis.runs import Player, Row, Runs, estimate, mean_of
from drift_agents.analysis.schedule_runs import Measure, PlayerIndex
from drift_agents.analysis.table import MISSING, Table, format_count, format_estimate

SHARED, PRIVATE = "shared_hits", "private_hits"
"""The fields of a line."""


def tabulate_items(players: PlayerIndex, measure: Measure) -> Table:
    """Items, their truth, how often each bank is read, and what a hit goes along with.

    Args:
        players: the players, row by row.
        measure: what is reported.
    """
    table = Table(
        f"Items of the test: what is written, true and read; {measure.name} with a hit minus without",
        ("method", "items\nat the end", "true\nat the end", "shared\nread in", "gain", "private\nread in", "gain"),
    )
    for name, run, reference in players.rows():
        if all(row["items"] is None for rows in run.rows for row in rows):
            continue
        last = [[row for row in rows if row["items"] is not None][-1:] for rows in run.rows]
        sizes = [float(rows[0]["items"]) for rows in last if rows]
        true = [100 * rows[0]["item_truth_rate"] for rows in last if rows and rows[0]["item_truth_rate"] is not None]
        cells = [format_count(estimate(sizes)), format_estimate(estimate(true)) if true else MISSING]
        for field in (SHARED, PRIVATE):
            gain = estimate(run.per_instance(partial(_gain, field=field, measure=measure)))
            cells += [
                format_estimate(estimate(run.per_instance(partial(_read_in, field=field)))),
                format_estimate(gain) if gain.n else MISSING,
            ]
        table.add(name, *cells, reference=reference)
    return table


def _read_in(rows: Sequence[Row], field: str) -> float:
    """The share of episodes with a hit, in percent."""
    return 100 * sum(bool(row[field]) for row in rows) / len(rows)


def _gain(rows: Sequence[Row], field: str, measure: Measure) -> float:
    """What episodes with a hit reached more than those without; not a number where one kind is missing."""
    hit, without = ([row for row in rows if bool(row[field]) is wanted] for wanted in (True, False))
    return measure.of(hit) - measure.of(without) if hit and without else math.nan


def tabulate_epochs(players: PlayerIndex, measure: Measure, number: int) -> Table:
    """The construction, epoch by epoch: what was reached, and how many items there were and how true.

    Args:
        players: the players, row by row.
        measure: what is reported.
        number: how many epochs were played; one makes no table.
    """
    heads = [head for epoch in range(1, number + 1) for head in (f"epoch {epoch}", "items", "true")]
    table = Table(f"Construction, epoch by epoch: {measure.name}, items, and how many are true", ("method", *heads))
    if number < 2:
        return table
    for name, run, reference in players.rows():
        if not any(run.construction):
            continue
        cells = []
        for epoch in range(number):
            parts = [_epoch(rows, epoch, number) for rows in run.construction]
            last = [rows[-1] for rows in parts if rows]
            items = [float(row["items"]) for row in last if row["items"] is not None]
            true = [100 * row["item_truth_rate"] for row in last if row["item_truth_rate"] is not None]
            cells += [format_estimate(estimate([measure.of(rows) for rows in parts if rows]))]
            cells += [
                format_count(estimate(items)) if items else MISSING,
                format_estimate(estimate(true)) if true else MISSING,
            ]
        table.add(name, *cells, reference=reference)
    return table


def _epoch(rows: Sequence[Row], epoch: int, number: int) -> list[Row]:
    """The rows of one epoch: all are equally long, counted in tasks."""
    tasks = rows[-1]["round"] // number if rows else 0
    return [row for row in rows if epoch * tasks < row["round"] <= (epoch + 1) * tasks]


MANAGED = "managed"
ERROR_FREE = "error_free=true"


def tabulate_managed(players: PlayerIndex) -> Table:
    """A row for every agent with a managed memory; no rows where there is none.

    The gap is the mean score of the error-free twin minus the agent's own, over the whole run, instance by
    instance: what errors in memory, handed on, have cost.

    Args:
        players: the players, row by row.
    """
    heads = ("method", "score, %", "records\nat the end", "at the\nmost", "gap to the\nerror-free twin", "supervision")
    table = Table("Score and memory, whole run", heads)
    for player, runs in players.runs.items():
        if player.memory.partition("(")[0] != MANAGED or players.is_reference(player):
            continue
        twin = players.runs.get(twin_of(player))
        table.add(
            players.full_name(player),
            format_estimate(estimate(runs.per_instance(mean_of("score", 100)))),
            format_count(estimate(runs.per_instance(_last_size))),
            format_count(estimate(runs.per_instance(_greatest_size))),
            MISSING if twin is None else format_estimate(estimate(gaps(runs, twin))),
            players.supervision(player),
        )
    return table.used()


def twin_of(player: Player) -> Player:
    """The error-free twin of a player: the same player with the option `error_free: true`.

    Args:
        player: who plays.

    Example:
        >>> twin_of(Player("managed(addition=all, period=5)", "none", "planner")).memory
        'managed(addition=all, error_free=true, period=5)'
    """
    name, _, options = player.memory.partition("(")
    given = [option for option in options.removesuffix(")").split(", ") if option]
    return player._replace(memory=f"{name}({', '.join(sorted([*given, ERROR_FREE]))})")


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


def propagation(scores: Sequence[float], twin: Sequence[float]) -> list[float]:
    """Error propagation: how far the cumulative mean score stays behind the error-free twin's (figure 4).

    Args:
        scores: of an agent, episode by episode.
        twin: of its error-free twin, in the same episodes.

    Example:
        >>> propagation([1, 0, 0], [1, 1, 0])
        [0.0, 0.5, 0.3333333333333333]
    """
    return cumulative(b - a for a, b in zip(scores, twin, strict=True))


def cumulative(values: Iterable[float]) -> list[float]:
    """The mean of all values so far, after each of them.

    Example:
        >>> cumulative([1, 0, 2])
        [1.0, 0.5, 1.0]
    """
    total, means = 0.0, []
    for count, value in enumerate(values, 1):
        total += value
        means.append(total / count)
    return means
