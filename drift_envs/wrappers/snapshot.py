"""Restoring an exact state; privileged, for references and evaluators.

* `snapshot` - saves the state of an episode
* `Snapshot` - restores it, in the same environment or in its twin
"""

from __future__ import annotations

import copy
from contextlib import nullcontext
from typing import Any

import gymnasium as gym

from drift_envs.errors import ArgumentError, StateError
from drift_envs.tunable import TunableEnv
from drift_envs.wrappers.drift import DriftWrapper
from drift_envs.wrappers.internal import InternalWrapper, layers
from drift_envs.wrappers.twin import Twin, inside

_NOT_STATE = ("action_space", "observation_space", "spec", "render_mode", "_np_random", "_np_random_seed")
_NOT_COPIED = ("pygame",)
"""Modules whose objects can't be copied: windows, surfaces, clocks."""


def snapshot(env: gym.Env[Any, Any]) -> Snapshot:
    """Save the state of an episode: the environment's state, the score so far and the random generator.

    Drift time, knobs and step limits are not part of it: the state is restored into the environment as it
    is then. An agent can't reach exact states by acting, so this is for references and evaluators.

    Args:
        env: the environment, or a twin.

    Example:
        >>> from drift_envs.envs import FrozenLake
        >>> lake = FrozenLake()
        >>> _ = lake.reset(seed=0)
        >>> saved = snapshot(lake)
        >>> first = [lake.step(1)[0] for _ in range(5)]
        >>> saved.restore()
        >>> [lake.step(1)[0] for _ in range(5)] == first
        True
    """
    return Snapshot(env)


class Snapshot:
    """The saved state of an episode; built by `snapshot`.

    Args:
        env: the environment, or a twin.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        self._env = env
        inner = inside(env)
        base = inner.unwrapped
        self._kind = type(base)
        self._state = copy.deepcopy(_save(base))
        self._random = copy.deepcopy(base.np_random.bit_generator.state)
        self._layers = _layers_of(inner)
        self._episode = {name: copy.deepcopy(layer.save_episode()) for name, layer in self._layers.items()}

    def restore(self, into: gym.Env[Any, Any] | None = None) -> None:
        """Restore the state.

        Args:
            into: an environment of the same kind, for instance a twin; by default the one that was saved.
                Only there the random generator is restored; others keep their own.

        Raises:
            ArgumentError: if the other environment is of another kind.
            StateError: if `into` is a twin that was never reset.
        """
        target = self._env if into is None else into
        if isinstance(target, Twin) and not target.is_ready:
            raise StateError("a state was restored into a twin before its first `reset`; call `reset` first")
        inner = inside(target)
        base = inner.unwrapped
        if type(base) is not self._kind:
            raise ArgumentError(f"`into` should be a {self._kind.__name__}. Received {type(base).__name__}")
        drifting = next((layer for layer in layers(inner) if isinstance(layer, DriftWrapper)), None)
        with nullcontext() if drifting is None else drifting.unchanged():
            _load(base, copy.deepcopy(self._state))
        if target is self._env:
            base.np_random.bit_generator.state = copy.deepcopy(self._random)
        for name, layer in _layers_of(inner).items():
            if name in self._episode:
                layer.load_episode(copy.deepcopy(self._episode[name]))


def _layers_of(env: gym.Env[Any, Any]) -> dict[str, InternalWrapper]:
    """The wrappers of this package in an environment, by class."""
    return {type(layer).__name__: layer for layer in layers(env) if isinstance(layer, InternalWrapper)}


def _save(base: gym.Env[Any, Any]) -> dict[str, Any]:
    """The attributes that hold the state of the episode."""
    if isinstance(base, TunableEnv):
        return base.save_state()
    return {
        name: value
        for name, value in vars(base).items()
        if name not in _NOT_STATE and not type(value).__module__.startswith(_NOT_COPIED)
    }


def _load(base: gym.Env[Any, Any], state: dict[str, Any]) -> None:
    """Set the attributes that hold the state of the episode."""
    if isinstance(base, TunableEnv):
        base.load_state(state)
    else:
        vars(base).update(state)
