"""What an evaluator may ask about a world that drifts; no agent gets to see it.

* `Oracle`, `Response`, `Effect`, `World`, `PlannedWorld` - the protocol and what it speaks of
* `LakeOracle` - the frozen lake, exactly
* `oracle_for` - the factory of an environment's oracle
"""

from drift_envs.oracle.base import Effect, Oracle, PlannedWorld, Response, World
from drift_envs.oracle.factories import oracle_for
from drift_envs.oracle.lake import LakeOracle

__all__ = ["Effect", "LakeOracle", "Oracle", "PlannedWorld", "Response", "World", "oracle_for"]
