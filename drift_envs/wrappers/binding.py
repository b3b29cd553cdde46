"""Binds a schedule to an environment: finds the knobs, checks the schedule against them, and sets them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import gymnasium as gym
from pydantic import ValidationError

from drift_envs.attributes.declarations import AttributeKnob, DerivedAttribute, built_in_knobs
from drift_envs.attributes.env import AttributeEnv
from drift_envs.attributes.knobs import AttributeKnobs, is_same
from drift_envs.attributes.path import AttributePath
from drift_envs.errors import ArgumentError, DeclaredKnobsError, DrivenKnobError
from drift_envs.knobs import KnobTable, Tunable, Value, freeze
from drift_envs.schedule import Schedule, load_schedule
from drift_envs.schedule.model import Knobs
from drift_envs.tunable import TunableEnv
from drift_envs.wrappers.effects import Effects, effect_knobs


class KnobBinder:
    """Turns the knobs of one environment.

    Args:
        env: the environment.
        schedule: whatever `load_schedule` takes.

    Attributes:
        env: the environment, inside `Effects` where the schedule sets a knob of those.
        table: all knobs.
        schedule: the schedule, checked against them.
    """

    def __init__(self, env: gym.Env[Any, Any], schedule: Any) -> None:
        if not isinstance(env, gym.Env):
            raise ArgumentError(f"`env` should be a `gymnasium.Env`. Received {type(env).__name__}")
        if schedule is None or isinstance(schedule, Schedule):
            self._bind(env, None if schedule is None else schedule.knobs)
            self.schedule = load_schedule(schedule, table=self.table)
        else:
            self.schedule = load_schedule(schedule, table=lambda content: self._bind_declared(env, content))
        wanted = set() if self.schedule is None else set(self.schedule.driven) - set(self._tunable.knobs)
        self._effects = Effects(env) if wanted else None
        self.env = env if self._effects is None else self._effects
        self._own = frozenset(self._tunable.knobs)
        base = env.unwrapped
        if isinstance(base, AttributeEnv):
            self._keeper: Any = base.attribute_knobs
        elif isinstance(self._tunable, AttributeKnobs):
            self._keeper = self._tunable
        elif type(base).__module__.startswith("drift_envs."):
            self._keeper = None  # its knobs can't be set but by `set_knobs`
        else:
            self._keeper = DeclaredKnobs(base)
        self.is_foreign = self._keeper is not None and not isinstance(base, AttributeEnv)

    @property
    def effects(self) -> Effects | None:
        """The wrapper with the knobs that need no attribute, where the schedule sets one."""
        return self._effects

    @property
    def keeps(self) -> bool:
        """Whether the environment's knobs can be lost: by its own `reset`, in a copy, or from outside."""
        return self._keeper is not None

    def has_changed(self) -> bool:
        """Whether a driven knob of an environment of another package may have been lost."""
        return self.is_foreign and self._keeper.has_changed()

    def refuse_lost(self, tick: int) -> None:
        """Refuse that a driven knob does not have the value that was set last.

        Args:
            tick: when it was lost, if that is known.

        Raises:
            DrivenKnobError: if it has another one.
        """
        self._keeper.refuse_lost(tick)

    def unchanged(self) -> AbstractContextManager[None]:
        """Let the environment's own knobs be afterwards what they were before."""
        return self._keeper.unchanged() if self.is_foreign else nullcontext()

    def set_again(self) -> bool:
        """Set again what a reset has lost.

        Returns:
            Whether a method was called whose effect no attribute shows.
        """
        return bool(self.is_foreign and self._keeper.set_again())

    def settle(self) -> None:
        """Set again what a copy has lost."""
        self._keeper.settle()

    def drives_parts(self, names: Iterable[str]) -> bool:
        """Whether some of these knobs are attributes of an environment of another package."""
        return self.is_foreign and not self._own.isdisjoint(names)

    @property
    def attributes(self) -> set[str]:
        """The names of the attributes that driven knobs stand for, without what contains them."""
        paths = getattr(self._keeper, "paths", {}).values()
        return {[step for step in AttributePath.parse(path).steps if isinstance(step, str)][-1] for path in paths}

    def _bind(self, env: gym.Env[Any, Any], knobs: Knobs | None) -> KnobTable:
        self._tunable: Any = find_tunable(env, knobs)
        self.table = _with_effects(self._tunable, env)
        return self.table

    def _bind_declared(self, env: gym.Env[Any, Any], content: Mapping[str, Any]) -> KnobTable | None:
        """The table with the knobs that the content of a schedule declares; `None` if that section is wrong."""
        try:
            return self._bind(env, _read_section(content))
        except ValidationError:
            return None  # the loader reports it

    def hold(self, names: Iterable[str]) -> None:
        """Let the environment refuse that these knobs are set from outside, where it can."""
        if hasattr(self._tunable, "hold"):
            self._tunable.hold(name for name in names if name in self._own)

    def held_names(self, names: Iterable[str]) -> frozenset[str]:
        """The driven knobs, and the attributes that they stand for."""
        paths = getattr(self._tunable, "paths", {})
        held = set(names)
        return frozenset(held | {paths[name] for name in held if name in paths})

    @property
    def set_knobs(self) -> Callable[[Mapping[str, Value]], None]:
        """Sets knobs to canonical values, all at once: the environment's own `set_knobs` where it has all of them."""
        return self._setter if self._effects is None else self._set_both

    @property
    def _setter(self) -> Callable[[Mapping[str, Value]], None]:
        """Sets the environment's own knobs."""
        return knob_setter(self._keeper if isinstance(self._keeper, DeclaredKnobs) else self._tunable)

    def _set_both(self, values: Mapping[str, Value]) -> None:
        """Set knobs of the environment and of the effects."""
        own = {name: value for name, value in values.items() if name in self._own}
        if own:
            self._setter(own)
        if self._effects is not None:
            self._effects.set_knobs({name: value for name, value in values.items() if name not in self._own})

    def read(self) -> dict[str, Value]:
        """The value of every knob that is at work, read back."""
        own = self._tunable.read_knobs()
        return own if self._effects is None else {**own, **self._effects.read_knobs()}


