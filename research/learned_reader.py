"""How the learned reader plays: the tables of docs/research/readers.md, from `results/learned_reader`.

* `store_figures` - reads a finished run of one of `EXPERIMENTS` and stores its figures
* `write_page` - fills the tables of the page from these
* `make_tables` - the tables of an experiment by name: `success`, `gains`
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from drift_agents.analysis.rows import estimate
from drift_agents.analysis.table import Table, to_markdown
from drift_agents.errors import ExperimentError
from drift_agents.experiment.folder import write_text

from research.readers import read_whole
from research.verify_map.pages import fill_page, named_tables

EXPERIMENTS = {"learned-reader": "", "learned-reader-together": "together-"}
"""What the names of each experiment's tables begin with."""
HERE = Path(__file__).resolve().parent
FIGURES = HERE / "results" / "learned_reader"
PAGE = HERE.parent / "docs" / "research" / "readers.md"
SOURCE = "source"
AGENT = ("schedule", "policy", "memory", "verifier")

Figures = Mapping[str, Any]
"""Of one agent on one schedule: `AGENT`, `before` and `after` (success by instance, in the order of the seeds),
`steps`, `loop_steps`, `invalid_actions`."""


def store_figures(folder: Path, figures: Path = FIGURES) -> None:
    """Store the figures of a finished run.

    Args:
        folder: of the run of one of `EXPERIMENTS`.
        figures: the folder of the figures, a file an experiment.

    Raises:
        ExperimentError: if the run is another one, or cannot be read.
    """
    name, config_hash, rows = read_whole(folder, EXPERIMENTS)
    agents = [summarise(rows, key) for key in dict.fromkeys(tuple(row[name] for name in AGENT) for row in rows)]
    content = {"config_hash": config_hash, "agents": agents}
    write_text(figures / f"{name}.json", json.dumps(content, indent=1) + "\n", make_folder=True)


def summarise(rows: Sequence[Mapping[str, Any]], key: tuple[str, ...]) -> dict[str, Any]:
    """The figures of one agent on one schedule.

    Args:
        rows: of the run.
        key: the values of `AGENT`.
    """
    own = [row for row in rows if tuple(row[name] for name in AGENT) == key]

    def rates(is_source: bool) -> list[float]:
        found: dict[int, list[bool]] = {}
        for row in own:
            if (row["phase"] == SOURCE) == is_source:
                found.setdefault(int(row["seed"]), []).append(bool(row["success"]))
        return [float(np.mean(found[seed])) for seed in sorted(found)]

    sums = {name: int(sum(row[name] for row in own)) for name in ("steps", "loop_steps", "invalid_actions")}
    return {**dict(zip(AGENT, key, strict=True)), "before": rates(True), "after": rates(False), **sums}


def write_page(page: Path = PAGE, figures: Path = FIGURES) -> Path:
    """Fill the tables of the page.

    Args:
        figures: the folder of the stored figures.

    Returns:
        The page.

    Raises:
        ExperimentError: if there are no figures.
    """
    tables = {}
    for experiment, prefix in EXPERIMENTS.items():
        file = figures / f"{experiment}.json"
        if not file.is_file():
            raise ExperimentError(f"{file}: is missing; `python -m research learned-reader RUN` stores those of a run")
        own = make_tables(json.loads(file.read_text("utf-8"))["agents"])
        tables.update({f"{prefix}{name}": text for name, text in own.items()})
    text = page.read_text("utf-8")
    write_text(page, fill_page(text, tables, page.name, kept=named_tables(text) - tables.keys()))
    return page


def make_tables(agents: Sequence[Figures]) -> dict[str, str]:
    """The tables of an experiment, as Markdown.

    Args:
        agents: the figures of all agents on all schedules.
    """
    success, gains = [], []
    for schedule in dict.fromkeys(agent["schedule"] for agent in agents):
        own = [agent for agent in agents if agent["schedule"] == schedule]
        size = len(own[0]["before"])
        title = f"`{schedule}`, {size} instances: success, % [95 % interval]"
        table = Table(title, ("policy", "memory", "rule", "before", "after", "loops, %", "inadmissible actions"))
        for agent in own:
            names = (f"`{agent[name]}`" for name in ("policy", "memory", "verifier"))
            loops = 100 * agent["loop_steps"] / agent["steps"]
            rates = (_percent(agent["before"]), _percent(agent["after"]))
            table.add(*names, *rates, f"{loops:.0f}", f"{agent['invalid_actions']} of {agent['steps']}")
        success.append(to_markdown(table))
        plain = {(one["policy"], one["memory"]): one for one in own if one["verifier"] == "none"}
        gain = Table(f"`{schedule}`: points after the drifts, GLOVE minus none", ("policy", "points"))
        for agent in own:
            other = plain.get((agent["policy"], agent["memory"]))
            if agent["verifier"] == "glove" and other is not None:
                pairs = np.subtract(agent["after"], other["after"]).tolist()
                gain.add(f"`{agent['policy']}`", _percent(pairs, sign=True))
        gains.append(to_markdown(gain))
    return {"success": "\n\n".join(success), "gains": "\n\n".join(gains)}


def _percent(rates: Sequence[float], sign: bool = False) -> str:
    found = estimate([100 * rate for rate in rates])
    mean = f"{found.mean:+.0f}" if sign else f"{found.mean:.0f}"
    return f"{mean} [{found.low:.0f}, {found.high:.0f}]"
