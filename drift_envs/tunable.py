"""What the environments of this package share: knobs that look like attributes, and copies without windows.

* `KnobAttribute` - a knob as an attribute: reading is free, setting validates and recomputes what is derived
* `TunableEnv` - the mixin: set a knob, hold knobs against being set, pickle and copy without drawing surfaces
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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

    A subclass names its knobs in `knobs`, and its text form, oracle and so on in `parts`; it extends `set_knobs` where
    something is derived from the knobs, and has no notion of why or when they are set. `surfaces` names the attributes
    that hold drawing surfaces, which can be neither pickled nor copied; a copy draws its own at the next `render`.
    `state_names` names the attributes that say where an episode stands.
    """

    knobs: ClassVar[KnobTable]
    parts: ClassVar[EnvParts | None] = None
    surfaces: ClassVar[tuple[str, ...]] = ()
    state_names: ClassVar[tuple[str, ...]] = ()
    _held: frozenset[str] = frozenset()

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
        """Refuse from now on that these knobs are set as attributes; `set_knobs` still sets them.

        Args:
            names: the knobs that a schedule drives.
        """
        self._held = frozenset(names)

    def set_knob(self, name: str, value: Any) -> None:
        """Set one knob by hand.

        Args:
            name: the knob.
            value: a value as in a schedule.

        Raises:
            DrivenKnobError: if a schedule drives that knob.
            KnobError: if the value breaks a rule, alone or together with the other knobs.
        """
        if name in self._held:
            raise DrivenKnobError.of(name, value)
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

    def task_options(self) -> dict[str, Any] | None:
        """The reset options with which another instance begins the same task; `None` where there is but one task."""
        return None

    def keep_tasks(self) -> None:
        """Let the next reset with a seed leave alone which tasks come, and in which order."""

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the drawing surfaces."""
        state = dict(self.__dict__)
        for name in self.surfaces:
            if name in state:
                state[name] = None
        return state
