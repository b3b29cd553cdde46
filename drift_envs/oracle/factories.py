"""The oracle of each environment; a file of its own, since each oracle is imported when it is built.

* `make_oracle` - the oracle of a drifting environment, as registration passes it to `DriftWrapper`
"""

from __future__ import annotations

from typing import Any

from drift_envs.envs.attributes import AttributeEnv
from drift_envs.envs.minigrid.knobs import MINIGRID_KNOBS
from drift_envs.envs.miniwob.knobs import MINIWOB_KNOBS
from drift_envs.errors import NoOracleError
from drift_envs.oracle.base import Oracle

_LIMITS = {"FrozenLake": 100, "MountainCar": 300, "MountainCarContinuous": 999, "WebShop": 30, "House": 50}
"""The step limit if the environment's spec has none, by class of this package."""


def make_oracle(wrapper: Any) -> Oracle:
    """Build the oracle of a drifting environment.

    Its step limit is that of the id. With another `max_episode_steps` given to `gymnasium.make`,
    which only the `TimeLimit` around the wrapper stores, build `LakeOracle` or `CarOracle` directly.

    Args:
        wrapper: the `DriftWrapper` around an environment of this package.

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
    if isinstance(base, AttributeEnv):
        from drift_envs.oracle.physics import TransitionOracle

        return TransitionOracle(wrapper)
    kind = _kind_of(base)
    if kind is None:
        raise NoOracleError(f"no oracle is known for {base}")
    foreign = [name for name in wrapper.timeline.names if name not in base.knobs]
    if foreign:
        raise NoOracleError(f"no oracle is known for {base} while its schedule turns `{'`, `'.join(foreign)}`")
    if kind == "MiniGrid":
        from drift_envs.oracle.grid import GridOracle

        return GridOracle(wrapper, base)
    if kind == "MiniWoB":
        from drift_envs.envs.miniwob.tasks import TASKS
        from drift_envs.oracle.page import PageOracle

        return PageOracle(wrapper, lambda: base, TASKS[base.task_name].limit)
    limit = None if base.spec is None else base.spec.max_episode_steps
    steps = _LIMITS[kind] if limit is None else limit
    if kind == "FrozenLake":
        from drift_envs.oracle.lake import LakeOracle

        return LakeOracle(wrapper, steps, base.reward_schedule)
    if kind == "WebShop":
        from drift_envs.oracle.webshop import ShopOracle

        return ShopOracle(wrapper, base.shop, lambda: base.task_pool, steps)
    if kind == "House":
        from drift_envs.oracle.house import HouseOracle

        return HouseOracle(wrapper, base.pool_of, lambda: base.drawn_house, steps)
    from drift_envs.oracle.car import CarOracle

    return CarOracle(wrapper, steps, base.goal_velocity)


def _kind_of(base: Any) -> str | None:
    """The name of the class of this package from which an environment is derived, or of its extra, if any."""
    for name, knobs in (("MiniGrid", MINIGRID_KNOBS), ("MiniWoB", MINIWOB_KNOBS)):
        if getattr(base, "knobs", None) is knobs:  # its class cannot be imported without its extra
            return name
    names = (one.__name__ for one in type(base).__mro__ if one.__module__.startswith("drift_envs.envs."))
    return next((name for name in names if name in _LIMITS), None)
