"""Oracles of drifting environments: for evaluators, out of reach of agents.

Each name is imported at first use.
"""

from typing import TYPE_CHECKING

from drift_envs.lazy import lazy_names

if TYPE_CHECKING:
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
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "base": [
                "ChangeEffect",
                "DriftSeverity",
                "KnobSource",
                "Oracle",
                "PlannedKnobs",
                "PlanningOracle",
                "Response",
                "make_oracle",
                "measure_drifts",
            ],
            "transitions": ["TransitionOracle"],
        },
    )

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
