"""What is made of an id or a schedule, of this package or another; loaded when the first environment is made.

Each id of this package is an attribute of this module, which `gymnasium.make` calls; with the ending `_vector`, it is
what `gymnasium.make_vec` calls.
"""

from __future__ import annotations

import difflib
import importlib
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from traceback import walk_tb
from typing import Any

import gymnasium as gym
from gymnasium.vector import VectorEnv

from drift_envs.checks import check_flag
from drift_envs.errors import ArgumentError, DriftEnvsError, UnknownArgumentError, UnknownChoiceError
from drift_envs.knobs import KnobTable
from drift_envs.registration import IDS
from drift_envs.schedule.loader import load_schedule
from drift_envs.schedule.yaml import FILE_ENDINGS, shipped_schedules, split_suffix
from drift_envs.utils.error_messages import nearest
from drift_envs.wrappers.binding import knob_table
from drift_envs.wrappers.drift import Source
from drift_envs.wrappers.options import WrapperOptions

MOST_STEPS = 1000
"""The step limit of an environment of another package that has none."""

_Env = gym.Env[Any, Any]
_VECTOR = "_vector"
_OURS = ("drift_envs", "drift_agents", "webshop_server")


class EntryPoint:
    """Builds the environment of one id.

    Args:
        env_id: the id.
    """

    def __init__(self, env_id: str) -> None:
        self.env_id = env_id
        self._parts = IDS[env_id]

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata of the innermost environment: Gymnasium reads the render modes from the entry point."""
        return self._parts.env_class.metadata

    def __call__(
        self,
        *,
        render_mode: str | None = None,
        notify: str = "none",
        text: bool = False,
        overlay: bool | None = None,
        **arguments: Any,
    ) -> _Env:
        """Build the environment.

        Args:
            render_mode: `human`, `rgb_array`, `ansi` or `None`.
            notify: what `info["drift"]` contains: `none`, `change` or `full`.
            text: whether observations are texts, see `TextObservation`; those of shop, house and task pages are their
                own JSON states then, unless `observation_mode` is given.
            overlay: whether pictures show phase, tick and changes; by default those of `human` do, except for
                the shop's browser.
            **arguments: `schedule`: a shipped name (on a lake, `explicit` is short for `frozen_lake/explicit`), a path,
                a dictionary, a `Schedule`, or `None` for no drift;
                by default the id's own. The others are those of the innermost environment.

        Raises:
            UnknownArgumentError: if there is no such argument.
            ArgumentError: if the schedule sets the same as an argument, or `text` or `overlay` is no truth value.
            ScheduleError: if the schedule can't be used.
        """
        parts, schedule = self._parts, self._full_name(arguments.pop("schedule", self._parts.schedule))
        known = ("schedule", *parts.arguments, "render_mode", "notify", "text", "overlay")
        unknown = [name for name in arguments if name not in known]
        if unknown:
            rules = "; ".join(
                f"got an unexpected keyword argument '{name}'.{self._suggest(name, known)} "
                f"Received {name}={arguments[name]!r}"
                for name in unknown
            )
            raise UnknownArgumentError(f"{self.env_id} {rules}. Known: {', '.join(known)}")
        check_flag("text", text)
        if overlay is not None:
            check_flag("overlay", overlay)
        if parts.text_mode is not None:
            arguments = {"observation_mode": parts.text_mode, **arguments} if text else arguments
            text = False
        _silence_pygame(render_mode)
        options = WrapperOptions(notify, text, render_mode, overlay)
        env: _Env = parts.load("build")(parts, schedule, options, arguments)
        return env

    def _suggest(self, name: str, known: Iterable[str]) -> str:
        """Where an argument belongs that there is not, or what else was meant."""
        if name in self._parts.knob_table:
            example = f"schedule={{'version': 1, 'base': {{'{name}': ...}}}}"
            return f" It is a knob, which a schedule sets, as in {example}."
        if name == "autoreset_mode":
            return " Without a native vector form `gym.make_vec` takes it in `vector_kwargs`."
        close = difflib.get_close_matches(name, known, n=1)
        return f" Did you mean `{close[0]}`?" if close else ""

    def _full_name(self, schedule: Any) -> Any:
        """The full name of a shipped schedule, of which `explicit` and so on is the last part."""
        if not isinstance(schedule, str) or "/" in schedule or os.path.isfile(schedule):
            return schedule
        if split_suffix(schedule)[0].endswith(FILE_ENDINGS):
            return schedule
        full = f"{self._parts.schedule.partition('/')[0]}/{schedule}"
        is_file = any(os.path.isfile(f"{schedule}{ending}") for ending in FILE_ENDINGS)
        return schedule if is_file and full not in shipped_schedules() else full  # the message names the file

    def make_vector(self, num_envs: int = 1, **arguments: Any) -> VectorEnv[Any, Any, Any]:
        """Build the vector environment.

        Args:
            num_envs: the number of sub-environments.
            **arguments: those of the single environment, and `max_episode_steps`, `autoreset_mode`,
                `share_timeline`.

        Raises:
            ArgumentError: if there is no native vector environment.
        """
        if self._parts.vector is None:
            raise ArgumentError(f"`id` should have a native vector environment. Received {self.env_id!r}")
        from drift_envs.vector.base import make_vector

        return make_vector(self, self._parts.load("vector"), num_envs, **arguments)


def __getattr__(name: str) -> Any:
    """The entry point of an id, or the method that builds its vector environment."""
    env_id = name.removesuffix(_VECTOR)
    if env_id not in IDS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = EntryPoint(env_id)
    return found.make_vector if name.endswith(_VECTOR) else found


def make_from_schedule(
    schedule: Source,
    *,
    text: bool = False,
    render_mode: str | None = None,
    notify: str = "none",
    overlay: bool | None = None,
) -> _Env:
    """Make the environment that a schedule names, of this package or any other that is registered with Gymnasium.

    An id of another package that was registered without a step limit gets one of 1,000, so that every episode ends.
    `gym.make(env.spec)` makes an environment with the same drift.

    Args:
        schedule: what `load_schedule` takes; its `env` names the environment, as `CartPole-v1` or `my_package:Mine-v0`.
        text: whether observations are texts, see `TextObservation`.
        render_mode: a render mode of the environment, or `None`.
        notify: what `info["drift"]` contains: `none`, `change` or `full`.
        overlay: whether pictures show phase, tick and changes; by default those of `human` do.

    Raises:
        ArgumentError: if the schedule names no environment, or one that does not exist or cannot be made.
        ScheduleError: if the schedule can't be used.

    Example:
        >>> drift = {"at": 2, "set": {"masspole": 1}}
        >>> schedule = {"version": 1, "name": "heavy", "env": "CartPole-v1", "drifts": [drift]}
        >>> env = make_from_schedule(schedule, text=True)
        >>> _, info = env.reset(seed=0)
        >>> info["actions"]
        ['0', '1']
    """
    loaded = load_schedule(schedule, table=None)
    if loaded is None or not loaded.env:
        raise ArgumentError("`schedule` should name its environment under `env`")
    _silence_pygame(render_mode)
    options: dict[str, Any] = {"text": text, "render_mode": render_mode, "notify": notify, "overlay": overlay}
    if loaded.env in IDS:
        env: _Env = gym.make(loaded.env, schedule=schedule, **options)
        return env
    wrappers = WrapperOptions(**options)
    if isinstance(schedule, os.PathLike):
        schedule = os.fspath(schedule)  # so that the spec can be written as JSON
    folder = os.path.dirname(split_suffix(schedule)[0]) if isinstance(schedule, str) else None
    try:
        base = make_plain(loaded.env, wrappers.base_mode(loaded), folder)
    except ArgumentError as error:
        raise type(error)(f"`env` of {loaded.name}: {error}") from error
    try:
        return wrappers.wrap(base, schedule, is_built_in=False)
    except BaseException:
        base.close()
        raise


def make_plain(env_id: str, render_mode: str | None = None, folder: str | None = None) -> _Env:
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
        >>> make_plain("NoSuch-v0")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        drift_envs.errors.UnknownChoiceError: there is no environment `NoSuch-v0`: Environment `NoSuch` doesn't exist...
    """
    module, _, own_id = env_id.rpartition(":")
    try:
        if module:
            importlib.import_module(module)
        modes = None if render_mode is None else _render_modes(own_id)
        # `gymnasium.make` can show arrays in a window of its own
        if modes is not None and render_mode not in modes and (render_mode != "human" or "rgb_array" not in modes):
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
        advice = f"One that a module of yours registers is written `MODULE:{own_id}`"
        if module:  # its file may be another than was meant
            advice = f"It is not registered by {getattr(sys.modules[module], '__file__', None) or module}"
        raise UnknownChoiceError(f"there is no environment `{env_id}`: {_words(error)} {advice}") from error
    except Exception as error:  # whatever a module or a constructor of another package raises
        raise ArgumentError(f"{env_id} cannot be made: {describe_error(error) or _words(error)}") from error
    if env.spec is not None and env.spec.max_episode_steps is None:
        env = gym.wrappers.TimeLimit(env, MOST_STEPS)
    return env


