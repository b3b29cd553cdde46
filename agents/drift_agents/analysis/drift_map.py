"""The map of drifts: where schedules stand by severity and visibility, and what agents keep there.

* `place_schedules` - severity and visibility of each schedule
* `keep_by_schedule` - what each agent keeps on each schedule
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from drift_agents.analysis.ranking import AXES, Key, measure_instances
from drift_agents.analysis.runs import Row
from drift_agents.experiment.config import SweptValue
from drift_agents.experiment.worlds import read_schedule
from drift_envs.errors import DriftEnvsError
from drift_envs.oracle import measure_drifts


class DriftPlace(NamedTuple):
    """Where a schedule stands on the map: means over its first two drifts, and over instances.

    Args:
        severity: the share of the transition table that changes, in percent.
        visibility: the share of optimal ways that meet the change, in percent.
    """

    severity: float
    visibility: float


def place_schedules(schedules: Mapping[str, Mapping[str, Any]], seeds: Sequence[int]) -> dict[str, DriftPlace]:
    """Where each schedule stands; schedules without a drift or without an oracle are left out.

    Args:
        schedules: by name, what `run.json` says of them.
        seeds: the instances that are measured.

    Example:
        >>> place_schedules({"frozen_lake/implicit": {}}, [0])["frozen_lake/implicit"].visibility
        100.0
    """
    found = {}
    for name, about in schedules.items():
        swept = about.get("sweep")
        change = None if swept is None else SweptValue(swept["path"], swept["value"])
        try:
            schedule = read_schedule(name if swept is None else swept["of"], change)
            drifts = [drift for seed in seeds for drift in measure_drifts(schedule, seed)]
        except DriftEnvsError:
            continue
        if drifts:
            severity, visibility = (
                100 * math.fsum(getattr(drift, field) for drift in drifts) / len(drifts)
                for field in ("severity", "visibility")
            )
            found[name] = DriftPlace(severity, visibility)
    return found


def keep_by_schedule(rows: Sequence[Row]) -> dict[Key, dict[str, float]]:
    """What each agent keeps on each schedule: the mean over instances in percent of the optimum, at most 100.

    Args:
        rows: the rows of a run; those of a construction do not count.

    Returns:
        By agent (`AXES`) and schedule; schedules without an episode after a drift are left out.
    """
    figures = measure_instances(rows)
    kept: dict[Key, dict[str, float]] = {}
    if figures.empty:
        return kept
    means = figures["kept"].groupby(level=[*AXES, "schedule"]).mean().mul(100).clip(upper=100).dropna()
    for (*key, schedule), value in means.items():
        kept.setdefault(tuple(key), {})[schedule] = float(value)
    return kept
