"""Native vector environments: many drifting environments computed together with NumPy.

* `DriftVectorEnv` - their base; lake and cars stand in their folders, as `drift_envs.envs.frozen_lake.vector`
* `WorkerVectorEnv` - they in several processes
* `WatchedAsyncVectorEnv` - Gymnasium's vector environment of processes, with one clear error when a process is lost
"""

from drift_envs.vector.base import DriftVectorEnv
from drift_envs.vector.watched import WatchedAsyncVectorEnv
from drift_envs.vector.workers import WorkerVectorEnv

__all__ = [
    "DriftVectorEnv",
    "WatchedAsyncVectorEnv",
    "WorkerVectorEnv",
]
