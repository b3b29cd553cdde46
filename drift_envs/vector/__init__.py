"""Native vector environments: many drifting environments computed together with NumPy.

* `VectorFrozenLake` - of `DriftFrozenLake-v0`
* `VectorMountainCar`, `VectorMountainCarContinuous` - of `DriftMountainCar-v0` and `DriftMountainCarContinuous-v0`
* `DriftVectorEnv` - their base
* `WatchedAsyncVectorEnv` - Gymnasium's vector environment of processes, with one clear error when a process is lost
"""

from drift_envs.vector.base import DriftVectorEnv
from drift_envs.vector.car import VectorMountainCar, VectorMountainCarContinuous
from drift_envs.vector.lake import VectorFrozenLake
from drift_envs.vector.watched import WatchedAsyncVectorEnv

__all__ = [
    "DriftVectorEnv",
    "VectorFrozenLake",
    "VectorMountainCar",
    "VectorMountainCarContinuous",
    "WatchedAsyncVectorEnv",
]
