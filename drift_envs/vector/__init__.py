"""Native vector environments: many drifting environments computed together with NumPy.

* `VectorFrozenLake` - of `DriftFrozenLake-v0`
* `VectorMountainCar`, `VectorMountainCarContinuous` - of `DriftMountainCar-v0` and `DriftMountainCarContinuous-v0`
* `DriftVectorEnv` - their base
"""

from drift_envs.vector.base import DriftVectorEnv
from drift_envs.vector.car import VectorMountainCar, VectorMountainCarContinuous
from drift_envs.vector.lake import VectorFrozenLake

__all__ = ["DriftVectorEnv", "VectorFrozenLake", "VectorMountainCar", "VectorMountainCarContinuous"]
