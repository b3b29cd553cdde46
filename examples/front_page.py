"""The table and the curve of README, from an experiment of about eight minutes on two free cores.

    python examples/front_page.py --out runs/front-page

Plays `examples/front_page.yaml`, or what an interrupted call has left of it, prints the table in Markdown and
writes `curve.png` into the run's folder.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from drift_agents.analysis.plots.curves import draw_means, mark_phases
from drift_agents.analysis.plots.style import add_legend, new_figure
from drift_agents.analysis.runs import read_run
from drift_agents.cli.run import ProgressBars
from drift_agents.errors import DriftAgentsError
from drift_agents.experiment.folder import MANIFEST
from drift_agents.experiment.loader import load_experiment
from drift_agents.experiment.runner import run_experiment

from drift_envs.metrics import bootstrap

Rows = Sequence[Mapping[str, Any]]

ENVIRONMENTS = {
    "frozen_lake/explicit:family/transient-0.0": "lake",
    "frozen_lake/explicit:family/transient-0.1": "lake, one response in ten false",
    "webshop/explicit/transient-0.0": "shop",
}
MEMORIES = {"none": "no memory", "vanilla": "vanilla", "beliefmem": "BeliefMem"}
VERIFIERS = {
    "none": "",
    "announce_only": " + announce_only",
    "overwrite": " + overwrite",
    "glove": " + GLOVE",
    "oracle_realign": " + oracle realign (privileged)",
    "oracle_truth": " + oracle truth (privileged)",
}
CURVES = {"none": "no verifier", "overwrite": "overwrite", "glove": "GLOVE"}


def mean_after_drifts(rows: Rows) -> str:
    """Success after the first drift in percent with its interval over instances, and the share of probes."""
    by_seed: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        if row["phase"] != "source":
            by_seed[row["seed"]].append(100.0 * row["success"])
    found = bootstrap([float(np.mean(scores)) for scores in by_seed.values()])
    probes = sum(row["probe_steps"] for row in rows)
    share = 100 * probes / (probes + sum(row["steps"] for row in rows))
    cost = f", {share:.0f} %" if probes else ""
    return f"{found.mean:.0f} [{found.low:.0f}, {found.high:.0f}]{cost}"


def make_table(rows: Rows) -> list[str]:
    """The lines of the table in Markdown."""
    lines = [f"| after the drifts | {' | '.join(ENVIRONMENTS.values())} |", "|---|" + "---|" * len(ENVIRONMENTS)]
    for memory, shown in MEMORIES.items():
        for verifier, suffix in VERIFIERS.items():
            mine = [row for row in rows if (row["memory"], row["verifier"]) == (memory, verifier)]
            if mine:
                cells = [mean_after_drifts([row for row in mine if row["schedule"] == name]) for name in ENVIRONMENTS]
                lines.append(f"| {shown}{suffix} | {' | '.join(cells)} |")
    return lines


def draw_curve(rows: Rows, path: Path) -> None:
    """Write the picture: success over episodes on the lakes, a line for each verifier.

    Args:
        rows: all rows of the run.
        path: the file.
    """
    names = list(ENVIRONMENTS)[:2]
    handles: list[Any] = []
    with new_figure(1, len(names)) as (figure, axes):
        for axis, name in zip(axes[0], names, strict=True):
            mine = [row for row in rows if row["schedule"] == name and row["memory"] == "vanilla"]
            handles = [_draw_line(axis, mine, verifier, number) for number, verifier in enumerate(CURVES)]
            mark_phases(axis, mine)
            axis.set_title(ENVIRONMENTS[name], fontsize=10)
            axis.set_xlabel("episode")
        axes[0, 0].set_ylabel("success, % of 30 instances")
        add_legend(figure, handles, list(CURVES.values()), len(CURVES))
        figure.savefig(path, dpi=120)


def _draw_line(axis: Any, rows: Rows, verifier: str, number: int) -> Any:
    by_episode: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        if row["verifier"] == verifier:
            by_episode[row["episode"]].append(100.0 * row["success"])
    means = [float(np.mean(by_episode[episode])) for episode in sorted(by_episode)]
    return draw_means(axis, means, number, 1.0)


def main(arguments: list[str] | None = None) -> int:
    """Play, print the table and write the picture.

    Args:
        arguments: those of the command line.

    Returns:
        The exit status: 0, 1 (the work failed) or 130 (interrupted).
    """
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--out", type=Path, default=Path("runs/front-page"), help="folder of the run")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: all cores)")
    parser.add_argument("--seeds", type=int, help="fewer instances, for a try")
    given = parser.parse_args(arguments)
    overrides = {"seeds": given.seeds} if given.seeds else {}
    try:
        experiment = load_experiment(Path(__file__).with_name("front_page.yaml"), overrides)
        with ProgressBars() as bars:
            resume = (given.out / MANIFEST).exists()
            run_experiment(experiment, given.out, jobs=given.jobs, resume=resume, progress=bars)
        _, rows = read_run(given.out)
        draw_curve(rows, given.out / "curve.png")
    except KeyboardInterrupt:
        print("interrupted; what is done is kept, and the next call continues", file=sys.stderr)
        return 130
    except DriftAgentsError as error:
        print(f"front_page: {error}", file=sys.stderr)
        return 1
    print(*make_table(rows), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
