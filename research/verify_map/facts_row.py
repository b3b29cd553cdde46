"""The row of the map where verifying is a look: `ask` on facts that change in silence, by price and false answers.

* `write_points` - the schedules of the row
* `play_row` - plays them, and returns the table
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from drift_agents.analysis.rows import Runs, estimate, group, mean_of
from drift_agents.analysis.table import Table, format_estimate
from drift_agents.experiment.folder import write_text
from drift_agents.experiment.loader import parse_experiment
from drift_agents.experiment.logs import read_rows
from drift_agents.experiment.runner import run_experiment

PRICES = (0.05, 0.1, 0.2, 0.5)
FALSE_PERCENT = (0, 3, 10)
EPISODES = 60

AGENTS: Mapping[str, tuple[str, str]] = {
    "never asks": ("overwrite", "never"),
    "asks when its answer was wrong": ("overwrite", "doubt"),
    "GLOVE(1), asks in the copy": ("glove", "doubt"),
    "asks before each answer": ("overwrite", "always"),
}
"""The agents: verifier, and when the planner asks. All keep `vanilla` records, the newest first."""


def write_points(folder: Path) -> list[str]:
    """Write the schedules: half of six facts change in silence about every twenty days.

    Args:
        folder: where they are written.

    Returns:
        Their paths.
    """
    paths = []
    for price in PRICES:
        for percent in FALSE_PERCENT:
            schedule: dict[str, Any] = {
                "version": 1,
                "name": f"facts/price-{price:g}-false-{percent}",
                "description": f"Facts change in silence; `ask` costs {price:g}, {percent} % of its answers are false.",
                "env": "DriftFacts-v0",
                "clock": "episode",
                "visibility": "implicit",
                "tasks": {"pool": 6, "order": "shuffled"},
                "base": {"price": price, "transient": percent / 100},
                "drifts": [{"name": "change", "every": 20, "jitter": 6, "add": {"silent": 3}}],
            }
            path = folder / f"price-{price:g}-false-{percent}.yaml"
            write_text(path, yaml.safe_dump(schedule, sort_keys=False))
            paths.append(str(path))
    return paths


def play_row(folder: Path, seeds: int, jobs: int | None = None) -> Table:
    """Play the row.

    Args:
        folder: of schedules and run.
        seeds: instances of a point.
        jobs: processes; one a core if not given.

    Returns:
        The mean score after the first change, which has the price of asking, with intervals over instances.
    """
    folder.mkdir(parents=True, exist_ok=True)
    policies = [{"planner": {"facts": {"asks": asks}}} for asks in ("doubt", "never", "always")]
    memory = {"vanilla": {"order": "newest"}}
    agents = {"memory": [memory], "verifier": ["overwrite", "glove"], "policy": policies}
    experiment = {"name": "facts-row", "agents": agents, "seeds": seeds, "episodes": EPISODES, "trace": "none"}
    points = write_points(folder)
    rows = read_rows(run_experiment(parse_experiment({**experiment, "schedules": points}), folder / "run", jobs=jobs))
    table = Table(
        "Score after the first change in percent, the price of asking included",
        ("price of `ask`", "false answers, %", *AGENTS),
    )
    for schedule, runs in group(rows).items():
        price, percent = schedule.rpartition("price-")[2].split("-false-")
        cells = [_score(next(run for run in runs if _is_played_by(run, *agent))) for agent in AGENTS.values()]
        table.add(price, percent, *cells)
    return table


def _is_played_by(run: Runs, verifier: str, asks: str) -> bool:
    player = run.player
    named = next((one for one in ("always", "never") if one in player.policy), "doubt")
    return player.verifier.startswith(verifier) and named == asks


def _score(run: Runs) -> str:
    return format_estimate(estimate(run.without("source").per_instance(mean_of("score", 100))))
