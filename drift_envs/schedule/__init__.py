"""Schedules: when an environment's knobs change, how and to what; no environment in here.

* `Schedule`, `Drift`, `Tasks` - what a schedule file says
* `load_schedule`, `shipped_schedules` - from a name, a path or a dictionary to a checked `Schedule`
* `schedule_schema` - the JSON Schema of the language
* `Timeline` - what a schedule means: the value of every knob at every tick
* `Segment`, `Phase`, `Change` - what a timeline answers
* `NEVER` - the tick that does not come
"""

from drift_envs.schedule.loader import load_schedule, shipped_schedules
from drift_envs.schedule.model import Drift, Schedule, Tasks, schedule_schema
from drift_envs.schedule.timeline import NEVER, Change, Phase, Segment, Timeline

__all__ = [
    "NEVER",
    "Change",
    "Drift",
    "Phase",
    "Schedule",
    "Segment",
    "Tasks",
    "Timeline",
    "load_schedule",
    "schedule_schema",
    "shipped_schedules",
]
