"""What stands around an environment: drift, text, and what evaluators see.

* `DriftWrapper` - sets an environment's knobs as a schedule says
* `TextObservation` - shows the states of an environment as text
* `DriftOverlay` - draws phase, tick and what changed under pictures
* `twin`, `Twin` - a second instance that follows the drift, for probing
* `snapshot`, `Snapshot` - going back to an exact state, a privilege
* `PhaseReturns`, `VectorPhaseReturns` - returns by phase, of one environment and of a vector environment
* `HeldClock` - an evaluation environment whose time stands at a given tick
* `DriftState`, `DriftLog` - the truth about a drifting environment, for evaluators
"""

from drift_envs.wrappers.drift import DriftWrapper
from drift_envs.wrappers.overlay.overlay import DriftOverlay
from drift_envs.wrappers.phase_returns import HeldClock, PhaseReturn, PhaseReturns, VectorPhaseReturns
from drift_envs.wrappers.records import DriftLog, DriftState
from drift_envs.wrappers.snapshot import Snapshot, snapshot
from drift_envs.wrappers.text import TextObservation
from drift_envs.wrappers.twin import Twin, twin

__all__ = [
    "DriftLog",
    "DriftOverlay",
    "DriftState",
    "DriftWrapper",
    "HeldClock",
    "PhaseReturn",
    "PhaseReturns",
    "Snapshot",
    "TextObservation",
    "Twin",
    "VectorPhaseReturns",
    "snapshot",
    "twin",
]
