"""Native vector environments: many drifting environments computed together with NumPy."""

from drift_envs.vector.base import DriftVectorEnv
from drift_envs.vector.watched import WatchedAsyncVectorEnv

__all__ = [
    "DriftVectorEnv",
    "WatchedAsyncVectorEnv",
]
