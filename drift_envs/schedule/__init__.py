"""Schedules: when an environment's knobs change, how and to what; no environment in here.

* `Schedule`, `Drift`, `TaskPool` - what a schedule file says
* `load_schedule`, `shipped_schedules` - from a name, a path or a dictionary to a checked `Schedule`
* `schedule_schema` - the JSON Schema of the language
* `Timeline` - what a schedule means: the value of every knob at every tick
* `Segment`, `Phase`, `KnobChange` - what a timeline answers
* `NEVER` - the tick that does not come
"""

from typing import TYPE_CHECKING

from drift_envs.lazy import lazy_names

if TYPE_CHECKING:
    from drift_envs.schedule.files import shipped_schedules
    from drift_envs.schedule.loader import load_schedule
    from drift_envs.schedule.model import Drift, Schedule, TaskPool, schedule_schema
    from drift_envs.schedule.phases import NEVER, Phase
    from drift_envs.schedule.timeline import KnobChange, Segment, Timeline
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "files": ["shipped_schedules"],
            "loader": ["load_schedule"],
            "model": ["Drift", "Schedule", "TaskPool", "schedule_schema"],
            "phases": ["NEVER", "Phase"],
            "timeline": ["KnobChange", "Segment", "Timeline"],
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
