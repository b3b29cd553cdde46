"""A minute of drift: memories without a verifier, with `overwrite` and with GLOVE on three lakes.

    python examples/demo.py

Plays `examples/demo.yaml` into `runs/demo`, prints one table and writes a picture of the scores beside it. After an
interruption, the next call continues. `make demo` and `make demo-full` (all environments) call it and
`drift-agents run glove-quick`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from drift_agents.analysis.plots import FAMILY_COLOURS, family_of
from drift_agents.analysis.rows import read_run
from drift_agents.cli.run import ProgressBars
from drift_agents.errors import DriftAgentsError, ExperimentError
from drift_agents.experiment.folder import MANIFEST
from drift_agents.experiment.loader import load_experiment
from drift_agents.experiment.runner import run_experiment

VERIFIERS = {"none": "plain", "overwrite": "overwrite", "glove": "GLOVE"}
"""The columns of the table, by the verifier's name in the log."""

STYLES: Sequence[dict[str, Any]] = ({"linewidth": 5}, {"linewidth": 2.5, "linestyle": "--"}, {"linewidth": 1.2})
"""How their lines are drawn: a later one is thinner, so that equal ones are all seen."""

WINDOW = 5
"""Episodes of a phase over which the scores of the picture are averaged."""

COLUMNS = """\
before     before any drift; all scores are percent of the highest possible
plain      after the drifts: the memory alone
overwrite  after the drifts: the newest outcome replaces a record, no probes
GLOVE      after the drifts: GLOVE repeats actions (probes) to verify a record
probes     steps that GLOVE spent on probes, in percent of all its steps"""

Rows = Sequence[Mapping[str, Any]]


def play(folder: Path, jobs: int) -> None:
    """Play the experiment, or what an interrupted call has left of it.

    Args:
        folder: the folder of the run.
        jobs: processes at the same time.
    """
    experiment = load_experiment(Path(__file__).with_name("demo.yaml"))
    resume = (folder / MANIFEST).exists()
    try:
        with ProgressBars() as bars:
            run_experiment(experiment, folder, jobs=jobs, resume=resume, fresh=not resume, progress=bars)
    except ExperimentError as error:
        if not resume:
            raise
        print(f"the run in {folder} can't be continued and is played again: {error}", file=sys.stderr)
        with ProgressBars() as bars:
            run_experiment(experiment, folder, jobs=jobs, fresh=True, progress=bars)


def percent_of_best(rows: Rows) -> float:
    """The sum of the scores, in percent of the highest that was possible."""
    score = sum(row["score"] for row in rows)
    return 100 * score / (score + sum(row["regret"] for row in rows))


def make_table(rows: Rows) -> list[str]:
    """The lines of the table: a line for each schedule and memory, at most 80 columns.

    Args:
        rows: all rows of the run.
    """
    groups: dict[tuple[str, str], dict[str, list[Mapping[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        groups[row["schedule"], row["memory"]][row["verifier"]].append(row)
    lines = [f"{'':40}before  plain  overwrite  GLOVE  probes"]
    for (schedule, memory), by_verifier in groups.items():
        before = percent_of_best([row for each in by_verifier.values() for row in each if row["phase"] == "source"])
        after = [percent_of_best([row for row in by_verifier[name] if row["phase"] != "source"]) for name in VERIFIERS]
        probes = sum(row["probe_steps"] for row in by_verifier["glove"])
        share = 100 * probes / (probes + sum(row["steps"] for row in by_verifier["glove"]))
        name = f"{schedule.partition('/')[2]}, {memory}"
        lines.append(f"{name:40}{before:6.0f}{after[0]:7.0f}{after[1]:11.0f}{after[2]:7.0f}{share:8.1f}")
    return lines


def draw_scores(rows: Rows, folder: Path) -> Path:
    """Write the picture: scores over episodes, with the drifts marked.

    Args:
        rows: all rows of the run.
        folder: where to.

    Returns:
        The file.
    """
    schedules = list(dict.fromkeys(row["schedule"] for row in rows))
    memories = list(dict.fromkeys(row["memory"] for row in rows))
    path = folder / "scores.png"
    size = (3.6 * len(schedules), 2.6 * len(memories))
    figure, axes = plt.subplots(len(memories), len(schedules), figsize=size, squeeze=False, layout="constrained")
    for panels, memory in zip(axes, memories, strict=True):
        for axis, schedule in zip(panels, schedules, strict=True):
            mine = [row for row in rows if (row["schedule"], row["memory"]) == (schedule, memory)]
            starts = {row["phase"]: row["episode"] for row in reversed(mine)}
            for start in sorted(starts.values())[1:]:
                axis.axvline(start + 0.5, color="gray", linestyle=":")
            for verifier, style in zip(VERIFIERS, STYLES, strict=True):
                means = _running_means([row for row in mine if row["verifier"] == verifier])
                colour = FAMILY_COLOURS[family_of(verifier)]
                axis.plot(range(1, len(means) + 1), means, color=colour, label=VERIFIERS[verifier], **style)
            axis.set(title=f"{schedule.partition('/')[2]}, {memory}", xlabel="episode", ylabel="score, %")
            axis.title.set_size("medium")
            axis.label_outer()
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=len(VERIFIERS))
    figure.savefig(path, dpi=150)
    plt.close(figure)
    return path


def _running_means(rows: Rows) -> np.ndarray:
    """The mean over instances of each episode, averaged over the last `WINDOW` episodes of its phase."""
    by_episode: dict[int, list[float]] = defaultdict(list)
    starts: dict[str, int] = {}
    found = []
    for row in sorted(rows, key=lambda row: row["episode"]):
        by_episode[row["episode"]].append(100 * row["score"])
        starts.setdefault(row["phase"], row["episode"])
    for episode in by_episode:
        first = max(start for start in starts.values() if start <= episode)  # no mean spans a drift
        last = [np.mean(by_episode[one]) for one in range(max(first, episode - WINDOW + 1), episode + 1)]
        found.append(np.mean(last))
    return np.array(found)


def main(arguments: list[str] | None = None) -> int:
    """Play, print the table and write the picture.

    Args:
        arguments: those of the command line.

    Returns:
        The exit status: 0, 1 (the work failed) or 130 (interrupted).
    """
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--out", type=Path, default=Path("runs/demo"), help="folder of the run (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: all cores)")
    given = parser.parse_args(arguments)
    try:
        play(given.out, given.jobs)
        _, rows = read_run(given.out)
        picture = draw_scores(rows, given.out)
    except KeyboardInterrupt:
        print("interrupted; what is done is kept, and the next call continues", file=sys.stderr)
        return 130
    except DriftAgentsError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    print(*make_table(rows), "", COLUMNS, "", sep="\n")
    print(f"Scores over time (means of {WINDOW} episodes), drifts marked: {picture}")
    print(f"More tables: drift-agents report {given.out}")
    print("All environments and references, about 5 minutes: make demo-full")
    return 0


if __name__ == "__main__":
    sys.exit(main())
