"""Schedules: when an environment's knobs change, how and to what; no environment in here."""

from typing import TYPE_CHECKING

from drift_envs.utils.lazy import lazy_names

if TYPE_CHECKING:
    from drift_envs.schedule.loader import load_schedule
    from drift_envs.schedule.model import Drift, Schedule, TaskPool, schedule_schema
    from drift_envs.schedule.phases import NEVER, Phase
    from drift_envs.schedule.timeline import KnobChange, Segment, Timeline
    from drift_envs.schedule.yaml import shipped_schedules
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "loader": ["load_schedule"],
            "model": ["Drift", "Schedule", "TaskPool", "schedule_schema"],
            "phases": ["NEVER", "Phase"],
            "timeline": ["KnobChange", "Segment", "Timeline"],
            "yaml": ["shipped_schedules"],
        },
    )

__all__ = [
    "NEVER",
    "Drift",
    "KnobChange",
    "Phase",
    "Schedule",
    "Segment",
    "TaskPool",
    "Timeline",
    "load_schedule",
    "schedule_schema",
    "shipped_schedules",
]
