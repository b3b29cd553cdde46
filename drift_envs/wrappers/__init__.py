"""What stands around an environment: drift, text, and what evaluators see."""

from drift_envs.wrappers.drift import DriftWrapper
from drift_envs.wrappers.overlay import DriftOverlay
from drift_envs.wrappers.records import DriftLog, DriftState, HeldClock, PhaseReturn, PhaseReturns, VectorPhaseReturns
from drift_envs.wrappers.text import TextObservation
from drift_envs.wrappers.twin import Snapshot, Twin, snapshot, twin

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
