"""The policies that play the episodes of a data set.

* `Act` - an action from observation, info and tick
* `Policy` - begins an episode with a seed and returns its `Act`
* `POLICIES`, `make_policy` - by name, or a function of one's own

A policy keeps nothing from one episode to the next, so that every part of a data set can be played alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

from drift_envs.errors import ArgumentError, NoOracleError, UnknownChoiceError
from drift_envs.lazy import find_callable

POLICIES = ("random", "optimal", "initial")
"""Random actions; the optimum of the present tick; the optimum of tick 0, which is kept whatever drifts."""

Act = Callable[[Any, dict[str, Any], int], Any]
Policy = Callable[[int], Act]


def make_policy(name: str, env: gym.Env[Any, Any], epsilon: float = 0.0) -> Policy:
    """The policy of a name.

    Args:
        name: one of `POLICIES`, or `module:name` of a function `make(observation_space, action_space)` that returns a
            function `act(observation, info, rng)`, where `rng` is the NumPy generator of the episode.
        env: the environment, after a reset.
        epsilon: the share of actions that are random instead.

    Raises:
        UnknownChoiceError: if there is no such policy.
        NoOracleError: if no optimum is known for the environment.
        ArgumentError: if the function cannot be found or called.
    """
    wanders = _make_random(env)
    if name == "random":
        return wanders
    follows = _make_own(name, env) if ":" in name else _make_oracle(name, env)
    return _mix(follows, wanders, epsilon) if epsilon else follows


def _make_random(env: gym.Env[Any, Any]) -> Policy:
    """Uniform over the actions: of `info["actions"]` where actions are texts."""
    space = env.action_space
    if isinstance(space, gym.spaces.Text):

        def begin_texts(seed: int) -> Act:
            rng = random.Random(seed)
            return lambda observation, info, tick: rng.choice(info["actions"])

        return begin_texts

    def begin(seed: int) -> Act:
        space.seed(seed)
        return lambda observation, info, tick: space.sample()

    return begin


def _make_oracle(name: str, env: gym.Env[Any, Any]) -> Policy:
    if name not in POLICIES:
        raise UnknownChoiceError(
            f"`policy` should be one of {', '.join(POLICIES)}, 'module:name' of a function, or a file of a run's "
            f"folder `traces`. Received {name!r}"
        )
    oracle: Any = env.get_wrapper_attr("oracle") if env.has_wrapper_attr("oracle") else None
    if not hasattr(oracle, "action"):
        raise NoOracleError(f"the optimum of {env} is not known; use the policy `random` or a function")
    act: Act
    if name == "initial":
        act = lambda observation, info, tick: oracle.action(observation, 0)  # noqa: E731
    else:
        act = lambda observation, info, tick: oracle.action(observation, tick)  # noqa: E731
    return lambda seed: act


def _make_own(name: str, env: gym.Env[Any, Any]) -> Policy:
    own = find_callable("policy", name)(env.observation_space, env.action_space)
    if not callable(own):
        raise ArgumentError(f"`{name}` should return a function `act(observation, info, rng)`. Received {own!r}")

    def begin(seed: int) -> Act:
        rng = np.random.default_rng(seed)
        return lambda observation, info, tick: own(observation, info, rng)

    return begin


def _mix(follows: Policy, wanders: Policy, epsilon: float) -> Policy:
    def begin(seed: int) -> Act:
        rng = random.Random(seed)
        usual, other = follows(seed), wanders(seed)
        return lambda *seen: other(*seen) if rng.random() < epsilon else usual(*seen)

    return begin
