"""What an evaluator may ask about a world that drifts; no agent gets to see it.

* `Oracle`, `Response`, `ChangeEffect`, `DriftingWorld`, `PlannedWorld` - the protocol and what it speaks of
* `LakeOracle` - the frozen lake, exactly
* `CarOracle` - the mountain cars: answers exactly, the best known policy measured
* `ShopOracle` - the shop: answers exactly, the best known purchase
* `make_oracle` - the oracle of a drifting world
"""

from drift_envs.oracle.base import ChangeEffect, DriftingWorld, Oracle, PlannedWorld, Response
from drift_envs.oracle.car import CarOracle
from drift_envs.oracle.factories import make_oracle
from drift_envs.oracle.lake import LakeOracle
from drift_envs.oracle.webshop import ShopOracle

__all__ = [
    "CarOracle",
    "ChangeEffect",
    "DriftingWorld",
    "LakeOracle",
    "Oracle",
    "PlannedWorld",
    "Response",
    "ShopOracle",
    "make_oracle",
]
