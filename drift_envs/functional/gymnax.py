"""Drift for environments of gymnax: their parameters change by a schedule.

gymnax itself is not imported: an environment is whatever has `step_env`, `reset_env`, `is_truncated` and
`default_params`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from drift_envs.attributes.declarations import ACROBOT, CARTPOLE, PENDULUM, AttributeKnob, DerivedAttribute
from drift_envs.attributes.knobs import AttributeKnobs
from drift_envs.checks import is_number
from drift_envs.errors import ArgumentError
from drift_envs.functional.base import batch_axis, load_schedules
from drift_envs.functional.compiler import DriftParams, compile_schedules
from drift_envs.functional.drift_state import DriftCarry, follow_clock, name_values, object_of, start_drift
from drift_envs.knobs import KnobTable, Value
from drift_envs.schedule.loader import Source, load_schedule
from drift_envs.schedule.model import Knobs
from drift_envs.wrappers.binding import declared_knobs
from drift_envs.wrappers.effects import permutation_knob

Attributes = Sequence[str] | Mapping[str, tuple[float, float] | None] | None
"""Names of parameters, or names with their lowest and highest values."""

_NEEDED = ("step_env", "reset_env", "is_truncated", "default_params")
_PERMUTATION = "action_permutation"
_DRIFT_STREAM = 0xD21F  # folded into the key of `reset`: the environment gets the key itself, as in gymnax


@dataclasses.dataclass(frozen=True)
class DriftedParams:
    """The parameters of a drifting environment. They also have the attributes of the environment's own, undrifted.

    Args:
        env: the environment's own parameters; those that a schedule drives are replaced at each step.
        drift: the schedule.
        values: for each driven knob that is no number, its values in the order of their indices.
        driven: the knobs that a schedule of the batch drives.
    """

    env: Any
    drift: DriftParams
    values: dict[str, Any]
    driven: tuple[str, ...]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in DriftedParams.__dataclass_fields__:
            raise AttributeError(name)
        return getattr(self.env, name)

    def replace(self, **changes: Any) -> DriftedParams:
        """A copy with other values of the environment's own parameters, as `replace` of gymnax's parameters.

        Args:
            changes: values by name.
        """
        return dataclasses.replace(self, env=dataclasses.replace(self.env, **changes))


jax.tree_util.register_dataclass(DriftedParams, ["env", "drift", "values"], ["driven"])


class DriftedState(NamedTuple):
    """The state between two steps.

    Args:
        drift: tick and knob values of the next step.
        env: the environment's own state.
    """

    drift: DriftCarry
    env: Any


def drift(env: Any, schedule: Source = None, attributes: Attributes = None, *, ticks: int | None = None) -> DriftedEnv:
    """Make a drifting environment of one of gymnax.

    Knobs are fields of the environment's `EnvParams`, and `action_permutation` where actions are discrete. Derived
    fields are recomputed: those that the section `knobs` of the schedule names, and the masses, lengths and centres of
    CartPole and Acrobot.

    Args:
        env: an environment of gymnax 1.0 or later, without a wrapper; wrappers go around the result.
        schedule: a shipped name, a path, a dictionary, a `Schedule`, or `None` for no drift.
        attributes: the fields that schedules may drive, and their bounds if it is a mapping: numbers, and arrays of
            numbers; by default all numbers, with the names and bounds of Gymnasium's environment of the same fields, if
            there is one (`torque` of Acrobot is a factor of an array). The section `knobs` of the schedule is added.
        ticks: compute so many ticks of the schedule ahead, see `FunctionalEnv.params`.

    Raises:
        ArgumentError: if `env` is no such environment, or an attribute is no number or array of its parameters, or the
            schedule draws anew for each of several occurrences and `ticks` is absent.
        ScheduleError: if the schedule can't be used.

    Example:
        >>> import gymnax  # doctest: +SKIP
        >>> cartpole, _ = gymnax.make("CartPole-v1")  # doctest: +SKIP
        >>> rises = {"at": 100, "kind": "incremental", "over": 500, "set": {"length": 1.5}}
        >>> env = drift(cartpole, {"version": 1, "clock": "step", "drifts": [rises]}, ["length"])  # doctest: +SKIP
        >>> observation, state = env.reset(jax.random.key(0), env.default_params)  # doctest: +SKIP
    """
    missing = [name for name in _NEEDED if not hasattr(type(env), name)]
    if missing:
        raise ArgumentError(
            f"`env` should be an environment of gymnax 1.0 or later without a wrapper, with {', '.join(_NEEDED)}. "
            f"Received {type(env).__name__} without {', '.join(missing)}"
        )
    return DriftedEnv(env, schedule, attributes, ticks)


class DriftedEnv:
    """An environment of gymnax whose parameters drift; made by `drift`.

    It has gymnax's `reset` and `step`, and all other attributes of the environment. Without drift, equal keys give
    gymnax's own trajectories. `step` begins the next episode by itself where one ends, with the parameters of the
    next tick, and the drift goes on.

    Args:
        env: see `drift`.
        schedule: see `drift`.
        attributes: see `drift`.
        ticks: see `drift`.

    Attributes:
        knobs: the knobs that schedules may drive.
        default_params: the environment's default parameters, with the schedule.
    """

    def __init__(self, env: Any, schedule: Source, attributes: Attributes, ticks: int | None = None) -> None:
        self._env = env
        fields = _numbers(env.default_params)
        chosen, followers = _known_knobs(fields, attributes)
        self._actions: Any = getattr(env.action_space(env.default_params), "n", None)

        def bind(content: Mapping[str, Any]) -> Any:
            section = content.get("knobs")
            declared, derived = declared_knobs(None if section is None else Knobs.model_validate(section))
            own = {attribute.name for attribute in declared}
            knobs = (*(attribute for attribute in chosen if attribute.name not in own), *declared)
            return self._bind(fields, knobs, (*followers, *derived))

        if schedule is None:
            bind({})
        else:
            loaded = load_schedule(schedule)
            schedule = load_schedule(loaded.to_dict(), table=bind)
        self.default_params = self.params(schedule, ticks=ticks)

    def _bind(
        self,
        fields: dict[str, Any],
        attributes: Sequence[AttributeKnob],
        followers: Sequence[DerivedAttribute],
    ) -> Any:
        self._attributes = {}
        for attribute in attributes:
            if attribute.path not in fields:
                raise _unknown(fields, attribute.name)
            kind = attribute.kind or _kind(fields[attribute.path])
            if kind not in ("float", "integer", "factor", "array"):
                raise _unknown(fields, attribute.name)
            self._attributes[attribute.name] = dataclasses.replace(attribute, kind=kind)
        plain: Any = SimpleNamespace(**fields)
        plain.unwrapped = plain
        knobs = AttributeKnobs(plain, attributes, followers).knobs.knobs
        permutation = () if self._actions is None else (permutation_knob(0, int(self._actions)),)
        self.knobs = KnobTable((*knobs, *permutation))
        self._followers = tuple(followers)
        return self.knobs

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._env, name)

    def params(
        self, schedule: Source = None, *, env_params: Any = None, seed: int = 0, ticks: int | None = None
    ) -> DriftedParams:
        """The parameters of one schedule, see `params_of`."""
        batch = self.params_of([schedule], env_params=env_params, seed=seed, ticks=ticks)
        params: DriftedParams = jax.tree.map(lambda part: part[0], batch)
        return params

    def params_of(
        self,
        schedules: Sequence[Source],
        *,
        env_params: Any = None,
        seed: int | Sequence[int] = 0,
        ticks: int | None = None,
    ) -> DriftedParams:
        """The parameters of several schedules as one batch, with a leading dimension for `vmap`.

        Args:
            schedules: the schedules. Batches of equal shapes that use the same features and drive the same knobs run
                without compiling again.
            env_params: the environment's own parameters; its default ones if absent.
            seed: schedule `i` draws what it leaves to the seed with `seed + i`, or with number `i` of a sequence.
            ticks: see `drift`.

        Raises:
            ScheduleError: if a schedule can't be used.
            ArgumentError: if one draws anew for each of several occurrences, and `ticks` is absent.
        """
        loaded = load_schedules(schedules, self.knobs)
        arrays, objects = compile_schedules(loaded, self.knobs, seed, ticks)
        driven = {name for schedule in loaded for name in schedule.driven}
        own = self._env.default_params if env_params is None else env_params
        repeated = jax.tree.map(lambda part: jnp.repeat(jnp.asarray(part)[None], len(loaded), 0), own)
        values = {name: self._stack(name, [found[name] for found in objects]) for name in objects[0] if name in driven}
        return DriftedParams(repeated, arrays, values, tuple(name for name in self.knobs if name in driven))

    def _stack(self, name: str, found: list[tuple[Value, ...]]) -> Any:
        """The values of a knob that is no number as one array, with room for the most that a schedule has."""
        most = max(map(len, found))
        filled = [(*values, *[values[0]] * (most - len(values))) for values in found]
        if name == _PERMUTATION:
            actions = [str(action) for action in range(self._actions)]
            filled = [tuple([value[action] for action in actions] for value in values) for values in filled]
        return jnp.asarray(np.array(filled))

    def reset(self, key: Any, params: DriftedParams | None = None) -> tuple[Any, DriftedState]:
        """Begin a lifetime at tick 0.

        Args:
            key: a key of `jax.random`; it draws the start and all random parts of the schedule.
            params: the parameters; by default `default_params`.

        Returns:
            Observation and state.
        """
        params = self.default_params if params is None else params
        carry = start_drift(params.drift, jax.random.fold_in(key, _DRIFT_STREAM))
        observation, state = self._env.reset_env(key, self.env_params(carry, params))
        return observation, DriftedState(carry, state)

    def step(
        self, key: Any, state: DriftedState, action: Any, params: DriftedParams | None = None
    ) -> tuple[Any, DriftedState, Any, Any, Any, dict[str, Any]]:
        """Step, and begin the next episode where this one ends.

        Args:
            key: a key of `jax.random`, another one at each step.
            state: from `reset` or `step`.
            action: an action of the environment.
            params: the parameters; by default `default_params`.

        Returns:
            Observation, state, reward, terminated, truncated and `info`, as in gymnax.
        """
        params = self.default_params if params is None else params
        moving, starting = jax.random.split(key)
        if _PERMUTATION in params.values:
            action = _value_of(params, state.drift, _PERMUTATION)[action]
        now = self.env_params(state.drift, params)
        last, moved, reward, terminated, info = self._env.step_env(moving, state.env, action, now)
        truncated = self._env.is_truncated(moved, now)
        done = jnp.logical_or(terminated, truncated)
        carry = follow_clock(params.drift, state.drift, done)
        first, started = self._env.reset_env(starting, self.env_params(carry, params))
        observation, following = jax.tree.map(
            lambda new, old: jnp.where(done, new, old), (first, started), (last, moved)
        )
        info = {**info, "terminated": terminated, "truncated": truncated, "final_observation": last}
        return observation, DriftedState(carry, following), reward, terminated, truncated, info

    def reset_batch(self, key: Any, params: DriftedParams, number: int) -> tuple[Any, DriftedState]:
        """Begin many lifetimes at once, see `step_batch`.

        Args:
            key: a key of `jax.random` for the whole batch.
            params: from `params`, which all lifetimes share, or from `params_of`, one for each.
            number: the number of lifetimes.
        """
        reset: Any = jax.vmap(self.reset, in_axes=(0, batch_axis(params)))
        found: tuple[Any, DriftedState] = reset(jax.random.split(key, number), params)
        return found

    def step_batch(
        self, key: Any, states: DriftedState, actions: Any, params: DriftedParams
    ) -> tuple[Any, DriftedState, Any, Any, Any, dict[str, Any]]:
        """`step` of many lifetimes at once.

        Args:
            key: a key of `jax.random` for the whole batch, another one at each step.
            states: from `reset_batch` or `step_batch`.
            actions: an action for each lifetime.
            params: as for `reset_batch`.
        """
        keys = jax.random.split(key, states.drift.tick.shape[0])
        step: Any = jax.vmap(self.step, in_axes=(0, 0, 0, batch_axis(params)))
        found: tuple[Any, DriftedState, Any, Any, Any, dict[str, Any]] = step(keys, states, actions, params)
        return found

    def knob_values(self, state: DriftedState, params: DriftedParams) -> dict[str, Any]:
        """The knob values of the next step, for evaluators; agents must not read them."""
        return name_values(params.drift, state.drift)

    def env_params(self, carry: DriftCarry, params: DriftedParams) -> Any:
        """The environment's own parameters at a tick."""
        if not params.driven:
            return params.env
        found = name_values(params.drift, carry)
        fields = {}
        for name in params.driven:
            if name == _PERMUTATION:
                continue
            attribute = self._attributes[name]
            own = jnp.asarray(getattr(params.env, attribute.path))
            value = _value_of(params, carry, name) if attribute.kind == "array" else found[name]
            fields[attribute.path] = (value * own if attribute.kind == "factor" else value).astype(own.dtype)
        for follower in self._followers:
            if fields.keys().isdisjoint(follower.parts):
                continue
            parts = [fields.get(part, getattr(params.env, part)) for part in follower.parts]
            result = sum(parts[1:], parts[0]) if follower.operation == "sum" else math.prod(parts[1:], start=parts[0])
            fields[follower.path] = result * follower.factor
        return dataclasses.replace(params.env, **fields)


