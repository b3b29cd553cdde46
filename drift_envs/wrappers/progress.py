"""Where the layers of one environment stand, as plain data, so that another process goes on there.

A layer is an environment or a wrapper. Those of this package say what is theirs (`InternalWrapper`, `TunableEnv`); of
others the attributes are stored that are plain data and no argument of the constructor, which stay as they were built.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from drift_envs.errors import ArgumentError, DriftEnvsError, StateError
from drift_envs.tunable import TunableEnv
from drift_envs.wrappers.internal import InternalWrapper, layers
from drift_envs.wrappers.plain_data import NotPlainError, from_plain, to_plain

_NOT_EPISODE = frozenset({"action_space", "observation_space", "spec", "render_mode", "_np_random", "_np_random_seed"})
_NOT_STATE = frozenset(
    {
        *_NOT_EPISODE,
        *("env", "envs", "venv", "num_envs", "metadata", "reset_infos", "actions", "single_env"),
        *("_action_space", "_observation_space", "_metadata", "_reward_range", "_cached_spec", "_saved_kwargs"),
        *("_single_action_space", "_single_observation_space"),
        "_driven",  # follows from the schedule
        *("t_start", "start_time", "episode_start_time", "episode_start_times"),  # by the clock of one process
    }
)
_NOT_COPIED = ("pygame",)
"""Modules whose objects can't be copied: windows, surfaces, clocks."""

_INSIDE = "$inside"
"""Marks the plain attributes of an object, which are set in the one that is there."""

_DAMAGE = (ArithmeticError, AttributeError, AssertionError, LookupError, TypeError, ValueError)
"""What taking over data raises that is not as it was written."""


def episode_attributes(base: gym.Env[Any, Any]) -> dict[str, Any]:
    """The attributes of an environment of another package that hold the state of its episode."""
    return {
        name: value
        for name, value in vars(base).items()
        if name not in _NOT_EPISODE and not type(value).__module__.startswith(_NOT_COPIED)
    }


def save_attributes(layer: Any) -> dict[str, Any]:
    """The plain attributes of a layer of another package, without those that its constructor was given.

    Args:
        layer: a wrapper.

    Example:
        >>> env = gym.wrappers.TimeLimit(gym.make("CartPole-v1"), 50)
        >>> _ = env.reset(seed=0), env.step(0)
        >>> save_attributes(env)
        {'_elapsed_steps': 1}
    """
    given = inspect.signature(type(layer).__init__).parameters
    found = {}
    for name, value in vars(layer).items():
        if name in _NOT_STATE or name.lstrip("_") in given:
            continue
        plain = _plain_or_inside(value)
        if plain is not None or value is None:
            found[name] = plain
    return found


def _plain_or_inside(value: Any, deep: bool = True) -> Any:
    """A value as plain data, or the plain attributes of an object; `None` if there are none."""
    try:
        return to_plain(value, copies=True)
    except NotPlainError:
        pass
    if not deep:
        return None
    inside = value if isinstance(value, dict) else getattr(value, "__dict__", None)
    if inside is None or isinstance(value, (gym.Env, gym.Space, type)) or callable(value):
        return None
    found = {name: _plain_or_inside(one, isinstance(value, dict)) for name, one in inside.items()}
    found = {name: one for name, one in found.items() if one is not None and isinstance(name, str)}
    return {_INSIDE: found} if found else None


def load_attributes(layer: Any, saved: Mapping[str, Any]) -> None:
    """Set the attributes of a layer.

    Args:
        layer: a wrapper.
        saved: from `save_attributes`.
    """
    for name, plain in saved.items():
        if name not in vars(layer):
            raise ArgumentError(f"`saved` should have attributes of {type(layer).__name__}. Received {name!r}")
        _set_inside(vars(layer), name, plain)


def _set_inside(owner: dict[str, Any], name: str, plain: Any) -> None:
    if not (isinstance(plain, dict) and _INSIDE in plain):
        owner[name] = from_plain(plain, name)
        return
    inside = owner[name] if isinstance(owner[name], dict) else vars(owner[name])
    for key, one in plain[_INSIDE].items():
        _set_inside(inside, key, one)


