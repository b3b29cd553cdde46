"""Gymnasium environments whose world drifts on a schedule.

Importing it registers the ids: `DriftFrozenLake-v0`, `DriftMountainCar-v0`, `DriftMountainCarContinuous-v0`,
`DriftWebShop-v0`.

* `DriftWrapper` - drifts any Gymnasium environment
* `TextObservation` - turns the lake and the cars into text worlds
* `twin`, `snapshot` - a second instance for probing; going back to an exact state
* `Schedule`, `load_schedule`, `shipped_schedules` - what changes, when and how
* `DriftState`, `DriftLog` - the truth, for evaluators
* `DriftEnvsError` - the base of all errors
"""

from drift_envs._version import __version__
from drift_envs.errors import DriftEnvsError
from drift_envs.registration import register_all
from drift_envs.schedule import Schedule, load_schedule, shipped_schedules
from drift_envs.wrappers import DriftLog, DriftState, DriftWrapper, TextObservation, snapshot, twin

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
    "shipped_schedules",
    "snapshot",
    "twin",
]
