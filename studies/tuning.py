"""Which options every memory plays with, chosen on development instances and written to a file.

* `write_tuned` - the command's work: choose from finished runs and write the choices
* `choose` - the choices of some runs

Runs of the experiments `tuning`, `tuning-episodes` and `tuning-cars` play candidates. In each environment the planner's
rule for contradicting outcomes is chosen first, since all agents of a table share it: the one with which the
memories, each with its best candidate, keep most on average. Then each memory's candidate is chosen. What counts is
the score kept after the first drift as a share of the optimum, averaged over instances and over the plain agent and
GLOVE alike; of equals the first in the order of the file is taken. A later run of an environment adds memories, played
with the rule that was chosen there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from drift_agents.analysis.runs import Row, read_run
from drift_agents.errors import ExperimentError
from drift_agents.experiment.config import Experiment, PartSpec
from drift_agents.experiment.folder import write_text
from drift_agents.experiment.logs import TEST

HELD_OUT = 1000
"""Seeds from here on are test instances, which nothing is chosen on."""

HEAD = """\
# The options that every memory plays with on the board, environment by environment, and the candidates that they were
# chosen from with what they kept (percent of the optimum). Made by `python -m studies tune RUN... --out
# studies/tuned.yaml` from runs of `tuning`, `tuning-episodes` and `tuning-cars`; do not edit.
"""


def write_tuned(folders: Sequence[Path], out: Path | None) -> str:
    """Choose every memory's options from finished runs.

    Args:
        folders: the runs' folders; the first one that has an environment chooses the planner's rule there.
        out: the file; `None` writes none.

    Returns:
        The file's text.

    Raises:
        ExperimentError: if a folder holds no finished run, a run has no instances that count, a later run was played
            with another rule than the chosen one, or the file cannot be written.
    """
    text = HEAD + yaml.safe_dump(choose([read_run(folder) for folder in folders]), sort_keys=False, width=110)
    if out is not None:
        write_text(out, text)
    return text


def choose(runs: Sequence[tuple[Mapping[str, Any], Sequence[Row]]]) -> dict[str, Any]:
    """The choices of some runs.

    Args:
        runs: what was played, and the rows.

    Returns:
        Plain data: under `runs` what was played; under `environments` for each schedule the options of the planner and
        of each memory, and what each candidate kept.

    Raises:
        ExperimentError: if a run has held-out instances, an agent was not played beyond a drift, or a later run was
            played with another rule than the chosen one.
    """
    environments: dict[str, Any] = {}
    stated = []
    for manifest, rows in runs:
        experiment = Experiment.model_validate(manifest["experiment"])
        if max(experiment.seeds) >= HELD_OUT:
            raise ExperimentError(
                f"{manifest['name']}: options should be chosen on development instances, seeds below {HELD_OUT}. "
                f"Received seeds up to {max(experiment.seeds)}"
            )
        every = _measure_kept(rows)
        for schedule in experiment.schedules:
            kept = every.xs(schedule, level="schedule")
            if schedule in environments:
                _add_memories(environments[schedule], schedule, kept, experiment)
            else:
                environments[schedule] = _choose_options(schedule, kept, experiment)
        stated.append(
            {
                "experiment": manifest["name"],
                "config_hash": manifest["config_hash"],
                "seeds": list(experiment.seeds),
                "versions": dict(manifest["versions"]),
            }
        )
    return {"runs": stated, "environments": environments}


def _measure_kept(rows: Sequence[Row]) -> pd.Series:
    """The score after the first drift as a share of what the optimum collects, by policy, memory, schedule and more."""
    fields = ["policy", "memory", "verifier", "schedule", "seed"]
    frame = pd.DataFrame(
        [{name: row[name] for name in (*fields, "phase", "score", "regret")} for row in rows if row["stage"] == TEST]
    )
    first = frame.groupby(fields, sort=False)["phase"].transform("first")
    frame["drifted"] = frame["phase"].ne(first)
    drifted = frame[frame.groupby(fields, sort=False)["drifted"].cummax()]
    sums = (
        drifted.assign(best=drifted["score"] + drifted["regret"].astype(float)).groupby(fields)[["score", "best"]].sum()
    )
    return (sums["score"] / sums["best"]).where(sums["best"] > 0)


def _choose_options(schedule: str, kept: pd.Series, experiment: Experiment) -> dict[str, Any]:
    policies = _labels([part for block in experiment.agents for part in block.policy])
    found = {policy: _best_options(schedule, policy, kept, experiment) for policy in policies}
    policy = max(
        policies,
        key=lambda one: math.fsum(found[one][1][label] for label in found[one][0].values()),
    )
    memories = _memories(experiment)
    return {
        "policy": {policies[policy].name: dict(policies[policy].options)},
        "memory": {name: dict(memories[label].options) for name, label in found[policy][0].items()},
        "kept": {one: figures for one, (_, figures) in found.items()},
    }


def _add_memories(chosen: dict[str, Any], schedule: str, kept: pd.Series, experiment: Experiment) -> None:
    """Choose further memories with the rule that an earlier run has chosen in this environment."""
    policies = _labels([part for block in experiment.agents for part in block.policy])
    ((name, options),) = chosen["policy"].items()
    same = [label for label, part in policies.items() if (part.name, dict(part.options)) == (name, options)]
    if not same:
        raise ExperimentError(
            f"{experiment.name}: `{schedule}` should be played with the rule that was chosen there, {name} {options}. "
            f"Received {', '.join(policies)}"
        )
    best, figures = _best_options(schedule, same[0], kept, experiment)
    memories = _memories(experiment)
    rule = max(chosen["kept"], key=lambda label: all(f"{key}={value}" in label for key, value in options.items()))
    chosen["memory"] |= {name: dict(memories[label].options) for name, label in best.items()}
    chosen["kept"][rule] |= figures


def _best_options(
    schedule: str, policy: str, kept: pd.Series, experiment: Experiment
) -> tuple[dict[str, str], dict[str, float]]:
    """Each memory's best candidate with a policy, and what all candidates kept."""
    means = kept.groupby(level=["policy", "memory"]).mean()
    figures: dict[str, float] = {}
    by_name: dict[str, list[str]] = {}
    for label, part in _memories(experiment).items():
        found = means.get((policy, label), math.nan)
        if math.isnan(found):
            raise ExperimentError(f"{label} did not play `{schedule}` with {policy} beyond a drift")
        figures[label] = round(100 * float(found), 2)
        by_name.setdefault(part.name, []).append(label)
    return {name: max(labels, key=lambda label: figures[label]) for name, labels in by_name.items()}, figures


def _memories(experiment: Experiment) -> dict[str, PartSpec]:
    return _labels([part for block in experiment.agents for part in block.memory])


def _labels(parts: Sequence[PartSpec]) -> dict[str, PartSpec]:
    return {part.label(parts): part for part in parts}
