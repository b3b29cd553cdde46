"""Native vector environments: many drifting environments computed together with NumPy.

* `DriftVectorEnv` - their base; lake and cars stand in their folders, as `drift_envs.envs.frozen_lake.vector`
* `WatchedAsyncVectorEnv` - Gymnasium's vector environment of processes, with one clear error when a process is lost
"""

from drift_envs.vector.base import DriftVectorEnv
from drift_envs.vector.watched import WatchedAsyncVectorEnv

__all__ = [
    "DriftVectorEnv",
    "WatchedAsyncVectorEnv",
]
