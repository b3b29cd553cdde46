"""The oracle of each environment; a file of its own, since each oracle is imported when it is built.

* `make_oracle` - the oracle of a drifting environment, as registration passes it to `DriftWrapper`
"""

from __future__ import annotations

from typing import Any

from drift_envs.errors import NoOracleError
from drift_envs.oracle.base import Oracle
from drift_envs.registration import parts_of


def make_oracle(wrapper: Any) -> Oracle:
    """Build the oracle of a drifting environment.

    Its step limit is that of the id. With another `max_episode_steps` given to `gymnasium.make`,
    which only the `TimeLimit` around the wrapper stores, build `LakeOracle` or `CarOracle` directly.

    Args:
        wrapper: the `DriftWrapper` around an environment whose declaration names an oracle.

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
    parts = parts_of(base)
    if parts is None or parts.oracle is None:
        raise NoOracleError(f"no oracle is known for {base}")
    foreign = [name for name in wrapper.timeline.names if name not in base.knobs]
    if foreign and parts.knows_optimum:
        raise NoOracleError(f"no oracle is known for {base} while its schedule sets `{'`, `'.join(foreign)}`")
    limit = None if base.spec is None else base.spec.max_episode_steps
    oracle: Oracle = parts.load("oracle")(wrapper, lambda: base, parts.limit if limit is None else limit)
    return oracle