def save_layers(top: gym.Env[Any, Any]) -> dict[str, Any]:
    """Where an environment and all inside of it stand.

    Args:
        top: the environment, reset before.

    Returns:
        Plain data. `running` is `None` where the running episode is none, and `reason` says why.
    """
    base = top.unwrapped
    running, reason, order, knobs = None, "", None, {}
    try:
        if isinstance(base, TunableEnv):
            order = to_plain(base.save_order(), "order")
            knobs = to_plain({name: value for name, value in base.read_knobs().items() if name not in base._held})
            running = to_plain(base.save_running(), type(base).__name__, copies=base.has_fixed_state)
        else:
            given = inspect.signature(type(base).__init__).parameters
            state = {name: value for name, value in episode_attributes(base).items() if name not in given}
            running = to_plain(state, type(base).__name__)
    except (NotPlainError, StateError) as error:
        reason = str(error)
    generator = getattr(base, "_np_random", None)
    return {
        "generator": to_plain(generator, "np_random") if isinstance(generator, np.random.Generator) else None,
        "seed": to_plain(base._np_random_seed),
        "order": order,
        "knobs": knobs,
        "running": running,
        "reason": reason,
        "layers": save_wrappers([layer for layer in layers(top) if layer is not base]),
    }


def save_wrappers(wrappers: list[gym.Env[Any, Any]]) -> dict[str, Any]:
    """Where wrappers stand, by class and number.

    Args:
        wrappers: the wrappers, from the outside to the inside.
    """
    return {
        name: to_plain(layer.save_own_progress(), name)
        if isinstance(layer, InternalWrapper)
        else save_attributes(layer)
        for name, layer in named_layers(wrappers).items()
    }


def named_layers(wrappers: list[Any]) -> dict[str, Any]:
    """Wrappers by their class, and their number among those of that class."""
    found: dict[str, Any] = {}
    for layer in wrappers:
        kind = type(layer).__name__
        found[f"{kind}#{sum(name.startswith(f'{kind}#') for name in found)}"] = layer
    return found


def load_layers(top: gym.Env[Any, Any], saved: Mapping[str, Any]) -> None:
    """Let an environment and all inside of it stand where others stood.

    Args:
        top: the environment, reset before.
        saved: from `save_layers`.

    Raises:
        ArgumentError: if the data is not as it was written.
    """
    base = top.unwrapped
    try:
        generator = from_plain(saved["generator"], "generator")
        order, knobs = from_plain(saved["order"], "order"), from_plain(saved["knobs"], "knobs")
        running = from_plain(saved["running"], "running")
        if generator is not None:
            base.np_random.bit_generator.state = generator.bit_generator.state
            base._np_random_seed = from_plain(saved["seed"], "seed")
        load_wrappers([layer for layer in layers(top) if layer is not base], saved["layers"])
        if isinstance(base, TunableEnv):
            now = base.read_knobs()
            changed = {name: value for name, value in knobs.items() if name in now and value != now[name]}
            if changed:
                base.set_knobs(changed)
            base.load_order(order)
        if running is not None and isinstance(base, TunableEnv):
            base.load_running(running)
        elif running is not None:
            vars(base).update(running)
    except DriftEnvsError:
        raise
    except _DAMAGE as error:
        raise ArgumentError(
            f"`saved` should be what `save_progress` returned: {type(error).__name__}: {error}"
        ) from error


def load_wrappers(wrappers: list[Any], saved: Mapping[str, Any]) -> None:
    """Let wrappers stand where others of their class stood; those without one stay as they are.

    Args:
        wrappers: the wrappers, from the outside to the inside.
        saved: from `save_wrappers`.
    """
    for name, layer in reversed(named_layers(wrappers).items()):
        if name not in saved:
            continue
        if isinstance(layer, InternalWrapper):
            layer.load_own_progress(from_plain(saved[name], name))
        else:
            load_attributes(layer, saved[name])


class ResumableWrapper(InternalWrapper):
    """A wrapper that a program reaches by its name in every form, and that loads and stores what is inside of it."""

    pending_progress: Any = None
    """From `save_progress`, for `load_progress`; set in each copy, before its reset too."""

    @property
    def env_identity(self) -> list[str]:
        """The class of the environment and its spaces, which have to be equal where it goes on."""
        return [type(self.unwrapped).__name__, f"{self.observation_space}, {self.action_space}"]

    def save_progress(self) -> dict[str, Any]:
        """Where this environment and all inside of it stand, as plain data; see `drift_envs.save_progress`."""
        return save_layers(self)

    def load_progress(self) -> str:
        """Go on where `pending_progress` stands, after a reset.

        Returns:
            What is wrong with the data, empty if nothing is: an exception would end the process of a copy.
        """
        saved, self.pending_progress = self.pending_progress, None
        try:
            load_layers(self, saved)
        except DriftEnvsError as error:
            return str(error)
        return ""

    def end_again(self) -> None:
        """Let the next step reset instead, and return the end of an episode if `pending_progress` says so.

        `AsyncVectorEnv` keeps in its processes which episodes have ended, and learns it by steps alone. Progress is
        loaded afterwards.
        """
        ended, self.pending_progress = bool(self.pending_progress), None

        def step(action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            del self.step
            observation, info = self.env.reset()
            return observation, 0.0, ended, False, info

        self.step = step  # type: ignore[method-assign]
