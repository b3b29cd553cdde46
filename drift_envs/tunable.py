"""What the environments of this package share: knobs that look like attributes, copies without windows, visits.

Places can turn bad when they are visited too often (`PoisonedEnv`), so that probing itself does harm.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from types import MethodType
from typing import Any, ClassVar

from drift_envs.errors import DrivenKnobError, KnobError
from drift_envs.knobs import Knob, KnobTable, Value
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

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the drawing surfaces."""
        state = dict(self.__dict__)
        for name in self.surfaces:
            if name in state:
                state[name] = None
        return state


MOST = 1000


def poison_knob(effect: str) -> Knob:
    """The knob `poison_after`.

    Args:
        effect: what visits of which place do.
    """
    return Knob(
        "poison_after",
        0,
        (0, MOST),
        f"how many visits in one episode {effect}, those of twins included; 2 or more, 0: never",
        "integer",
    )


def poison_rule(values: Mapping[str, Value]) -> Iterator[tuple[str, str]]:
    """The first visit of a place turns nothing bad: otherwise no way would be open.

    Example:
        >>> list(poison_rule({"poison_after": 1}))
        [('poison_after', 'should be 0 or at least 2. Received 1')]
    """
    if values["poison_after"] == 1:
        yield "poison_after", "should be 0 or at least 2. Received 1"


class VisitCounts:
    """How often each place was visited in an episode.

    Example:
        >>> visits = VisitCounts()
        >>> [visits.note("a"), visits.note("b"), visits.note("a")], visits.count("a")
        ([1, 1, 2], 2)
    """

    def __init__(self) -> None:
        self._counts: dict[Hashable, int] = {}

    def note(self, place: Hashable) -> int:
        """Count a visit; returns the number of visits."""
        count = self._counts[place] = self._counts.get(place, 0) + 1
        return count

    def count(self, place: Hashable) -> int:
        """The number of visits of a place."""
        return self._counts.get(place, 0)

    def places(self, least: int) -> tuple[Any, ...]:
        """The places that were visited at least so often, in the order of their first visit."""
        return tuple(place for place, count in self._counts.items() if count >= least)

    def items(self) -> tuple[tuple[Any, int], ...]:
        """All places with their numbers of visits."""
        return tuple(self._counts.items())

    def replace(self, items: Iterable[tuple[Any, int]]) -> None:
        """Replace all counts; who shares the object sees it."""
        items = tuple(items)
        self._counts.clear()
        self._counts.update(items)


class PoisonedEnv(TunableEnv):
    """A mixin for environments with the knob `poison_after`: counts visits of places.

    The counts are part of the state of an episode: `reset` clears them and snapshots hold them. A twin's visits
    count in the environment that it follows (`share_visits`), and neither a reset of the twin nor a state restored into
    it takes them back.
    """

    poison_after = KnobAttribute()
    _poison_after: int = 0
    _visits: VisitCounts | None = None  # made when a place is first visited
    _shares_visits = False
    _leader: TunableEnv

    def _clear_visits(self) -> None:
        """Begin an episode: forget all visits, unless they are another instance's."""
        if not self._shares_visits:
            self._visits = None

    def share_visits(self, leader: TunableEnv) -> None:
        """Count the visits of another instance from now on, instead of own ones.

        Args:
            leader: the other instance.
        """
        self._leader, self._shares_visits = leader, True

    @property
    def visits(self) -> VisitCounts:
        """The visits of the present episode. For evaluators."""
        owner = self
        while owner._shares_visits:
            owner = owner._leader  # type: ignore[assignment]
        visits = owner._visits
        if visits is None:
            visits = owner._visits = VisitCounts()
        return visits

    def _save_visits(self) -> list[tuple[Any, int]]:
        return list(self.visits.items())

    def _load_visits(self, items: Iterable[tuple[Any, int]]) -> None:
        if not self._shares_visits:
            self.visits.replace(items)
