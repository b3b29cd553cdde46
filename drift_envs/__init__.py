"""Gymnasium environments that drift on a schedule.

Importing it registers the ids: `DriftFrozenLake-v0`, `DriftMountainCar-v0`, `DriftMountainCarContinuous-v0`,
`DriftHouse-v0`, `DriftTools-v0`, `DriftFacts-v0`, `DriftWebShop-v0`. Everything else is imported at first use.

* `DriftWrapper` - drifts any Gymnasium environment
* `TextObservation` - shows the states of an environment as text
* `make_from_schedule` - the environment that a schedule names, of this package or any other
* `twin`, `snapshot` - a second instance for probing; restoring an exact state
* `Schedule`, `load_schedule`, `shipped_schedules` - what changes, when and how
* `save_progress`, `restore_progress` - a training goes on where it stopped
* `move_time` - another tick or phase from the next episode on
* `DriftState`, `DriftLog` - the true state of the drift, for evaluators
* `DriftEnvsError` - the base of all errors
"""

from typing import TYPE_CHECKING

from drift_envs.registration import register_all
from drift_envs.utils.lazy import lazy_names
from drift_envs.utils.version import __version__

if TYPE_CHECKING:
    from drift_envs.envs.make import make_from_schedule
    from drift_envs.errors import DriftEnvsError
    from drift_envs.schedule.loader import load_schedule
    from drift_envs.schedule.model import Schedule
    from drift_envs.schedule.yaml import shipped_schedules
    from drift_envs.vector.progress import move_time, restore_progress, save_progress
    from drift_envs.wrappers.drift import DriftWrapper
    from drift_envs.wrappers.records import DriftLog, DriftState
    from drift_envs.wrappers.text import TextObservation
    from drift_envs.wrappers.twin import snapshot, twin
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "envs.make": ["make_from_schedule"],
            "show": ["plots"],
            "errors": ["DriftEnvsError"],
            "schedule.loader": ["load_schedule"],
            "schedule.yaml": ["shipped_schedules"],
            "schedule.model": ["Schedule"],
            "vector.progress": ["move_time", "restore_progress", "save_progress"],
            "wrappers.drift": ["DriftWrapper"],
            "wrappers.records": ["DriftLog", "DriftState"],
            "wrappers.text": ["TextObservation"],
            "wrappers.twin": ["snapshot", "twin"],
        },
        modules=("envs", "oracle", "schedule", "show", "vector", "wrappers"),
    )

register_all()

__all__ = [
    "DriftEnvsError",
    "DriftLog",
    "DriftState",
    "DriftWrapper",
    "Schedule",
    "TextObservation",
    "__version__",
    "load_schedule",
    "make_from_schedule",
    "move_time",
    "restore_progress",
    "save_progress",
    "shipped_schedules",
    "snapshot",
    "twin",
]
