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
from drift_agents.analysis.runs import group, phases
from drift_agents.analysis.schedule_runs import PlayerIndex, ScheduleRuns, measure_of
from drift_agents.errors import ExperimentError
from drift_agents.experiment.config import Experiment
from drift_agents.experiment.folder import EPISODES, PLOTS, read_manifest
from drift_agents.experiment.logs import read_rows


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
    manifest = read_manifest(folder)
    if not (folder / EPISODES).exists():
        raise ExperimentError(f"{folder}: the run is not finished, {EPISODES} is missing. Go on with it with --resume")
    target = folder / PLOTS
    try:
        target.mkdir(exist_ok=True)
    except OSError as error:
        raise ExperimentError(f"{target}: cannot be written: {error.strerror}") from error
    pictures: dict[str, list[PlotFile]] = {}
    sweeps: dict[tuple[str, str], list[tuple[Any, ScheduleRuns]]] = {}
    for schedule, runs in group(read_rows(folder / EPISODES)).items():
        known = manifest["schedules"].get(schedule, {})
        naming = PlayerIndex(runs, manifest["players"], schedule)
        measure, order = measure_of(str(known.get("visibility"))), phases(runs)
        if "sweep" in known:
            swept = known["sweep"]
            part = ScheduleRuns(schedule, naming, measure, order)
            sweeps.setdefault((swept["of"], swept["path"]), []).append((swept["value"], part))
            continue
        prefix = re.sub(r"[^A-Za-z0-9_.-]+", "-", schedule)
        found = draw_paper_bars(schedule, naming, measure, order, target, prefix)
        found += draw_curves(schedule, naming, measure, target, prefix)
        found += draw_propagation(schedule, naming, target, prefix)
        found += draw_front(schedule, naming, measure, order, target, prefix)
        found += draw_visits(folder, schedule, str(known.get("env")), naming, order, target, prefix)
        pictures[schedule] = found
    budgets = budgets_of(Experiment.model_validate(manifest["experiment"])) if sweeps else {}
    for (of, path), parts in sweeps.items():
        pictures.setdefault(of, []).extend(draw_budgets(parts, budgets, path, of, target))
        pictures[of].extend(draw_sweep(parts, path, of, target))
    return pictures
