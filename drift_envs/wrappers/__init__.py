"""What stands around an environment: drift, text, and what evaluators see.

* `DriftWrapper` - turns an environment's knobs as a schedule says
* `TextObservation` - turns the lake and the cars into text worlds
* `DriftState`, `DriftLog` - the truth about a drifting world, for evaluators
"""

from drift_envs.wrappers.drift import DriftWrapper
from drift_envs.wrappers.records import DriftLog, DriftState
from drift_envs.wrappers.text import TextObservation

__all__ = ["DriftLog", "DriftState", "DriftWrapper", "TextObservation"]
