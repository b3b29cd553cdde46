"""Probing and going back: a second instance of a drifting environment that follows its drift, and exact states.

A twin hides the truth from its holder; a snapshot is for references and evaluators alone, since no agent can go back.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NoReturn, TypeVar

import gymnasium as gym
import numpy as np

from drift_envs.attributes.shared_parts import copy_parts, rebind
from drift_envs.checks import check_single
from drift_envs.errors import ArgumentError, DriftEnvsError, HiddenError, StateError
from drift_envs.tunable import TunableEnv
from drift_envs.wrappers.drift import DriftWrapper, find_drift
from drift_envs.wrappers.effects import Effects
from drift_envs.wrappers.internal import InternalWrapper, layers
from drift_envs.wrappers.progress import episode_attributes

T = TypeVar("T")

HIDDEN = frozenset(
    {
        "drift_log",
        "drift_state",
        "knobs_at",
        "np_random",
        "np_random_seed",
        "oracle",
        "phase",
        "schedule",
        "timeline",
    }
)
"""Attributes that are hidden from the holder of a twin."""

_TWIN_TAG = 0x7717
"""Sets the streams of twins apart from all other streams of the same seed."""


def twin(env: gym.Env[Any, Any], stream: int = 0) -> Twin:
    """A second instance of a drifting environment that follows its drift.

    The twin has the knobs that the environment has at that moment, whenever it resets or steps; its own
    steps do not move time. What happens in it, and which random numbers it draws, are its own, except
    that its visits of places count in the environment (`drift_envs.tunable`); a shopper in it has the
    same instruction. It has the environment's text form and all wrappers inside of the outermost one that changes
    spaces, such as a text form of one's own; those around it, such as a step limit, it has not.

    Args:
        env: an environment with a `DriftWrapper` in it.
        stream: the number of the twin: those of equal number draw the same random numbers, and
            draw them again when the environment is seeded again.

    Raises:
        ArgumentError: if there is no `DriftWrapper` in the environment, or it cannot be copied.

    Example:
        >>> from drift_envs.envs import FrozenLake
        >>> schedule = {"version": 1, "name": "b", "drifts": [{"at": 1, "set": {"map": ["SG"]}}]}
        >>> env = DriftWrapper(FrozenLake(is_slippery=False, show_prob=False, room_for=[(1, 2)]), schedule)
        >>> _ = env.reset(seed=0)
        >>> _ = env.reset()
        >>> second = twin(env)
        >>> _ = second.reset()
        >>> second.step(2)
        (1, 1, True, False, {})
        >>> env.drift_state.step
        0
    """
    return Twin(env, stream)


class Twin(gym.Env[Any, Any]):
    """An environment without the truth; built by `twin`.

    Args:
        env: the environment that is followed.
        stream: the number of the twin.
    """

    def __init__(self, env: gym.Env[Any, Any], stream: int = 0) -> None:
        if isinstance(stream, bool) or not isinstance(stream, int) or stream < 0:
            raise ArgumentError(f"`stream` should be a whole number, at least 0. Received {stream!r}")
        check_single(env)
        leader = find_drift(env)
        if leader is None:
            raise ArgumentError(f"`env` should have a `DriftWrapper` in it. Received {env}")
        top = next(layer for layer in layers(env) if layer is leader or _shows_otherwise(layer))
        # The timeline is a pure function and may hold much: it is shared, not copied.
        memo: dict[int, Any] = {id(leader.timeline): leader.timeline}
        inner: gym.Env[Any, Any] = _copied(env, copy.deepcopy, top, memo)
        if top is not leader:
            rebind(layers(inner), memo)
        inner.unwrapped.render_mode = None
        follower = next(layer for layer in layers(inner) if isinstance(layer, DriftWrapper))
        follower.follow(leader)
        base = inner.unwrapped
        if isinstance(base, TunableEnv) and isinstance(leader.unwrapped, TunableEnv):
            base.share_world(leader.unwrapped)
        self.__leader = leader
        self.__inner = inner
        self.__stream = stream
        self.__seeded = 0
        self.__ready = False
        self.action_space = inner.action_space
        self.observation_space = inner.observation_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in the present environment.

        Args:
            seed: must not be given.
            options: must not be given.

        Raises:
            ArgumentError: if a seed or options are given.
            StateError: if the environment that is followed was never reset.
        """
        if seed is not None or options:
            given = f"seed={seed!r}" if seed is not None else f"options={options!r}"
            raise ArgumentError(f"a twin should be reset without seed and options. Received {given}")
        if not self.__leader.rewinds:
            raise StateError("a twin was reset before its environment; reset the environment first")
        own = None
        if self.__seeded != self.__leader.rewinds:
            self.__seeded = self.__leader.rewinds
            own = self.__leader.derive_seed(_TWIN_TAG, self.__stream)
        self.__ready = True
        base = self.__leader.unwrapped
        task = base.task_options() if isinstance(base, TunableEnv) else None
        return self.__inner.reset(seed=own, options=task)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step in the present environment; its time stands still meanwhile.

        Args:
            action: as in the environment that is followed.

        Raises:
            StateError: before the first `reset`.
        """
        if not self.__ready:
            raise StateError("`step` was called before `reset`; call `reset` first")
        return self.__inner.step(action)

    @property
    def is_ready(self) -> bool:
        """Whether it was reset."""
        return self.__ready

    def render(self) -> NoReturn:
        """A twin has no picture.

        Raises:
            StateError: always.
        """
        raise StateError("a twin has no picture; render its environment")

    def close(self) -> None:
        """Close the second instance."""
        self.__inner.close()

    def __getattribute__(self, name: str) -> Any:
        """Refuse the attributes in `HIDDEN`."""
        if name in HIDDEN:
            raise HiddenError(
                f"`{name}` is hidden from the holder of a twin; evaluators read it from the environment itself"
            )
        return super().__getattribute__(name)

    def __str__(self) -> str:
        return f"<Twin{self.__inner}>"


def _shows_otherwise(layer: gym.Env[Any, Any]) -> bool:
    """Whether a wrapper changes the spaces of what it wraps."""
    if not isinstance(layer, gym.Wrapper):
        return False
    inner = layer.env
    return layer.observation_space != inner.observation_space or layer.action_space != inner.action_space


def inside(env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    """The second instance behind a twin, or the environment itself if it is none. For evaluators: `snapshot` needs it.

    Args:
        env: a twin or any other environment.
    """
    return env._Twin__inner if isinstance(env, Twin) else env


def snapshot(env: gym.Env[Any, Any]) -> Snapshot:
    """Save the state of an episode: the environment's state, the score so far and the random generator.

    Drift time, knobs and step limits are not part of it: the state is restored into the environment as it
    is then. An agent can't reach exact states by acting, so this is for references and evaluators.

    Args:
        env: the environment, or a twin.

    Raises:
        ArgumentError: if the state of the environment cannot be copied.
        StateError: before the first `reset`.

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


