"""Environments of other packages: how they are made, and whose their exceptions are.

* `make_plain` - an environment of another package, without a drift
* `describe_error` - an exception of another package in one line
* `module_to_import` - the module that an id names, if it is not yet imported
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from traceback import walk_tb
from typing import Any

import gymnasium as gym

from drift_envs.errors import ArgumentError, DriftEnvsError, UnknownChoiceError

MOST_STEPS = 1000
"""The step limit of an environment of another package that has none."""

_OURS = ("drift_envs", "drift_agents", "webshop_server")


def make_plain(env_id: str, render_mode: str | None = None, folder: str | None = None) -> gym.Env[Any, Any]:
    """Make an environment that is registered with Gymnasium, without a drift.

    An id that was registered without a step limit gets `MOST_STEPS`, so that every episode ends.

    Args:
        env_id: its id, as `CartPole-v1` or `my_package:Mine-v0`.
        render_mode: a render mode; `None` passes none, since not every constructor takes one.
        folder: the folder of the schedule's file, where a missing module may stand.

    Raises:
        UnknownChoiceError: if there is no such environment.
        ArgumentError: if it cannot be made, or has no such render mode.

    Example:
        >>> make_plain("NoSuch-v0")
        Traceback (most recent call last):
        drift_envs.errors.UnknownChoiceError: there is no environment `NoSuch-v0`: Environment `NoSuch` doesn't exist.
    """
    module, _, own_id = env_id.rpartition(":")
    try:
        if module:
            importlib.import_module(module)
        modes = None if render_mode is None else _render_modes(own_id)
        if render_mode is not None and modes is not None and not _can_render(render_mode, modes):
            known = ", ".join(modes) or "none"
            raise ArgumentError(
                f"`render_mode` of {env_id} should be one of its own: {known}. Received {render_mode!r}"
            )
        env = gym.make(env_id) if render_mode is None else gym.make(env_id, render_mode=render_mode)
    except DriftEnvsError:
        raise
    except ModuleNotFoundError as error:
        raise UnknownChoiceError(f"there is no environment `{env_id}`: {_explain(env_id, error, folder)}") from error
    except gym.error.UnregisteredEnv as error:
        raise UnknownChoiceError(f"there is no environment `{env_id}`: {_words(error)}") from error
    except Exception as error:  # whatever a module or a constructor of another package raises
        raise ArgumentError(f"{env_id} cannot be made: {describe_error(error) or _words(error)}") from error
    if env.spec is not None and env.spec.max_episode_steps is None:
        env = gym.wrappers.TimeLimit(env, MOST_STEPS)
    return env


def module_to_import(env_id: str | None) -> str | None:
    """The module that an id names and that is not yet imported.

    Example:
        >>> module_to_import("thermo:Thermostat-v0"), module_to_import("CartPole-v1"), module_to_import("gymnasium:A")
        ('thermo', None, None)
    """
    module = (env_id or "").rpartition(":")[0]
    return None if not module or module in sys.modules else module


def describe_error(error: BaseException) -> str | None:
    """An exception of another package in one line, with the name of the package.

    Args:
        error: an exception that came out of an environment, or out of `gymnasium.make`.

    Returns:
        The line; `None` if the exception is raised by this package's own code, or came from elsewhere.
    """
    cause = error.__cause__
    if isinstance(error, TypeError) and isinstance(cause, TypeError):  # `gymnasium.make` adds all arguments to it
        return describe_error(cause)
    inside, package = False, None
    for frame, _ in walk_tb(error.__traceback__):
        module = str(frame.f_globals.get("__name__", ""))
        root = module.partition(".")[0]
        if root in _OURS:
            inside, package = False, None
            continue
        inside = inside or isinstance(frame.f_locals.get("self"), gym.Env) or module.startswith("gymnasium.envs.")
        if package is None and root not in ("gymnasium", *sys.stdlib_module_names):
            package = root
    return f"{package or 'gymnasium'}: {_words(error)}" if inside else None


def _words(error: BaseException) -> str:
    """An exception in one line."""
    text = " ".join(str(error).split())
    return text if isinstance(error, gym.error.Error) and text else f"{type(error).__name__}{': ' * bool(text)}{text}"


def _render_modes(env_id: str) -> list[str] | None:
    """The render modes that an environment's class declares; `None` where only a function is registered."""
    creator: Any = gym.spec(env_id).entry_point
    creator = gym.envs.registration.load_env_creator(creator) if isinstance(creator, str) else creator
    metadata = getattr(creator, "metadata", None)
    return list(metadata.get("render_modes") or ()) if isinstance(metadata, dict) else None


def _can_render(mode: str, modes: list[str]) -> bool:
    """Whether `gymnasium.make` can provide a render mode; it shows arrays in a window of its own."""
    return mode in modes or (mode == "human" and "rgb_array" in modes)


def _explain(env_id: str, error: ModuleNotFoundError, folder: str | None) -> str:
    """What to do about a module that cannot be imported: where it stands, or that it is not installed."""
    module, _, name = env_id.rpartition(":")
    if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
        return _words(error)
    for place in dict.fromkeys((folder or ".", ".")):
        path = Path(place, *module.split("."))
        if path.is_dir() or path.with_suffix(".py").is_file():
            return (
                f"the module `{module}` stands in {os.path.relpath(place)!r}, which is not searched; a command takes "
                f"`--import {os.path.relpath(place)}`, a program finds it by `PYTHONPATH`"
            )
    return f"there is no module `{module}`; install the package that registers `{name}`"
