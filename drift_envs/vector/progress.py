"""Where a training stands and where its time is moved, in every form of an environment.

A form is a single environment, a native vector environment, Gymnasium's `SyncVectorEnv` and `AsyncVectorEnv`, or a
`VecEnv` of Stable-Baselines3. What one copy stores is in `wrappers.progress`; this file reaches the copies.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv, VectorWrapper
from gymnasium.vector.utils import concatenate, iterate

from drift_envs.checks import check_integer
from drift_envs.errors import ArgumentError, DriftEnvsError, DriftWarning, StateError
from drift_envs.vector.base import DriftVectorEnv
from drift_envs.wrappers.clock import TimeMove
from drift_envs.wrappers.drift import DriftWrapper
from drift_envs.wrappers.internal import layers
from drift_envs.wrappers.plain_data import digest, from_plain, to_plain
from drift_envs.wrappers.progress import load_wrappers, save_wrappers

FORMAT = "drift-envs progress 1"
"""What every saved progress names, so that later versions can refuse or read it."""

REMOTE = {
    "TimeLimit": ("_elapsed_steps",),
    "RecordEpisodeStatistics": (
        *("return_queue", "episode_count", "episode_returns", "episode_lengths", "length_queue", "time_queue"),
    ),
    "Monitor": ("needs_reset", "rewards", "episode_returns", "episode_lengths", "episode_times", "total_steps"),
    "PhaseReturns": ("returns_progress",),
    "TextObservation": ("text_progress",),
}
"""The wrappers around a `DriftWrapper` that go on in processes of their own; the first name tells which it is."""

_SPACES = ("action_space", "observation_space", "single_action_space", "single_observation_space")


class Restored(NamedTuple):
    """Where a loop goes on.

    Args:
        observation: what `save_progress` was given, the last observation of a native vector environment, or the first
            one of the next episodes; `None` if it is not known.
        ended: whether the episode has ended, and the next step or reset begins the next one; an array for copies.
        is_next: whether all copies begin their next episode, since their running ones could not be stored.
    """

    observation: Any
    ended: Any
    is_next: bool


def save_progress(env: Any, observation: Any = None, ended: Any = None) -> dict[str, Any]:
    """Where an environment stands: time, schedule, generators, running episodes and the wrappers around it.

    The result is plain data for `json.dump`. Nothing changes in the environment.

    Args:
        env: a drifting environment, or a vector environment of such: native, Gymnasium's, or of Stable-Baselines3.
        observation: the last one that it returned, which `restore_progress` returns; native ones know it.
        ended: in a vector environment of Gymnasium's, `terminations | truncations` of the last step;
            `AsyncVectorEnv` alone needs it, in the autoreset mode `NextStep`.

    Raises:
        ArgumentError: if it does not drift, or `ended` is missing or not one truth value for each copy.
        StateError: before the first `reset`.

    Example:
        >>> import drift_envs
        >>> schedule = {"version": 1, "clock": "step", "drifts": [{"at": 50, "set": {"slip": 0.5}}]}
        >>> first, second = (gym.make("DriftFrozenLake-v0", schedule=schedule) for _ in range(2))
        >>> observation, _ = first.reset(seed=3)
        >>> observation = first.step(2)[0]
        >>> restored = restore_progress(second, save_progress(first, observation))
        >>> restored.observation == observation
        True
        >>> second.get_wrapper_attr("drift_state") == first.get_wrapper_attr("drift_state")
        True
        >>> all(first.step(action)[:3] == second.step(action)[:3] for action in (2, 1, 2, 1))
        True
    """
    form = _Form(env)
    saved: dict[str, Any] = {"format": FORMAT, **form.identity(), "layers": save_wrappers(form.outer)}
    if form.native is not None:
        saved["native"] = form.native.save_progress()
        if observation is None:
            observation = form.native.observe()
        ended = form.native.ended
    else:
        form.check_started()
        saved["copies"] = form.read_copies()
        observation, ended = form.last(observation, ended)
    ended = None if ended is None else form.check_ended(ended).tolist()
    saved |= {"spaces": _save_spaces(env), "observation": to_plain(observation, "observation"), "ended": ended}
    return {**saved, "digest": digest(saved)}


def restore_progress(env: Any, saved: Mapping[str, Any]) -> Restored:
    """Go on where `save_progress` was called, in this process or another one.

    Environments of this package, and others whose attributes are plain data, go on within their episode: all later
    steps are those of the environment that was saved. Others begin their next episode, with a warning.

    Args:
        env: an environment of the same kind, schedule and number of copies; what it did before is lost.
        saved: from `save_progress`, also after a conversion to JSON and back.

    Returns:
        The last observation, whether the episode had ended, and whether the next ones have begun.

    Raises:
        ArgumentError: if it is another environment, schedule, number of copies or autoreset mode, or the data is not
            as it was written; an environment that was reset before stands where it stood then.

    Warns:
        DriftWarning: if a running episode is no plain data, so that the next ones begin.
    """
    form = _Form(env)
    form.check(saved)
    try:
        before = save_progress(env, None, None if form.native else np.zeros(form.shape, bool))
    except StateError:
        before = None  # never reset
    try:
        return _restore(env, form, saved)
    except Exception as error:
        if before is not None:
            _restore(env, form, before)
        if isinstance(error, DriftEnvsError):
            raise
        if isinstance(error, (AttributeError, LookupError, TypeError, ValueError)):
            raise ArgumentError(
                f"`saved` should be what `save_progress` returned: {type(error).__name__}: {error}"
            ) from error
        raise


def _restore(env: Any, form: _Form, saved: Mapping[str, Any]) -> Restored:
    observation = from_plain(saved["observation"], "observation")
    ended = None if saved["ended"] is None else np.array(saved["ended"], bool)
    is_next = False
    if form.native is not None:
        form.native.load_progress(saved["native"])
    else:
        lost = [one["drift"]["reason"] for one in saved["copies"] if one["drift"]["running"] is None]
        form.write_copies(saved["copies"], None if lost else ended)
        is_next = bool(lost)
    load_wrappers(form.outer, saved["layers"])
    _load_spaces(env, saved["spaces"])
    if is_next:
        warnings.warn(
            f"the running episode could not be stored, the next one begins: {lost[0]}", DriftWarning, stacklevel=3
        )
        result = env.reset()
        observation = result if form.is_sb3 else result[0]
        ended = None if ended is None else np.zeros(form.shape, bool)
    elif form.native is None:
        form.set_last(observation, ended)
    return Restored(observation, bool(ended) if form.is_single else ended, is_next)


def is_at_beginning(env: Any) -> bool:
    """Whether no copy of a drifting environment has been stepped since its schedule began.

    Args:
        env: an environment in any form; false if it does not drift.
    """
    try:
        form = _Form(env)
    except ArgumentError:
        return False
    if form.native is not None:
        return form.native.steps == 0
    return all(state.episode == 0 and state.step == 0 for state in form.read("drift_state"))


def move_time(
    env: Any,
    tick: int | None = None,
    phase: str | None = None,
    hold: bool = False,
    copies: int | Sequence[int] | None = None,
) -> None:
    """Move time from the next episode on, also where an autoreset begins it; see `DriftWrapper.move_time`.

    Args:
        env: a drifting environment, or a vector environment of such in any form.
        tick: the tick of that episode.
        phase: instead, a phase, of which it is the first tick with full weight.
        hold: whether time stays there in all episodes until it is moved again; without any of these it goes on.
        copies: the index of a copy or several, by default all.

    Raises:
        ArgumentError: if the environment does not drift or an argument breaks a rule; no copy has changed then.

    Example:
        >>> import drift_envs
        >>> cars = gym.make_vec("DriftMountainCar-v0", num_envs=2, autoreset_mode="SameStep", max_episode_steps=1)
        >>> _ = cars.reset(seed=0)
        >>> move_time(cars, tick=9, hold=True, copies=1)
        >>> _ = cars.step(np.array([2, 2]))
        >>> [state.tick for state in cars.get_attr("drift_state")]
        [1, 9]
    """
    form = _Form(env)
    chosen = range(form.number) if copies is None else copies if isinstance(copies, Iterable) else [copies]
    chosen = [check_integer("copies", one, 0, form.number - 1) for one in chosen]
    moves, timelines = form.read("time_move"), form.read("timeline")
    for one in chosen:
        moves[one] = TimeMove.of(tick, phase, hold, timelines[one].first_tick)
    form.write("time_move", moves)


class _Form:
    """The copies of an environment in its form, and the wrappers around them.

    Args:
        env: the environment.

    Raises:
        ArgumentError: if it is none of the forms, or does not drift.
    """

    def __init__(self, env: Any) -> None:
        self.outer: list[Any] = []
        self.native: DriftVectorEnv | None = None
        self.local: list[gym.Env[Any, Any]] | None = None
        self.mode: str | None = None
        base = env
        while isinstance(base, VectorWrapper) or hasattr(base, "venv"):
            self.outer.append(base)
            base = base.env if isinstance(base, VectorWrapper) else base.venv
        self.base: Any = base
        self.is_single = isinstance(base, gym.Env)
        self.is_sb3 = hasattr(base, "env_method")
        inner = getattr(base, "envs", None)
        if isinstance(base, DriftVectorEnv):
            self.native = base
        elif self.is_sb3 and isinstance(inner, DriftVectorEnv):
            self.native = inner
            self.outer.append(base)  # it counts the running episodes
        elif self.is_single:
            self.local = [base]
        elif isinstance(base, SyncVectorEnv) or (self.is_sb3 and isinstance(inner, list)):
            self.local = list(base.envs)
        elif not (self.is_sb3 or isinstance(base, AsyncVectorEnv)):
            raise ArgumentError(
                "`env` should be a drifting environment, or a vector environment of `gym.make_vec`, Gymnasium or "
                f"Stable-Baselines3. Received {env!r}"
            )
        self.number: int = 1 if self.is_single else base.num_envs
        self.shape = () if self.is_single else (self.number,)
        if isinstance(base, VectorEnv):
            self.mode = AutoresetMode(base.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)).value
        elif self.is_sb3:
            self.mode = AutoresetMode.SAME_STEP.value
        if self.native is None and not all(self._call("has_wrapper_attr", "load_progress")):
            raise ArgumentError(f"`env` should have a `DriftWrapper` inside. Received {env!r}")

    def _call(self, name: str, *arguments: Any) -> list[Any]:
        """What a method of each copy returns."""
        if self.local is not None:
            return [env.get_wrapper_attr(name)(*arguments) for env in self.local]
        if self.is_sb3:
            return list(self.base.env_method(name, *arguments))
        return list(self.base.call(name, *arguments))

    def read(self, name: str) -> list[Any]:
        """An attribute of each copy."""
        if self.native is not None:
            return [getattr(env, name) for env in self.native.envs]
        if self.local is not None:
            return [env.get_wrapper_attr(name) for env in self.local]
        return list(self.base.get_attr(name))

    def write(self, name: str, values: Sequence[Any]) -> None:
        """Set an attribute of each copy, where it stands."""
        if self.native is not None:
            for native, value in zip(self.native.envs, values, strict=True):
                setattr(native, name, value)
        elif self.local is not None:
            for env, value in zip(self.local, values, strict=True):
                env.set_wrapper_attr(name, value)
        elif self.is_sb3:
            for index, value in enumerate(values):
                self.base.env_method("set_wrapper_attr", name, value, indices=[index])
        else:
            self.base.set_attr(name, list(values))

    def identity(self) -> dict[str, Any]:
        """What must be equal where progress is restored."""
        schedules = [None if one is None else one.content_hash() for one in self.read("schedule")]
        names = ["none" if one is None else one.name for one in self.read("schedule")]
        bases = (
            [self.native.single_env.env_identity] * self.number
            if self.native is not None
            else self.read("env_identity")
        )
        return {
            "form": "native" if self.native is not None else "single" if self.is_single else "copies",
            "num_envs": self.number,
            "autoreset_mode": self.mode,
            "env": bases,
            "schedule": [list(pair) for pair in zip(names, schedules, strict=True)],
        }

    def check(self, saved: Any) -> None:
        """Refuse what was saved elsewhere.

        Raises:
            ArgumentError: names what differs.
        """
        if not isinstance(saved, Mapping) or saved.get("format") != FORMAT:
            found = saved.get("format") if isinstance(saved, Mapping) else type(saved).__name__
            raise ArgumentError(f"`saved` should be of the format {FORMAT!r}. Received {found!r}")
        own = self.identity()
        rules = {
            "form": "saved in the form of `env`",
            "num_envs": "of the same number of copies",
            "autoreset_mode": "of the same autoreset mode",
            "env": "of the same environment",
            "schedule": "of the same schedule",
        }
        for name, rule in rules.items():
            if saved.get(name) != own[name]:
                raise ArgumentError(f"`saved` should be {rule}: {_compare(own[name], saved.get(name))}")
        found = digest({name: value for name, value in saved.items() if name != "digest"})
        if found != saved.get("digest"):
            raise ArgumentError(
                f"`saved` should be what `save_progress` returned, of the digest {saved.get('digest')!r}. "
                f"Received data of the digest {found!r}: it was changed"
            )

    def check_started(self) -> None:
        """Raise the error of a copy that was never reset, in this process."""
        for steps in self.read("rewinds"):
            if not steps:
                raise StateError("progress was saved before `reset`; call `reset` first")

    def check_ended(self, ended: Any) -> np.ndarray:
        """The ended episodes as booleans, of shape `(N,)`, or `()` for a single environment."""
        found = np.asarray(ended)
        if found.shape != self.shape or found.dtype.kind not in "biuf" or not np.isin(found, (0, 1)).all():
            each = "true or false" if self.is_single else f"{self.number} truth values, one for each copy"
            raise ArgumentError(f"`ended` should be {each}. Received {ended!r}")
        return found.astype(bool)

    def read_copies(self) -> list[dict[str, Any]]:
        """Where each copy stands."""
        inside = self._call("save_progress")
        if self.local is not None:
            around = [save_wrappers(list(_around(env))) for env in self.local]
        else:
            around = [{} for _ in inside]
            for kind, names in REMOTE.items():
                if all(self._call("has_wrapper_attr", names[0])):
                    columns = [self.read(name) for name in names]
                    for found, values in zip(around, zip(*columns, strict=True), strict=True):
                        found[f"{kind}#0"] = {
                            name: to_plain(value, name, copies=True) for name, value in zip(names, values, strict=True)
                        }
        return [{"drift": one, "around": other} for one, other in zip(inside, around, strict=True)]

    def write_copies(self, saved: Sequence[Mapping[str, Any]], ended: np.ndarray | None) -> None:
        """Let each copy stand where another one stood."""
        keys = [one["drift"]["layers"]["DriftWrapper#0"]["key"] for one in saved]
        keys = [check_integer("key", key) for key in keys]
        self.write("pending_progress", [True] * self.number)  # the reset is no rewind to warn of
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DriftWarning)  # of a schedule further inside
            if isinstance(self.base, VectorEnv):
                self.base.reset(seed=keys)  # type: ignore[arg-type]
            elif self.local is not None:
                for env, key in zip(self.local, keys, strict=True):
                    env.reset(seed=key)
            else:
                for index, key in enumerate(keys):
                    self.base.env_method("reset", seed=key, indices=[index])
        if isinstance(self.base, AsyncVectorEnv) and self._is_late and ended is not None and ended.any():
            self.write("pending_progress", ended.tolist())
            self._call("end_again")
            self.base.step(copy.deepcopy(self.base.action_space).sample())
        self.write("pending_progress", [one["drift"] for one in saved])
        errors = [(index, text) for index, text in enumerate(self._call("load_progress")) if text]
        if errors:
            index, text = errors[0]
            raise ArgumentError(text if self.is_single else f"copy {index}: {text}")
        self._write_around(saved)
        if self.is_sb3:
            self.base._reset_seeds()  # `load` of a model seeds the next reset
            self.base._reset_options()

    def _write_around(self, saved: Sequence[Mapping[str, Any]]) -> None:
        if self.local is not None:
            for env, one in zip(self.local, saved, strict=True):
                load_wrappers(list(_around(env)), one["around"])
            return
        for kind, names in REMOTE.items():
            key = f"{kind}#0"
            if all(key in one["around"] for one in saved) and all(self._call("has_wrapper_attr", names[0])):
                for name in names:
                    self.write(name, [from_plain(one["around"][key][name], name) for one in saved])

    def last(self, observation: Any, ended: Any) -> tuple[Any, Any]:
        """The last observation and the ended episodes, as far as the form knows them."""
        base = self.base
        if isinstance(base, SyncVectorEnv):
            observation = base._observations if observation is None else observation
            return copy.deepcopy(observation), base._autoreset_envs.copy() if self._is_late else ended
        if isinstance(base, AsyncVectorEnv) and self._is_late and ended is None:
            raise ArgumentError(
                "`ended` should be `terminations | truncations` of the last step, since AsyncVectorEnv does not say "
                "which episodes have ended. Received None"
            )
        return observation, ended

    @property
    def _is_late(self) -> bool:
        return self.mode == AutoresetMode.NEXT_STEP.value

    def set_last(self, observation: Any, ended: np.ndarray | None) -> None:
        """Let Gymnasium's vector environments have this observation and these ended episodes."""
        base = self.base
        if observation is not None and isinstance(base, (SyncVectorEnv, AsyncVectorEnv)):
            each = [copy.deepcopy(one) for one in iterate(base.observation_space, observation)]
            if isinstance(base, SyncVectorEnv):
                base._env_obs = each
                base._observations = concatenate(base.single_observation_space, each, base._observations)
            elif base.shared_memory:  # which a `reset` of some copies returns for the others
                concatenate(base.single_observation_space, each, base.observations)
        if isinstance(base, SyncVectorEnv) and ended is not None and self._is_late:
            base._autoreset_envs = ended.copy()