def _copied(env: gym.Env[Any, Any], make: Callable[..., T], *arguments: Any) -> T:
    """A copy of an environment or its state; attributes of other packages may refuse it in any words."""
    try:
        return make(*arguments)
    except DriftEnvsError:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise ArgumentError(
            f"`env` should be one that can be copied. {type(env.unwrapped).__name__}: {reason}"
        ) from error


class Snapshot:
    """The saved state of an episode; built by `snapshot`.

    Args:
        env: the environment, or a twin.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        check_single(env)
        inner = inside(env)
        drifting = find_drift(inner)
        if drifting is not None and not (drifting.rewinds or (isinstance(env, Twin) and env.is_ready)):
            raise StateError("`snapshot` was called before `reset`; call `reset` first")
        self._env = env
        base = inner.unwrapped
        self._kind = type(base)
        self._base = base  # parts of the state may refer to it
        state = base.save_state() if isinstance(base, TunableEnv) else episode_attributes(base)
        self._state = _copied(base, copy_parts, state, {id(base): base})
        self._random = [copy.deepcopy(generator.bit_generator.state) for generator in _generators_of(inner)]
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
        check_single(target, "into")
        if isinstance(target, Twin) and not target.is_ready:
            raise StateError("a state was restored into a twin before its first `reset`; call `reset` first")
        inner = inside(target)
        base = inner.unwrapped
        if type(base) is not self._kind:
            raise ArgumentError(f"`into` should be a {self._kind.__name__}. Received {type(base).__name__}")
        drifting = find_drift(inner)
        with nullcontext() if drifting is None else drifting.unchanged():
            copied = copy_parts(self._state, {id(self._base): base})
            if isinstance(base, TunableEnv):
                base.load_state(copied)
            else:
                vars(base).update(copied)
        if target is self._env:
            for generator, state in zip(_generators_of(inner), self._random, strict=False):
                generator.bit_generator.state = copy.deepcopy(state)
        for name, layer in _layers_of(inner).items():
            if name in self._episode:
                layer.load_episode(copy.deepcopy(self._episode[name]))


def _layers_of(env: gym.Env[Any, Any]) -> dict[str, InternalWrapper]:
    """The wrappers of this package in an environment, by class."""
    return {type(layer).__name__: layer for layer in layers(env) if isinstance(layer, InternalWrapper)}


def _generators_of(env: gym.Env[Any, Any]) -> list[np.random.Generator]:
    """The random generator of an environment, and that of the noise of its observations."""
    effects = [layer.noise for layer in layers(env) if isinstance(layer, Effects)]
    return [env.unwrapped.np_random, *(noise for noise in effects if noise is not None)]
