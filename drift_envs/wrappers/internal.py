"""What wrappers share: those that an environment's constructor adds, which its spec leaves out, and driven knobs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from enum import Enum
from typing import Any, TypeVar

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec
from gymnasium.wrappers import TimeLimit

from drift_envs.errors import ArgumentError, DrivenKnobError
from drift_envs.schedule import Schedule

W = TypeVar("W", bound="gym.Wrapper[Any, Any, Any, Any]")


def write_plain_arguments(spec: EnvSpec | None) -> EnvSpec | None:
    """Let the arguments of a spec be plain data, so that it can be written as JSON.

    Args:
        spec: the spec, which is changed.

    Returns:
        The same spec.
    """
    if spec is None:
        return None
    for name, value in spec.kwargs.items():
        if isinstance(value, os.PathLike):
            spec.kwargs[name] = os.fspath(value)
        elif isinstance(value, Schedule):
            spec.kwargs[name] = value.to_dict()
        elif isinstance(value, Enum):  # of autoresets
            spec.kwargs[name] = value.value
    return spec


class InternalWrapper(gym.Wrapper[Any, Any, Any, Any]):
    """A wrapper that `gymnasium.make` may or may not have to add again when it rebuilds from a spec.

    An id's entry point builds its wrappers itself. If they stood in the spec as well,
    `gymnasium.make(env.spec)` would compare them with the stored ones and refuse other arguments.
    """

    _is_built_in = False

    @property
    def spec(self) -> EnvSpec | None:  # type: ignore[override]
        """The environment's spec; without this wrapper if the environment's constructor adds it anyway."""
        if not self._is_built_in:
            return super().spec
        return write_plain_arguments(self.env.spec)

    def save_episode(self) -> Any:
        """This wrapper's part of the episode's state, as plain data; see `snapshot`."""
        return None

    def load_episode(self, saved: Any) -> None:
        """Restore the state of an episode.

        Args:
            saved: from `save_episode`.
        """

    def save_own_progress(self) -> Any:
        """Where this wrapper stands, for another process; what `to_plain` takes."""
        return self.save_episode()

    def load_own_progress(self, saved: Any) -> None:
        """Go on where another one stood.

        Args:
            saved: from `save_own_progress`.
        """
        self.load_episode(saved)


class KnobGuard(gym.Wrapper[Any, Any, Any, Any]):
    """Refuses to set an attribute with the name of a driven knob, on this wrapper and on all inside it.

    Set on the wrapper alone, the attribute would hide the knob. What changes at every step stands in an object of its
    own, since attributes of a guard are set slowly.
    """

    _driven: frozenset[str] = frozenset()

    @staticmethod
    def find_driven(env: gym.Env[Any, Any]) -> frozenset[str]:
        """The names that the guards of an environment refuse."""
        return frozenset().union(*(layer._driven for layer in layers(env) if isinstance(layer, KnobGuard)))

    def set_wrapper_attr(self, name: str, value: Any, *, force: bool = True) -> bool:
        """Set an attribute of this wrapper or of what it wraps.

        Args:
            name: the attribute.
            value: its value.
            force: whether to create it where it does not exist.

        Raises:
            DrivenKnobError: if the schedule drives that knob.
        """
        DrivenKnobError.refuse(self._driven, name, value)
        return super().set_wrapper_attr(name, value, force=force)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute of this wrapper, unless it is a driven knob."""
        DrivenKnobError.refuse(self._driven, name, value)
        super().__setattr__(name, value)


def layers(env: gym.Env[Any, Any]) -> Iterator[gym.Env[Any, Any]]:
    """An environment and everything inside of it, from the outside to the inside."""
    yield env
    while isinstance(env, gym.Wrapper):
        env = env.env
        yield env


def is_own(env: gym.Env[Any, Any]) -> bool:
    """Whether an environment and all its wrappers are of this package, and so check actions and pay plain numbers."""
    return all(type(layer).__module__.startswith("drift_envs.") for layer in layers(env))


def refuse_autoreset(env: gym.Env[Any, Any]) -> None:
    """Refuse Gymnasium's `Autoreset` inside of what counts or holds time: its resets do not pass the outer wrapper.

    Raises:
        ArgumentError: if there is one.
    """
    if any(isinstance(layer, gym.wrappers.Autoreset) for layer in layers(env)):
        raise ArgumentError(
            f"`env` should have no `Autoreset` inside, whose resets are no ticks: put it outside. Received {env}"
        )


def mark_internal(wrapper: Any) -> Any:
    """Mark a wrapper as put there by the environment's own constructor.

    Returns:
        The same wrapper.
    """
    wrapper._is_built_in = True
    return wrapper


def restore_time_limits(env: gym.Env[Any, Any], steps: int) -> None:
    """Let every `TimeLimit` around an environment whose `reset` was refused count on where it was.

    Gymnasium's wrapper sets its count to 0 before it resets what it wraps, and an environment does not know its
    wrappers: those that are resetting it stand on the stack.

    Args:
        steps: of the present episode.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None:
        frame = frame.f_back
        wrapper = frame.f_locals.get("self") if frame.f_code.co_name == "reset" else None
        if isinstance(wrapper, TimeLimit) and wrapper.unwrapped is env.unwrapped:
            wrapper._elapsed_steps = steps  # type: ignore[assignment]  # Gymnasium declares it `None`
