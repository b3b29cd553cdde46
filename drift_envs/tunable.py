"""What the environments of this package share: knobs that look like attributes, and copies without windows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MethodType
from typing import Any, ClassVar

from drift_envs.errors import DrivenKnobError, KnobError
from drift_envs.knobs import KnobTable, Value
from drift_envs.registration import EnvParts


class KnobAttribute:
    """A knob that reads and sets like an ordinary attribute.

    The value itself stands in the private attribute of the same name, so that `step` reads it at
    the price of a plain attribute.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        """Remember the knob's name."""
        self.name = name
        self.place = f"_{name}"

    def __get__(self, env: Any, owner: type | None = None) -> Any:
        """The knob's present value."""
        return self if env is None else getattr(env, self.place)

    def __set__(self, env: TunableEnv, value: Any) -> None:
        """Set the knob by hand."""
        env.set_knob(self.name, value)


class TunableEnv:
    """A mixin for environments that declare what can be set.

    A subclass names its knobs in `knobs`, each of which becomes an attribute (`KnobAttribute`) unless the class has a
    property of that name, and its text form, oracle and so on in `parts`; it extends `set_knobs` where something is
    derived from the knobs, and has no notion of why or when they are set. `surfaces` names the attributes
    that hold drawing surfaces, which can be neither pickled nor copied; a copy draws its own at the next `render`.
    `state_names` names the attributes that say where an episode stands.
    """

    knobs: ClassVar[KnobTable]
    parts: ClassVar[EnvParts | None] = None
    surfaces: ClassVar[tuple[str, ...]] = ()
    state_names: ClassVar[tuple[str, ...]] = ()
    stores_knobs: ClassVar[bool] = True
    """Whether knobs are attributes of this class, not of the class of another package."""
    _held: frozenset[str] = frozenset()

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Make an attribute of each knob."""
        super().__init_subclass__(**arguments)
        for name in getattr(cls, "knobs", ()) if cls.stores_knobs else ():
            if not isinstance(getattr(cls, name, None), (KnobAttribute, property)):
                attribute = KnobAttribute()
                attribute.__set_name__(cls, name)
                setattr(cls, name, attribute)

    def set_knobs(self, values: Mapping[str, Value]) -> None:
        """Set these knobs to canonical values, all at once.

        Args:
            values: canonical values, by knob; knobs that are not named stay as they are.
        """
        for name, value in values.items():
            setattr(self, f"_{name}", value)

    def read_knobs(self) -> dict[str, Value]:
        """The present value of every knob, read back from the environment's own attributes."""
        return {name: getattr(self, name) for name in self.knobs}

    def hold(self, names: Iterable[str]) -> None:
        """Refuse from now on that these knobs are set, as attributes or by `set_knobs`; `knob_setter` still sets them.

        Args:
            names: the knobs that a schedule drives.
        """
        if self._held:
            del self.set_knobs
        self._held = frozenset(names)
        if self._held:  # in front of the method of the class, which a schedule calls at each step, unchecked
            self.set_knobs = self._set_undriven  # type: ignore[method-assign]

    @property
    def knob_setter(self) -> Callable[[Mapping[str, Value]], None]:
        """`set_knobs` for what drives the environment: sets driven knobs too."""
        return MethodType(type(self).set_knobs, self)

    def _set_undriven(self, values: Mapping[str, Value]) -> None:
        """Set knobs from outside, none of which is driven."""
        for name, value in values.items():
            DrivenKnobError.refuse(self._held, name, value)
        self.knob_setter(values)

    def set_knob(self, name: str, value: Any) -> None:
        """Set one knob by hand.

        Args:
            name: the knob.
            value: a value as in a schedule.

        Raises:
            DrivenKnobError: if a schedule drives that knob.
            KnobError: if the value breaks a rule, alone or together with the other knobs.
        """
        DrivenKnobError.refuse(self._held, name, value)
        checked = self.knobs[name].check(value)
        if self.knobs.rule is not None:
            for knob, text in self.knobs.problems({**self.read_knobs(), name: checked}):
                raise KnobError(f"`{knob}`: {text}")
        self.set_knobs({name: checked})

    def save_state(self) -> dict[str, Any]:
        """The state of the episode, without knobs and random generator."""
        return {name: getattr(self, name) for name in self.state_names}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore the state of an episode.

        Args:
            state: from `save_state`.
        """
        for name, value in state.items():
            setattr(self, name, value)

    has_fixed_state: ClassVar[bool] = False
    """Whether no part of `save_running` is changed in place, so that one that stands twice may become two."""

    def save_running(self) -> Any:
        """The state of the episode for another process; plain data in what `wrappers.plain_data` takes."""
        return self.save_state()

    def load_running(self, saved: Any) -> None:
        """Restore the state of an episode of another process.

        Args:
            saved: from `save_running`.
        """
        self.load_state(saved)

    def save_order(self) -> Any:
        """What decides which tasks come, and in which order, apart from the generator."""
        return None

    def load_order(self, saved: Any) -> None:
        """Restore which tasks come.

        Args:
            saved: from `save_order`.
        """

    def task_options(self) -> dict[str, Any] | None:
        """The reset options with which another instance begins the same task; `None` where there is but one task."""
        return None

    def keep_tasks(self, keeps: bool) -> None:
        """Say whether the next reset with a seed leaves alone which tasks come, and in which order.

        Args:
            keeps: whether it does.
        """

    def share_world(self, leader: TunableEnv) -> None:
        """Share what belongs to the world and not to an instance of it; a twin calls it, after it was copied.

        Args:
            leader: the instance that the twin follows.
        """

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the drawing surfaces."""
        state = dict(self.__dict__)
        for name in self.surfaces:
            if name in state:
                state[name] = None
        return state
