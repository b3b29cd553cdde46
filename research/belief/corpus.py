"""The study `belief-corpus`: how much a memory has to hold before it stops learning.

* `corpus_rows`, `corpus_tables` - the study

Source: the BeliefMem paper, figure 4a and table 4: banks built from 500 to 3,000 trajectories, then tested without
learning. Here a bank is built from so many episodes; the test plays on the same map, and after it has drifted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from drift_agents.analysis.rows import estimate
from drift_agents.analysis.table import Table, format_count, format_estimate
from drift_agents.experiment.episode import play
from drift_agents.experiment.loader import parse_experiment
from drift_agents.experiment.plan import plan_cells

SCHEDULES = ("frozen_lake/explicit:family", "frozen_lake/slippery:family")
CORPORA = (1, 2, 5, 10, 20, 40)
"""Episodes from which a bank is built."""
MEMORIES: tuple[dict[str, Any], ...] = ({"beliefmem": {}}, {"beliefmem": {"without": "belief"}}, {"vanilla": {}})
ROUNDS = 5
"""Test episodes before the drift and after it, without learning."""


def corpus_rows(seeds: Sequence[int]) -> Iterator[dict[str, Any]]:
    """One row for every size, memory, schedule and instance.

    Args:
        seeds: the instances.
    """
    for corpus in CORPORA:
        experiment = parse_experiment(
            {
                "name": "belief-corpus",
                "schedules": list(SCHEDULES),
                "agents": {"memory": list(MEMORIES), "policy": {"planner": {"conflict": "frequency"}}},
                "train": {"episodes": corpus, "where": "same"},
                "learning": "frozen",
                "seeds": list(seeds),
                "rounds": ROUNDS,
            }
        )
        for cell in plan_cells(experiment):
            rows = [row for row in play(cell, experiment.settings_of(cell.schedule)) if row["stage"] == "test"]
            first = rows[0]["phase"]
            yield {
                "schedule": cell.schedule,
                "seed": cell.seed,
                "memory": cell.labels[0],
                "corpus": corpus,
                "before": _mean([row["score"] for row in rows if row["phase"] == first]),
                "after": _mean([row["score"] for row in rows if row["phase"] != first]),
                "records": rows[-1]["memory_size"],
                "tokens": _mean([row["tokens_estimated"] / max(row["steps"], 1) for row in rows]),
            }


def corpus_tables(rows: Sequence[Mapping[str, Any]]) -> list[Table]:
    """Score, records and tokens of a decision by the size of the corpus; means over instances.

    Args:
        rows: those of `corpus_rows`.
    """
    tables = []
    measures = (("score before the drift", "before", 100), ("score after it", "after", 100))
    counts = (("records", "records"), ("tokens of a decision", "tokens"))
    for schedule in dict.fromkeys(row["schedule"] for row in rows):
        table = Table(f"{schedule}, by episodes in the corpus", ("memory", *map(str, CORPORA)))
        here = [row for row in rows if row["schedule"] == schedule]
        for memory in dict.fromkeys(row["memory"] for row in here):
            own = {size: [row for row in here if (row["memory"], row["corpus"]) == (memory, size)] for size in CORPORA}
            for what, field, scale in measures:
                table.add(
                    f"{memory}: {what}",
                    *(format_estimate(estimate([scale * row[field] for row in own[n]])) for n in CORPORA),
                )
            for what, field in counts:
                table.add(
                    f"{memory}: {what}", *(format_count(estimate([row[field] for row in own[n]])) for n in CORPORA)
                )
        tables.append(table)
    return tables


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan
