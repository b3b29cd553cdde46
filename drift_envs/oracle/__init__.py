"""Oracles of drifting environments: for evaluators, out of reach of agents.

* `Oracle`, `Response`, `ChangeEffect`, `DriftingWorld`, `PlannedWorld` - the protocol and its types
* `PlanningOracle` - the base of the oracles that plan
* `LakeOracle` - the frozen lake, exact
* `CarOracle` - the mountain cars: exact responses, the best known policy measured
* `HouseOracle` - the house: shortest plans by search
* `ShopOracle` - the shop: exact responses, the best known purchase
* `GridOracle` - Minigrid's worlds: shortest plans by search
* `PageOracle` - the task pages of MiniWoB++: exact responses, the scripted solver
* `TransitionOracle` - classic control and MuJoCo: exact responses, no optimum
* `make_oracle` - the oracle of a drifting environment

Each name is imported at first use: an evaluation on lakes loads neither the shop nor SciPy.
"""

from typing import TYPE_CHECKING

from drift_envs.lazy import lazy_names

if TYPE_CHECKING:
    from drift_envs.oracle.base import (
        ChangeEffect,
        DriftingWorld,
        Oracle,
        PlannedWorld,
        PlanningOracle,
        Response,
    )
    from drift_envs.oracle.car import CarOracle
    from drift_envs.oracle.factories import make_oracle
    from drift_envs.oracle.grid import GridOracle
    from drift_envs.oracle.house import HouseOracle
    from drift_envs.oracle.lake import LakeOracle
    from drift_envs.oracle.page import PageOracle
    from drift_envs.oracle.physics import TransitionOracle
    from drift_envs.oracle.severity import DriftSeverity, measure_drifts
    from drift_envs.oracle.webshop import ShopOracle
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "base": ["ChangeEffect", "DriftingWorld", "Oracle", "PlannedWorld", "PlanningOracle", "Response"],
            "car": ["CarOracle"],
            "factories": ["make_oracle"],
            "lake": ["LakeOracle"],
            "grid": ["GridOracle"],
            "house": ["HouseOracle"],
            "page": ["PageOracle"],
            "physics": ["TransitionOracle"],
            "severity": ["DriftSeverity", "measure_drifts"],
            "webshop": ["ShopOracle"],
        },
    )

__all__ = [
    "CarOracle",
    "ChangeEffect",
    "DriftSeverity",
    "DriftingWorld",
    "GridOracle",
    "HouseOracle",
    "LakeOracle",
    "Oracle",
    "PageOracle",
    "PlannedWorld",
    "PlanningOracle",
    "Response",
    "ShopOracle",
    "TransitionOracle",
    "make_oracle",
    "measure_drifts",
]
