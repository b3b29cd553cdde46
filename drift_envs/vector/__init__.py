"""Native vector environments: thousands of drifting worlds computed together with NumPy.

* `VectorFrozenLake` - of `DriftFrozenLake-v0`
"""

from drift_envs.vector.base import DriftVectorEnv
from drift_envs.vector.lake import VectorFrozenLake

__all__ = ["DriftVectorEnv", "VectorFrozenLake"]