def knob_table_of(env_id: str) -> KnobTable:
    """All knobs that a schedule may drive under an id of this package.

    Args:
        env_id: the id.

    Raises:
        UnknownChoiceError: if it is no id of this package.
        MissingDependencyError: if its extra is not installed.

    Example:
        >>> list(knob_table_of("DriftMountainCar-v0"))[:4]
        ['force', 'gravity', 'goal_position', 'transient']
        >>> knob_table_of("DriftFrozenLake-v0")["slip"].default
        0.0
    """
    check_id(env_id)
    parts = IDS[env_id]
    return knob_table(parts.env_class(**parts.fixed, **parts.with_schedule))


def check_id(env_id: str) -> None:
    """Refuse an id that is none of this package.

    Raises:
        UnknownChoiceError: if it is not in `IDS`.

    Example:
        >>> check_id("DriftFrozenLak-v0")
        Traceback (most recent call last):
        drift_envs.errors.UnknownChoiceError: there is no id 'DriftFrozenLak-v0' in drift-envs. Did you mean \
`DriftFrozenLake-v0`?
    """
    if env_id not in IDS:
        if ":" in env_id:
            raise UnknownChoiceError(f"should be an id of drift-envs itself. Received {env_id!r}")
        raise UnknownChoiceError(f"there is no id {env_id!r} in drift-envs. {nearest(env_id, IDS)}")


