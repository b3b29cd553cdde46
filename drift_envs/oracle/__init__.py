"""Oracles of drifting environments: for evaluators, out of reach of agents.

* `Oracle`, `Response`, `ChangeEffect`, `KnobSource`, `PlannedKnobs` - the protocol and its types
* `PlanningOracle` - the base of the oracles that plan
* `TransitionOracle` - classic control and MuJoCo: exact responses, no optimum
* `make_oracle` - the oracle of a drifting environment, which its folder holds
* `DriftSeverity`, `measure_drifts` - how severe and how visible the drifts of a schedule are

Each name is imported at first use.
"""

from typing import TYPE_CHECKING

from drift_envs.lazy import lazy_names

if TYPE_CHECKING:
    from drift_envs.oracle.base import (
        ChangeEffect,
        KnobSource,
        Oracle,
        PlannedKnobs,
        PlanningOracle,
        Response,
    )
    from drift_envs.oracle.make import make_oracle
    from drift_envs.oracle.severity import DriftSeverity, measure_drifts
    from drift_envs.oracle.transitions import TransitionOracle
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "base": ["ChangeEffect", "KnobSource", "Oracle", "PlannedKnobs", "PlanningOracle", "Response"],
            "make": ["make_oracle"],
            "severity": ["DriftSeverity", "measure_drifts"],
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
