"""How a thing is found: where it is recorded to be, else by a search, and behind doors that need a key.

* `HouseSearch` - the next command on the way to a thing
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from drift_agents.envs.house.beliefs import HouseBeliefs
from drift_agents.envs.house.errand import is_common, kind_of, likely_rank
from drift_agents.envs.house.knowledge import placed, treatments
from drift_agents.envs.house.matching import NOTHING
from drift_agents.envs.house.treatment import Treatment


class HouseSearch:
    """The next command on the way to a thing.

    Args:
        beliefs: what is believed in this decision.
        treatment: which treatments are left to try, for things that were treated without effect.
    """

    def __init__(self, beliefs: HouseBeliefs, treatment: Treatment) -> None:
        self._beliefs, self._treatment = beliefs, treatment
        self._shown, self._errand, self._known = beliefs.shown, beliefs.errand, beliefs.known

    def fetch(self) -> str:
        """Take a thing that is wanted, or go where one may be."""
        shown, down = self._shown, placed(self._shown.done)
        finished = [thing for thing, place in down.items() if kind_of(place) == self._errand.target]
        retry = self._to_retry(finished)
        for kind in self._beliefs.kinds:
            wanted = [
                thing for thing in shown.sees if kind_of(thing) == kind and (thing not in finished or thing in retry)
            ]
            if wanted:
                return f"take {sorted(wanted)[0]} from {shown.at}"
            if (step := self._go_to_thing(kind, finished, retry, down)) is not None:
                return step
            if kind == self._beliefs.kinds[0] and (step := self.look_for(kind)) is not None:
                return step
        return self._beliefs.wander()

    def _to_retry(self, finished: Collection[str]) -> list[str]:
        """Things that lie at the wanted place without completing the task, and may be treated otherwise."""
        if self._errand.number > 1 or not self._errand.mark:
            return []
        wanted = [thing for thing in finished if kind_of(thing) == self._beliefs.kinds[0]]
        return [thing for thing in wanted if set(self._treatment.ways()) - set(treatments(self._shown.done, thing))]

    def _go_to_thing(
        self, kind: str, finished: Collection[str], retry: Collection[str], down: Mapping[str, str]
    ) -> str | None:
        """On the way to a thing whose place is known."""
        places = {down[thing]: self._shown.at for thing in retry if thing in down}
        places |= {place: "" for thing, place in down.items() if kind_of(thing) == kind and thing not in finished}
        taken = set(down)
        hints: list[tuple[int, str]] = []
        for place, fact in self._known.contents.items():
            things = [thing for thing in fact.value if kind_of(thing) == kind and thing not in taken]
            if (things and place not in self._shown.visited) or (things and self._is_left(place, kind, taken)):
                hints.append((-fact.last, place))
        for place in (*places, *(place for _, place in sorted(hints))):
            if place in self._beliefs.furniture and (step := self._open_at(place)) is not None:
                return step
        return None

    def _is_left(self, place: str, kind: str, taken: Collection[str]) -> bool:
        """Whether a visited place still has such a thing: it was seen there in this episode, and not taken.

        The newest record of the place is of this episode if it agrees with what is seen there now.
        """
        if place == self._shown.at:
            return any(kind_of(thing) == kind and thing not in taken for thing in self._shown.sees)
        return self._errand.number > 1 or bool(self._shown.done)

    def _open_at(self, place: str) -> str | None:
        """Go to furniture, and open it; `None` if it cannot be reached or opened, or is open already."""
        shown = self._shown
        if (
            self._beliefs.is_locked(place)
            and shown.holds == NOTHING
            and (step := self._unlock_from_afar(place)) is not None
        ):
            return step
        if place != shown.at:
            return None if self._beliefs.is_shut(place) else f"go to {place}"
        if shown.door == "closed":
            return self._unlock(place)
        return None

    def look_for(self, kind: str) -> str | None:
        """Look into furniture that was not visited in this episode."""
        shown = self._shown
        is_new = shown.door == "closed" and shown.at not in shown.visited and not shown.says
        if is_new and not self._beliefs.is_locked(shown.at):
            return f"open {shown.at}"
        open_ = [
            place
            for place in self._beliefs.furniture
            if place not in shown.visited and place != shown.at and not self._beliefs.is_shut(place)
        ]
        free = [place for place in open_ if not self._beliefs.is_locked(place)]
        likely = [place for place in free if self._is_likely(kind, place)]
        if likely:
            return f"go to {self._most_likely(kind, likely)}"
        for place in [*open_, shown.at]:
            if (
                self._beliefs.is_locked(place)
                and place not in shown.visited
                and (step := self._unlock_from_afar(place))
            ):
                return step
        return f"go to {self._most_likely(kind, free)}" if free else None

    def _is_likely(self, kind: str, place: str) -> bool:
        """Whether a thing may well be there: nothing is known about the place, and others of its kind hold such things.

        What memory has seen in other houses counts, and what is common.
        """
        fact = self._known.contents.get(place)
        if fact is not None and fact.last >= self._beliefs.doubt:
            return False
        is_seen = (kind, kind_of(place)) in self._known.habits
        return is_seen or not self._beliefs.common_sense or is_common(kind, kind_of(place))

    def _most_likely(self, kind: str, places: Sequence[str]) -> str:
        """The furniture where such a thing is most likely to be: by records of other houses, then by common sense.

        What memory has seen there in this house, without such a thing, counts against it.
        """
        seen = self._known.habits
        total = sum(times for (thing, _), times in seen.items() if thing == kind)

        def rank(place: str) -> tuple[bool, float, int]:
            fact = self._known.contents.get(place)
            was_empty = fact is not None and fact.last >= self._beliefs.doubt
            share = seen.get((kind, kind_of(place)), 0.0) / total if total else 0.0
            return was_empty, -round(share, 6), likely_rank(kind, kind_of(place)) if self._beliefs.common_sense else 0

        best = min(map(rank, places))
        return self._beliefs.pick([place for place in places if rank(place) == best])

    # Keys.

    def _unlock(self, place: str) -> str | None:
        """Open a door here with what is in the hand, or fetch a key."""
        if self._shown.holds == NOTHING and not self._beliefs.is_locked(place):
            return None if self._shown.says else f"open {place}"
        return self._unlock_from_afar(place)

    def _unlock_from_afar(self, place: str) -> str | None:
        """On the way to the key of a door; `None` if no keychain is left to try."""
        key = self.key_for(place)
        if key is None or self._shown.holds != NOTHING:
            return None
        shown = self._shown
        if key in shown.sees:
            return f"take {key} from {shown.at}"
        down = placed(shown.done)
        spots = [down[key]] if key in down else []
        spots += [spot for spot, fact in self._known.contents.items() if key in fact.value and key not in down]
        for spot in spots:
            if spot == shown.at and shown.door == "closed" and not shown.says:
                return f"open {spot}"
            if spot in self._beliefs.furniture and spot != shown.at and not self._beliefs.is_shut(spot):
                return f"go to {spot}"
        return None

    def key_for(self, place: str) -> str | None:
        """The keychain that opened a door, else one that was not tried there."""
        tried = {key: fact for (spot, key), fact in self._known.keys.items() if spot == place and key != NOTHING}
        working = [key for key, fact in tried.items() if fact.value]
        if working:
            return max(working, key=lambda key: tried[key].last)
        kept = (thing for fact in self._known.contents.values() for thing in fact.value)
        seen: set[str] = {thing for thing in kept if kind_of(thing) == "keychain"}
        seen |= {thing for thing in (*self._shown.sees, *placed(self._shown.done)) if kind_of(thing) == "keychain"}
        untried = sorted(key for key in seen if key not in tried or tried[key].last < self._beliefs.doubt)
        if untried:
            return untried[0]
        return min(tried, key=lambda key: tried[key].last) if tried else None
