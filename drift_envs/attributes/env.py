"""Environments whose knobs are attributes of another package's class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from drift_envs.attributes.declarations import AttributeKnob, DerivedAttribute
from drift_envs.attributes.knobs import AttributeKnobs
from drift_envs.errors import KnobError, StateError
from drift_envs.knobs import Value
from drift_envs.tunable import TunableEnv


class AttributeEnv(TunableEnv):
    """The mixin for environments whose knobs are attributes of another package's class.

    A subclass stands before that class in the order of bases, names its knobs in `attributes` and `knobs`
    (`knob_table_of_attributes`), and calls `make_tunable` at the end of its constructor.
    """

    attributes: ClassVar[tuple[AttributeKnob, ...]]
    followers: ClassVar[tuple[DerivedAttribute, ...]] = ()
    stores_knobs = False
    _knob_of: ClassVar[Mapping[str, str]] = {}
    """The knob that is set where an attribute is set by its name, or by that of the attribute that it stands for."""
    attribute_knobs: AttributeKnobs = None  # type: ignore[assignment]  # until the environment is complete

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Find the names that stand for knobs."""
        super().__init_subclass__(**arguments)
        attributes = getattr(cls, "attributes", ())
        cls._knob_of = {name: one.name for one in attributes for name in (one.path, one.name) if name.isidentifier()}

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute; a knob is checked, and what is derived from it is recomputed.

        Raises:
            DrivenKnobError: if a schedule drives that knob.
            KnobError: if the value breaks a rule, or is that of an attribute that a factor multiplies.
        """
        knobs = self.attribute_knobs if name in self._knob_of else None
        if knobs is None or knobs.is_writing:
            object.__setattr__(self, name, value)
            return
        knob = self._knob_of[name]
        if name != knob and name in knobs.factors and knob not in self._held:
            raise KnobError(f"`{name}` should be set by its factor, the knob `{knob}`. Received {value!r}")
        self.set_knob(knob, value)

    def __getattr__(self, name: str) -> Any:
        """A knob by its name where the attribute has another one."""
        if name in type(self)._knob_of and self.attribute_knobs is not None:
            return self.read_knobs()[type(self)._knob_of[name]]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def make_tunable(self) -> None:
        """Find the attributes of the knobs; the environment has to be complete."""
        # the mixin itself is no environment
        self.attribute_knobs = AttributeKnobs(self, self.attributes, self.followers)  # type: ignore[arg-type]

    def set_knobs(self, values: Mapping[str, Value]) -> None:
        """Set these knobs to canonical values, all at once.

        Args:
            values: canonical values, by knob.
        """
        self.attribute_knobs.set_knobs(values)

    def read_knobs(self) -> dict[str, Value]:
        """The present value of every knob, read back from the attributes."""
        return self.attribute_knobs.read_knobs()

    def set_state_seen(self, observation: Any) -> None:
        """Set the state that an observation shows. For evaluators.

        Args:
            observation: as from `step`.

        Raises:
            StateError: if observations do not show the state.
        """
        raise StateError(f"observations of {type(self).__name__} do not show its state")
