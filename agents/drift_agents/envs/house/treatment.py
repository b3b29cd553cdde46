"""How a thing is made hot, cold or clean.

* `Treatment` - chooses the appliance, and checks with `examine` where it is not known to work
"""

from __future__ import annotations

from functools import cached_property

from drift_agents.envs.house.beliefs import HouseBeliefs
from drift_agents.envs.house.errand import WAYS, kind_of
from drift_agents.envs.house.knowledge import Attempt, DatedFact, Way, read_marks, treatments


class Treatment:
    """Chooses the appliance, and checks with `examine` where it is not known to work.

    Args:
        beliefs: what is believed in this decision.
    """

    def __init__(self, beliefs: HouseBeliefs) -> None:
        self._beliefs = beliefs
        self._shown, self._errand, self._known = beliefs.shown, beliefs.errand, beliefs.known

    def next_step(self, thing: str) -> str | None:
        """The next step of the treatment; `None` when it is done."""
        shown, mark = self._shown, self._errand.mark
        ways = treatments(shown.done, thing)
        seen = read_marks(shown.says, thing)
        if seen is not None and mark in seen:
            return None
        failed = {way for other, _, tried in self._beliefs.own_failures() for way in tried if other == thing}
        if ways and ways[-1] not in failed and seen is None:
            works = self._does(ways[-1])
            doubtful = works is None and self._has_failed
            if works or not doubtful:
                return None
            return f"examine {thing}"
        tried = failed | set(ways)
        for way in self.ways():
            if way not in tried:
                verb, place = way
                return f"{verb} {thing} with {place}" if place == shown.at else f"go to {place}"
        return None

    def ways(self) -> list[Way]:
        """Treatments in the order in which they are tried."""
        found = []
        for order, (verb, kind) in enumerate(WAYS[self._errand.mark]):
            for place in self._beliefs.furniture:
                if kind_of(place) == kind and not self._beliefs.is_shut(place):
                    works = self._does((verb, place))
                    rank = 1 if works is None else 0 if works else 2
                    found.append(
                        ((rank, -self._did_elsewhere((verb, place)), order, place != self._shown.at), (verb, place))
                    )
        # Where one appliance of a kind has failed, another kind is tried before its like.
        failed = {kind_of(place) for (rank, *_), (_, place) in found if rank == 2}
        return [way for _, way in sorted(found, key=lambda one: (one[0][0], kind_of(one[1][1]) in failed, one[0]))]

    def _does(self, way: Way) -> bool | None:
        """Whether a treatment does what is wanted; `None` if nothing is known."""
        mark = self._errand.mark
        found: DatedFact | None = None
        seen = self._known.marks.get(way)
        if seen is not None and seen.last >= self._beliefs.doubt:
            found = DatedFact(mark in seen.value, seen.last)
        for attempt, fact in self._known.attempts.items():
            if attempt.mark != mark or not attempt.ways or attempt.ways[-1] != way or fact.last < self._beliefs.doubt:
                continue
            if not fact.value and not self._means(attempt):
                continue
            if found is None or fact.last > found.last:
                found = DatedFact(fact.value > 0, fact.last)
        return None if found is None else bool(found.value)

    def _means(self, attempt: Attempt) -> bool:
        """Whether the thing of a failed attempt was, in all likelihood, of the right kind."""
        return attempt.word == attempt.kind

    def _did_elsewhere(self, way: Way) -> float:
        """In other houses, how often such a treatment did what is wanted less how often it did not."""
        general, balance = (way[0], kind_of(way[1])), 0.0
        for attempt, fact in self._known.elsewhere.items():
            if attempt.mark == self._errand.mark and attempt.ways and attempt.ways[-1] == general:
                balance += 1.0 if fact.value > 0 else -1.0
        return balance

    @cached_property
    def _has_failed(self) -> bool:
        """Whether any treatment for this mark is known to have failed."""
        marks = [mark for mark in self._known.attempts if mark.mark == self._errand.mark]
        return (
            any(not self._known.attempts[one].value for one in marks)
            or any(self._errand.mark not in fact.value for way, fact in self._known.marks.items() if self._serves(way))
            or bool(self._beliefs.own_failures())
        )

    def _serves(self, way: Way) -> bool:
        """Whether a treatment is commonly for this mark."""
        return (way[0], kind_of(way[1])) == WAYS[self._errand.mark][0]
