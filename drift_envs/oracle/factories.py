"""Which oracle belongs to which environment.

* `oracle_for` - the factory of an id: called with a drifting world, it gives the oracle
* `lake_oracle` - a lake's oracle
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from drift_envs.oracle.base import Oracle
from drift_envs.oracle.lake import LakeOracle

LAKE_LIMIT = 100
"""Steps of an episode where the environment's spec says nothing."""


def oracle_for(env_id: str) -> Callable[[Any], Oracle] | None:
    """The factory of an id, or `None` if no oracle is known for it.

    Args:
        env_id: an id of this package.

    Example:
        >>> oracle_for("DriftFrozenLake-v0").__name__
        'lake_oracle'
        >>> oracle_for("CartPole-v1") is None
        True
    """
    return _FACTORIES.get(env_id)


def lake_oracle(wrapper: Any) -> Oracle:
    """The oracle of a lake.

    Args:
        wrapper: the wrapper that drifts it, with `knobs_at` and `spec`.
    """
    return LakeOracle(wrapper, _step_limit(wrapper, LAKE_LIMIT), wrapper.unwrapped.reward_schedule)


def _step_limit(wrapper: Any, default: int) -> int:
    """The steps of an episode: those of the spec, since `TimeLimit` stands around the wrapper."""
    spec = wrapper.unwrapped.spec
    limit = None if spec is None else spec.max_episode_steps
    return default if limit is None else int(limit)


_FACTORIES: dict[str, Callable[[Any], Oracle]] = {"DriftFrozenLake-v0": lake_oracle}