def module_to_import(env_id: str | None) -> str | None:
    """The module that an id names and that is not yet imported.

    Example:
        >>> module_to_import("thermo:Thermostat-v0"), module_to_import("CartPole-v1"), module_to_import("gymnasium:A")
        ('thermo', None, None)
    """
    module = (env_id or "").rpartition(":")[0]
    return None if not module or module in sys.modules else module


def folder_of(module: str, *places: str) -> str | None:
    """The first of some folders in which a module stands as a file or a folder, relative to the working directory."""
    for place in places:
        path = Path(place, *module.split("."))
        if path.is_dir() or path.with_suffix(".py").is_file():
            return os.path.relpath(place)
    return None


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


def _explain(env_id: str, error: ModuleNotFoundError, folder: str | None) -> str:
    """What to do about a module that cannot be imported: where it stands, or that it is not installed."""
    module, _, name = env_id.rpartition(":")
    if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
        return _words(error)
    place = folder_of(module, folder or ".", ".")
    if place is not None:
        return (
            f"the module `{module}` stands in {place!r}, which is not searched; a command takes `--import {place}`, a "
            f"program finds it by `PYTHONPATH`"
        )
    return f"there is no module `{module}`; install the package that registers `{name}`"


def _render_modes(env_id: str) -> list[str] | None:
    """The render modes that an environment's class declares; `None` where only a function is registered."""
    creator: Any = gym.spec(env_id).entry_point
    creator = gym.envs.registration.load_env_creator(creator) if isinstance(creator, str) else creator
    metadata = getattr(creator, "metadata", None)
    return list(metadata.get("render_modes") or ()) if isinstance(metadata, dict) else None


def _silence_pygame(render_mode: str | None) -> None:
    """Keep pygame's greeting, and what SDL says of missing sound and display, out of what programs print."""
    if render_mode == "rgb_array":
        os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
        os.environ.setdefault("SDL_AUDIODRIVER", "dummy")
        if sys.platform == "linux" and not {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys():
            os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