def _around(env: gym.Env[Any, Any]) -> Iterator[gym.Env[Any, Any]]:
    """The wrappers around the `DriftWrapper`, which stores what is inside of it."""
    for layer in layers(env):
        if isinstance(layer, DriftWrapper):
            return
        yield layer


def _compare(own: Any, other: Any) -> str:
    """The first difference of two parts of the identity, for a message."""
    while isinstance(own, list) and isinstance(other, list) and len(own) == len(other):
        own, other = next((pair for pair in zip(own, other, strict=True) if pair[0] != pair[1]), (own, other))
    return f"`env` has {own!r}. Received {other!r}"


def _generators(space: Any) -> Iterator[np.random.Generator]:
    """The generators of a space and of its parts that have been used."""
    if getattr(space, "_np_random", None) is not None:
        yield space._np_random
    parts = getattr(space, "spaces", ())
    for part in parts.values() if isinstance(parts, Mapping) else parts:
        yield from _generators(part)


def _save_spaces(env: Any) -> dict[str, list[Any]]:
    found = {name: list(_generators(getattr(env, name, None))) for name in _SPACES}
    return {name: [to_plain(one, name) for one in generators] for name, generators in found.items()}


def _load_spaces(env: Any, saved: Mapping[str, Any]) -> None:
    for name in _SPACES:
        states = [from_plain(one, name) for one in saved[name]]
        space: Any = getattr(env, name, None)
        if states and not list(_generators(space)):
            space.seed(0)
        for generator, state in zip(_generators(space), states, strict=False):
            generator.bit_generator.state = state.bit_generator.state