def _value_of(params: DriftedParams, carry: DriftCarry, name: str) -> Any:
    """The value of a knob that is no number, at a tick."""
    return params.values[name][object_of(params.drift, carry, name)]


def _numbers(params: Any) -> dict[str, Any]:
    """The fields that are numbers or arrays of numbers."""
    found: dict[str, Any] = {}
    for field in dataclasses.fields(params):
        value = getattr(params, field.name)
        if is_number(value):
            found[field.name] = value
        elif isinstance(value, (np.ndarray, jax.Array)):
            found[field.name] = np.asarray(value)
    return found


def _unknown(fields: Mapping[str, Any], name: str) -> ArgumentError:
    return ArgumentError(
        f"`attributes` should be numbers among the parameters, of {', '.join(fields)}. Received {name!r}"
    )


def _known_knobs(
    fields: Mapping[str, Any], attributes: Attributes
) -> tuple[tuple[AttributeKnob, ...], tuple[DerivedAttribute, ...]]:
    """The chosen fields as knobs, and the fields that are derived from them in Gymnasium's environment."""
    known: dict[str, AttributeKnob] = {}
    followers: tuple[DerivedAttribute, ...] = ()
    for own, derived in (CARTPOLE, ACROBOT, PENDULUM):
        renamed = [dataclasses.replace(knob, path=_field(knob.path)) for knob in own]
        if all(knob.path in fields for knob in renamed):
            known = {knob.name: knob for knob in renamed}
            followers = tuple(
                dataclasses.replace(each, path=_field(each.path), parts=tuple(map(_field, each.parts)))
                for each in derived
            )
            break
    if attributes is None:
        computed = {each.path for each in followers}
        numbers = [name for name, value in fields.items() if is_number(value) and name not in computed]
        attributes = list(dict.fromkeys([*known, *numbers]))
    bounds = attributes if isinstance(attributes, Mapping) else {}
    knobs = []
    for name in attributes:
        if name not in known and name not in fields:
            raise _unknown(fields, name)
        knob = known.get(name) or AttributeKnob(name, name, _kind(fields[name]))
        knobs.append(dataclasses.replace(knob, bounds=bounds.get(name, knob.bounds)))
    return tuple(knobs), followers


def _field(path: str) -> str:
    """What gymnax calls an attribute of Gymnasium's environment."""
    return {"AVAIL_TORQUE": "available_torque"}.get(path, path.lower())


def _kind(value: Any) -> str:
    if not is_number(value):
        return "array"
    return "integer" if isinstance(value, int) else "float"