def knob_setter(tunable: Any) -> Callable[[Mapping[str, Value]], None]:
    """What sets the knobs of an environment, driven ones too."""
    setter: Callable[[Mapping[str, Value]], None] = (
        tunable.knob_setter if isinstance(tunable, TunableEnv) else tunable.set_knobs
    )
    return setter


def knob_table(env: gym.Env[Any, Any]) -> KnobTable:
    """All knobs that a schedule may drive in an environment: its own, and those that need no attribute.

    Args:
        env: the environment.

    Example:
        >>> "masspole" in knob_table(gym.make("CartPole-v1"))
        True
    """
    return _with_effects(find_tunable(env), env)


def find_tunable(env: gym.Env[Any, Any], knobs: Knobs | None = None) -> Any:
    """The environment's own knobs, or its attributes made tunable.

    Args:
        env: the environment.
        knobs: the section `knobs` of a schedule, which declares attributes.

    Raises:
        DeclaredKnobsError: if the schedule declares knobs for an environment that declares its own, or attributes
            that the environment does not have.
    """
    if isinstance(env.unwrapped, Tunable):
        if knobs is not None:
            raise DeclaredKnobsError(
                [
                    (
                        ("knobs",),
                        f"should not be there, since {type(env.unwrapped).__name__} declares its own knobs. "
                        f"Received {', '.join(knobs.specs) or 'one'}",
                    )
                ]
            )
        return env.unwrapped
    attributes, followers = built_in_knobs(env)
    more, derived = declared_knobs(knobs)
    named = {attribute.name for attribute in more}
    kept = tuple(attribute for attribute in attributes if attribute.name not in named)
    return AttributeKnobs(env, (*kept, *more), (*followers, *derived))


def declared_knobs(knobs: Knobs | None) -> tuple[tuple[AttributeKnob, ...], tuple[DerivedAttribute, ...]]:
    """The knobs that a schedule declares in its section `knobs`.

    Args:
        knobs: that section.
    """
    if knobs is None:
        return (), ()
    attributes = tuple(
        AttributeKnob(name, spec.attribute or name, spec.kind, spec.bounds, spec.doc, spec.default, spec.setter)
        for name, spec in knobs.specs.items()
    )
    followers = tuple(
        DerivedAttribute(path, tuple(derived.sum or derived.product or ()), "sum" if derived.sum else "product")
        for path, derived in knobs.derived.items()
    )
    return attributes, followers


def declared_knob_table(env: gym.Env[Any, Any], content: Mapping[str, Any]) -> KnobTable | None:
    """All knobs that a schedule may drive in an environment, from the schedule's content before it is checked.

    Args:
        env: the environment.
        content: the schedule as plain data.

    Returns:
        The knobs, `None` if the section `knobs` breaks a rule.

    Raises:
        DeclaredKnobsError: if the environment does not have what the section declares.
    """
    try:
        return _with_effects(find_tunable(env, _read_section(content)), env)
    except ValidationError:
        return None


def _read_section(content: Mapping[str, Any]) -> Knobs | None:
    section = content.get("knobs")
    return None if section is None else Knobs.model_validate(section)


def _with_effects(tunable: Any, env: gym.Env[Any, Any]) -> KnobTable:
    """The table of a tunable and its effects; defaults are the values that the environment was built with."""
    own, now = tunable.knobs, tunable.read_knobs()
    knobs = [replace(knob, default=now[knob.name]) for knob in own.knobs]
    knobs += [knob for knob in effect_knobs(env) if knob.name not in own]
    return KnobTable(tuple(knobs), rule=own.rule)


class DeclaredKnobs:
    """The knobs of an environment of another package that declares them itself, read back."""

    def __init__(self, env: Any) -> None:
        self._env = env
        self._set: dict[str, Value] = {}

    def set_knobs(self, values: Mapping[str, Value]) -> None:
        """Set these knobs to canonical values, all at once.

        Args:
            values: canonical values, by knob.
        """
        knob_setter(self._env)(values)
        self._set.update(values)

    def has_changed(self) -> bool:
        """Whether a knob does not have the value that was set."""
        return bool(self._lost())

    def refuse_lost(self, tick: int | None = None) -> None:
        """Refuse that a knob does not have the value that was set.

        Args:
            tick: when it was lost, if that is known.

        Raises:
            DrivenKnobError: if it has another one.
        """
        for name, (value, found) in self._lost().items():
            raise DrivenKnobError.lost(name, repr(value), repr(found), tick)

    def set_again(self) -> bool:
        """Set again what the environment has lost by a reset, or by being a copy that its constructor made."""
        lost = self._lost()
        if lost:
            knob_setter(self._env)({name: value for name, (value, _) in lost.items()})
        return False

    def settle(self) -> None:
        """Set again what a copy has lost."""
        self.set_again()

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Let all knobs be afterwards what they were before."""
        kept = self._env.read_knobs()
        try:
            yield
        finally:
            knob_setter(self._env)(kept)

    def _lost(self) -> dict[str, tuple[Value, Value]]:
        """The value that was set and the present one of each knob that does not have it."""
        found = {name: freeze(value) for name, value in self._env.read_knobs().items()}
        return {
            name: (value, found[name])
            for name, value in self._set.items()
            if name in found and not is_same(found[name], value)
        }
