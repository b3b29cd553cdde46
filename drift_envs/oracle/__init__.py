"""What an evaluator may ask about a world that drifts; no agent gets to see it.

* `Oracle`, `Response`, `Effect`, `World`, `PlannedWorld` - the protocol and what it speaks of
* `LakeOracle` - the frozen lake, exactly
* `CarOracle` - the mountain cars: answers exactly, the best known policy measured
* `ShopOracle` - the shop: answers exactly, the best known purchase
* `make_oracle` - the oracle of a drifting world
"""

from drift_envs.oracle.base import Effect, Oracle, PlannedWorld, Response, World
from drift_envs.oracle.car import CarOracle
from drift_envs.oracle.factories import make_oracle
from drift_envs.oracle.lake import LakeOracle
from drift_envs.oracle.webshop import ShopOracle

__all__ = [
    "CarOracle",
    "Effect",
    "LakeOracle",
    "Oracle",
    "PlannedWorld",
    "Response",
    "ShopOracle",
    "World",
    "make_oracle",
]
