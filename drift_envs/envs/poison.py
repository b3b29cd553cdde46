"""Places that turn bad when they are visited too often, so that probing itself does harm: the knob `poison_after`."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any

from drift_envs.knobs import Knob, Value
from drift_envs.tunable import KnobAttribute, TunableEnv

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
    count in the environment that it follows (`share_world`), and neither a reset of the twin nor a state restored into
    it takes them back.
    """

    poison_after = KnobAttribute()
    _poison_after: int = 0
    _visits: VisitCounts | None = None  # made when a place is first visited
    _shares_visits = False
    _leader: PoisonedEnv

    def _clear_visits(self) -> None:
        """Begin an episode: forget all visits, unless they are another instance's."""
        if not self._shares_visits:
            self._visits = None

    def share_world(self, leader: TunableEnv) -> None:
        """Count the visits of another instance from now on, instead of own ones.

        Args:
            leader: the other instance.
        """
        if isinstance(leader, PoisonedEnv):
            self._leader, self._shares_visits = leader, True

    @property
    def visits(self) -> VisitCounts:
        """The visits of the present episode. For evaluators."""
        owner = self
        while owner._shares_visits:
            owner = owner._leader
        visits = owner._visits
        if visits is None:
            visits = owner._visits = VisitCounts()
        return visits

    def _save_visits(self) -> list[tuple[Any, int]]:
        return list(self.visits.items())

    def _load_visits(self, items: Iterable[tuple[Any, int]]) -> None:
        if not self._shares_visits:
            self.visits.replace(items)
