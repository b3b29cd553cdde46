"""All pictures of a run.

* `draw_all` - draws them into the run's folder
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from drift_agents.analysis.plots.curves import draw_curves, draw_propagation
from drift_agents.analysis.plots.methods import draw_front, draw_paper_bars
from drift_agents.analysis.plots.style import PlotFile
from drift_agents.analysis.plots.sweeps import budgets_of, draw_budgets, draw_sweep
from drift_agents.analysis.plots.visits import draw_visits
from drift_agents.analysis.runs import group, phases_of, read_run
from drift_agents.analysis.schedule_runs import PlayerIndex, ScheduleRuns, measure_of
from drift_agents.errors import ExperimentError
from drift_agents.experiment.config import Experiment
from drift_agents.experiment.folder import PLOTS


def draw_all(folder: Path) -> dict[str, list[PlotFile]]:
    """Draw all pictures of a finished run into its folder `plots`.

    Args:
        folder: the run's folder.

    Returns:
        The pictures of each schedule; those of a sweep under the schedule that was swept.

    Raises:
        ExperimentError: if the folder holds no finished run, or a file cannot be written.
        MissingDependencyError: without matplotlib.
    """
    manifest, rows = read_run(folder)
    target = folder / PLOTS
    try:
        target.mkdir(exist_ok=True)
    except OSError as error:
        raise ExperimentError(f"{target}: cannot be written: {error.strerror}") from error
    pictures: dict[str, list[PlotFile]] = {}
    sweeps: dict[tuple[str, str], list[tuple[Any, ScheduleRuns]]] = {}
    for schedule, runs in group(rows).items():
        known = manifest["schedules"].get(schedule, {})
        players = PlayerIndex(runs, manifest["players"], schedule)
        measure, phases = measure_of(str(known.get("visibility"))), phases_of(runs)
        if "sweep" in known:
            swept = known["sweep"]
            part = ScheduleRuns(schedule, players, measure, phases)
            sweeps.setdefault((swept["of"], swept["path"]), []).append((swept["value"], part))
            continue
        prefix = re.sub(r"[^A-Za-z0-9_.-]+", "-", schedule)
        found = draw_paper_bars(schedule, players, measure, phases, target, prefix)
        found += draw_curves(schedule, players, measure, target, prefix)
        found += draw_propagation(schedule, players, target, prefix)
        found += draw_front(schedule, players, measure, phases, target, prefix)
        found += draw_visits(folder, schedule, str(known.get("env")), players, phases, target, prefix)
        pictures[schedule] = found
    budgets = budgets_of(Experiment.model_validate(manifest["experiment"])) if sweeps else {}
    for (of, path), parts in sweeps.items():
        pictures.setdefault(of, []).extend(draw_budgets(parts, budgets, path, of, target))
        pictures[of].extend(draw_sweep(parts, path, of, target))
    return pictures
