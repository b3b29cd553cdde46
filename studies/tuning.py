"""Which options every memory plays with, chosen on development instances and written to a file.

* `write_tuned` - the command's work: choose from a finished run and write the choices
* `choose` - the choices of a run

A run of the experiment `tuning` plays candidates. In each world the planner's rule for contradicting outcomes is
chosen first, since all agents of a table share it: the one with which the memories, each with its best candidate,
keep most on average. Then each memory's candidate is chosen. What counts is the score kept after the first drift as
a share of the optimum, averaged over instances and over the plain agent and GLOVE alike; of equals the first in the
order of the file is taken.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from drift_agents.analysis.ranking import measure_instances
from drift_agents.analysis.runs import Row, read_run
from drift_agents.errors import ExperimentError
from drift_agents.experiment.config import Experiment, PartSpec
from drift_agents.experiment.folder import write_text

HELD_OUT = 1000
"""Seeds from here on are test instances, which nothing is chosen on."""

HEAD = """\
# The options that every memory plays with on the board, world by world, and the candidates that they were chosen from
# with what they kept (percent of the optimum). Made by `python -m studies tune RUN --out studies/tuned.yaml` from a
# run of `tuning`; do not edit.
"""


def write_tuned(folder: Path, out: Path | None) -> str:
    """Choose every memory's options from a finished run.

    Args:
        folder: the run's folder.
        out: the file; `None` writes none.

    Returns:
        The file's text.

    Raises:
        ExperimentError: if the folder holds no finished run, the run has no instances that count, or the file cannot
            be written.
    """
    manifest, rows = read_run(folder)
    text = HEAD + yaml.safe_dump(choose(manifest, rows), sort_keys=False, width=110)
    if out is not None:
        write_text(out, text)
    return text


def choose(manifest: Mapping[str, Any], rows: Sequence[Row]) -> dict[str, Any]:
    """The choices of a run.

    Args:
        manifest: what was played.
        rows: its rows.

    Returns:
        Plain data: under `run` what was played; under `worlds` for each schedule the options of the planner and of
        each memory, and what each candidate kept.

    Raises:
        ExperimentError: if the run has held-out instances, or an agent was not played beyond a drift.
    """
    experiment = Experiment.model_validate(manifest["experiment"])
    if max(experiment.seeds) >= HELD_OUT:
        raise ExperimentError(
            f"{manifest['name']}: options should be chosen on development instances, seeds below {HELD_OUT}. "
            f"Received seeds up to {max(experiment.seeds)}"
        )
    figures = measure_instances(rows)
    worlds = {
        schedule: _choose_world(schedule, figures["kept"].xs(schedule, level="schedule"), experiment)
        for schedule in experiment.schedules
    }
    run = {
        "experiment": manifest["name"],
        "config_hash": manifest["config_hash"],
        "seeds": list(experiment.seeds),
        "versions": dict(manifest["versions"]),
    }
    return {"run": run, "worlds": worlds}


def _choose_world(schedule: str, kept: pd.Series, experiment: Experiment) -> dict[str, Any]:
    memories = _labels([part for block in experiment.agents for part in block.memory])
    policies = _labels([part for block in experiment.agents for part in block.policy])
    means = kept.groupby(level=["policy", "memory"]).mean()

    def value(policy: str, memory: str) -> float:
        found = means.get((policy, memory), math.nan)
        if math.isnan(found):
            raise ExperimentError(f"{memory} did not play `{schedule}` with {policy} beyond a drift")
        return round(100 * float(found), 2)

    by_name: dict[str, list[str]] = {}
    for label, part in memories.items():
        by_name.setdefault(part.name, []).append(label)
    policy = max(
        policies,
        key=lambda one: math.fsum(max(value(one, label) for label in labels) for labels in by_name.values()),
    )
    best = {name: max(labels, key=lambda label: value(policy, label)) for name, labels in by_name.items()}
    return {
        "policy": {policies[policy].name: dict(policies[policy].options)},
        "memory": {name: dict(memories[label].options) for name, label in best.items()},
        "kept": {one: {label: value(one, label) for label in memories} for one in policies},
    }


def _labels(parts: Sequence[PartSpec]) -> dict[str, PartSpec]:
    return {part.label(parts): part for part in parts}
