"""The oracle of each environment; separate from the oracles, since it imports all of them.

* `make_oracle` - the oracle of a drifting environment, as registration passes it to `DriftWrapper`
* `has_oracle` - whether one is known for a class of environments
* `LIMITS` - the step limit if the environment's spec has none
"""

from __future__ import annotations

from typing import Any

from drift_envs.envs import FrozenLake, MountainCar, MountainCarContinuous, WebShop
from drift_envs.errors import NoOracleError
from drift_envs.oracle.base import Oracle
from drift_envs.oracle.car import CarOracle
from drift_envs.oracle.lake import LakeOracle
from drift_envs.oracle.webshop import ShopOracle

LIMITS: dict[type[Any], int] = {FrozenLake: 100, MountainCar: 300, MountainCarContinuous: 999, WebShop: 30}


def has_oracle(base: type) -> bool:
    """Whether an oracle is known for a class of environments.

    Args:
        base: the class of the innermost environment.
    """
    return issubclass(base, tuple(LIMITS))


def make_oracle(wrapper: Any) -> Oracle:
    """Build the oracle of a drifting environment.

    Its step limit is that of the id. With another `max_episode_steps` given to `gymnasium.make`,
    which only the `TimeLimit` around the wrapper stores, build `LakeOracle` or `CarOracle` directly.

    Args:
        wrapper: the `DriftWrapper` around a lake, a car or a shop of this package.

    Raises:
        NoOracleError: if no oracle is known for the wrapped environment, or the schedule drives a knob of
            the wrapper, such as `action_delay`, which the oracle does not model.

    Example:
        >>> from drift_envs.envs import FrozenLake
        >>> from drift_envs.wrappers.drift import DriftWrapper
        >>> env = DriftWrapper(FrozenLake(is_slippery=False), "frozen_lake/explicit", make_oracle)
        >>> env.oracle.effect(0, 20).carried
        0.0
    """
    base: Any = wrapper.unwrapped
    foreign = [name for name in wrapper.timeline.names if name not in base.knobs] if has_oracle(type(base)) else []
    if foreign:
        raise NoOracleError(f"no oracle is known for {base} while its schedule turns `{'`, `'.join(foreign)}`")
    for kind, limit in LIMITS.items():
        if isinstance(base, kind):
            spec = base.spec
            steps = limit if spec is None or spec.max_episode_steps is None else spec.max_episode_steps
            if isinstance(base, FrozenLake):
                return LakeOracle(wrapper, steps, base.reward_schedule)
            if isinstance(base, WebShop):
                return ShopOracle(wrapper, base.shop, lambda: base.task_pool, steps)
            return CarOracle(wrapper, steps, base.goal_velocity)
    raise NoOracleError(f"no oracle is known for {base}")
