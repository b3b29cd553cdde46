"""Oracles of drifting environments: for evaluators, out of reach of agents."""

from drift_envs.oracle.base import (
    ChangeEffect,
    DriftSeverity,
    KnobSource,
    Oracle,
    PlannedKnobs,
    PlanningOracle,
    Response,
    make_oracle,
    measure_drifts,
)
from drift_envs.oracle.transitions import TransitionOracle

__all__ = [
    "ChangeEffect",
    "DriftSeverity",
    "KnobSource",
    "Oracle",
    "PlannedKnobs",
    "PlanningOracle",
    "Response",
    "TransitionOracle",
    "make_oracle",
    "measure_drifts",
]
