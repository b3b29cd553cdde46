"""The planner for the house: where it searches, how it treats things, and what it does next."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from drift_agents.envs.house.knowledge import (
    DatedFact,
    HouseBeliefs,
    Way,
    failed_puts,
    learn_house,
    placed,
    read_marks,
    treatments,
)
from drift_agents.envs.house.states import (
    NOTHING,
    WAYS,
    ShownHouse,
    is_common,
    kind_of,
    likely_rank,
    parse_errand,
    plain,
    read_house_state,
)
from drift_agents.policy.base import ParsedPlanner, pick
from drift_agents.prompt.view import PromptView
from drift_envs.checks import check_flag

SATISFIED = 0.9
"""The score from which on a place is used again without a search for a better one."""


class HousePlanner(ParsedPlanner[ShownHouse]):
    """Fetches, treats and puts down; records of the prompt override what is common.

    * Empty hand: go to where the thing is recorded to be kept, else look into furniture that was not visited in
      this episode, the most likely kinds first; take it.
    * A thing in the hand: treat it, if the task wants that; then put it down, or look at it under the lamp.
    * A treatment: the appliance that is recorded to do this; else the common one; after a failure others. A
      treatment that is not known to work is checked with `examine` once anything has failed.
    * The place: of several of the wanted kind, one that was worth `SATISFIED` or more; else an untried one.
    * A word: its kind; after a failure the kind that is easily taken for it.
    * A door that does not open is opened with a keychain: the recorded one, else an untried one.

    What was seen before memory was found wrong counts as untried.

    Args:
        conflict: how several outcomes of one (state, action) are weighed (`drift_agents.prompt.view`).
        explores: whether it looks for better places, ways and meanings once it knows one that is worth something.
        common_sense: whether it knows where kinds of things are commonly kept.

    Raises:
        ArgumentError: if an option is outside its range.

    Example:
        >>> at = '{"house": 7, "task": "put a mug in bed", "at": "shelf 1", "door": "none", "sees": ["mug 2"], '
        >>> at += '"holds": "nothing", "done": [], "opened": [], "visited": ["shelf 1"], "says": ""}'
        >>> view = PromptView("put a mug in bed", at, ("go to bed 1", "take mug 2 from shelf 1"))
        >>> HousePlanner().decide(view, np.random.default_rng(0)).text
        'take mug 2 from shelf 1'
    """

    name, shows = "house", "one of a house"
    parse = staticmethod(read_house_state)

    def __init__(self, *, conflict: str = "majority", explores: bool = True, common_sense: bool = True) -> None:
        super().__init__(conflict=conflict)
        self.explores = check_flag("explores", explores)
        self.common_sense = check_flag("common_sense", common_sense)

    def _choose(self, shown: ShownHouse, view: PromptView, rng: np.random.Generator) -> str:
        words = {plain(action): action for action in view.actions}
        view = replace(view, actions=tuple(words))
        errand = parse_errand(shown.task)
        if errand is None or not view.actions:
            return words[pick(view.actions, rng)] if words else "look"
        known = learn_house(shown, (*view.elsewhere, *view.here), self.conflict)
        wanted = _HouseDecision(view, shown, errand, known, self.explores, self.common_sense, rng).choose()
        return words[wanted if wanted in words else pick(view.actions, rng)]


class _HouseDecision(HouseBeliefs):
    """One decision."""

    def choose(self) -> str:
        """The command."""
        holds = self.shown.holds
        if holds == NOTHING:
            return self._fetch()
        if kind_of(holds) == "keychain":
            return self._use_key()
        if kind_of(holds) not in self.kinds[:1] and not self._is_worth_trying(holds):
            return self._put_down()
        if self.errand.is_light:
            return self._look_under_lamp()
        if self.errand.mark and (step := self._treat(holds)):
            return step
        return self._bring()

    def _is_worth_trying(self, thing: str) -> bool:
        return kind_of(thing) in self.kinds and not any(kind_of(other) == self.kinds[0] for other in self.shown.sees)

    def _use_key(self) -> str:
        """Open the door for which the key was fetched, then put the key down."""
        shown, key = self.shown, self.shown.holds
        if shown.door == "closed" and self.is_locked(shown.at):
            fact = self.known.keys.get((shown.at, key))
            if not shown.says and (fact is None or fact.value or fact.last < self.doubt):
                return f"open {shown.at}"
        elif shown.door == "open" and self.is_locked(shown.at):
            return self._put_down()
        for place in self._locked_places():
            if place != shown.at and self._key_for(place) == key:
                return f"go to {place}"
        return self._put_down()

    def _locked_places(self) -> list[str]:
        """Doors that did not open, those with what is wanted first."""
        found = [place for place in self.furniture if self.is_locked(place) and place not in self.shown.opened]
        wanted = self.kinds[0]

        def has(place: str) -> bool:
            fact = self.known.contents.get(place)
            return fact is not None and any(kind_of(thing) == wanted for thing in fact.value)

        return sorted(found, key=lambda place: (not has(place), kind_of(place) != self.errand.target))

    def _bring(self) -> str:
        """Put the thing down at the best place of the wanted kind."""
        shown, target = self.shown, self.errand.target
        places = [place for place in self.furniture if kind_of(place) == target and not self.is_shut(place)]
        if not places:
            return self.wander()
        place = self._best_place(places)
        if place != shown.at:
            return f"go to {place}"
        if shown.door == "closed":
            if self.is_locked(place):
                return self._put_down()  # to fetch the key first
            return f"open {place}" if not shown.says else self.wander()
        return f"move {shown.holds} to {place}"

    def _best_place(self, places: list[str]) -> str:
        """One that was worth `SATISFIED`, else an untried one, else the best."""
        kind = kind_of(self.shown.holds)
        worth: dict[str, DatedFact] = {}
        for attempt, fact in self.known.attempts.items():
            is_good = attempt.kind == kind and attempt.place in places and fact.value > 0
            if is_good and (attempt.place not in worth or fact.last > worth[attempt.place].last):
                worth[attempt.place] = fact
        fresh = {place: fact for place, fact in worth.items() if fact.last >= self.doubt}
        good = [place for place in places if place in fresh and fresh[place].value >= SATISFIED]
        untried = [place for place in places if place not in fresh]
        used = {place for _, place, _ in failed_puts(self.shown.done)}
        if self.errand.number > 1 and (
            same := [place for place in places if place in placed(self.shown.done).values()]
        ):
            return same[0]
        if good:
            choice = good
        elif untried and (self.explores or not fresh):
            choice = [place for place in untried if place not in used] or untried
        else:
            best = max(fact.value for fact in worth.values())
            choice = [place for place in places if place in worth and worth[place].value == best]
        return self.shown.at if self.shown.at in choice else choice[0]

    def _put_down(self) -> str:
        """Put down what is in the hand, here or nearby."""
        shown = self.shown
        move = f"move {shown.holds} to {shown.at}"
        if move in self.actions:
            return move
        flat = [place for place in shown.visited if place in self.furniture and place != shown.at]
        return f"go to {flat[-1]}" if flat else self.wander()

    def _look_under_lamp(self) -> str:
        """Use the lamp, or look for it."""
        shown, lamp = self.shown, self.errand.target
        for thing in shown.sees:
            if kind_of(thing) == lamp:
                return f"use {thing}"
        for place, fact in sorted(self.known.contents.items(), key=lambda pair: -pair[1].last):
            is_there = any(kind_of(thing) == lamp for thing in fact.value) and place != shown.at
            if is_there and place in self.furniture and not self.is_shut(place):
                return f"go to {place}"
        return self._look_for(lamp) or self.wander()

    # Searching.

    def _fetch(self) -> str:
        """Take a thing that is wanted, or go where one may be."""
        shown, down = self.shown, placed(self.shown.done)
        finished = [thing for thing, place in down.items() if kind_of(place) == self.errand.target]
        retry = self._to_retry(finished)
        for kind in self.kinds:
            wanted = [
                thing for thing in shown.sees if kind_of(thing) == kind and (thing not in finished or thing in retry)
            ]
            if wanted:
                return f"take {sorted(wanted)[0]} from {shown.at}"
            if (step := self._go_to_thing(kind, finished, retry, down)) is not None:
                return step
            if kind == self.kinds[0] and (step := self._look_for(kind)) is not None:
                return step
        return self.wander()

    def _to_retry(self, finished: Collection[str]) -> list[str]:
        """Things that lie at the wanted place without completing the task, and may be treated otherwise."""
        if self.errand.number > 1 or not self.errand.mark:
            return []
        wanted = [thing for thing in finished if kind_of(thing) == self.kinds[0]]
        return [thing for thing in wanted if set(self._ways()) - set(treatments(self.shown.done, thing))]

    def _go_to_thing(
        self, kind: str, finished: Collection[str], retry: Collection[str], down: Mapping[str, str]
    ) -> str | None:
        """On the way to a thing whose place is known."""
        places = dict.fromkeys(down[thing] for thing in retry if thing in down)
        places |= {place: None for thing, place in down.items() if kind_of(thing) == kind and thing not in finished}
        hints: list[tuple[int, str]] = []
        for place, fact in self.known.contents.items():
            is_there = any(kind_of(thing) == kind and thing not in down for thing in fact.value)
            if is_there and (place not in self.shown.visited or self._is_left(place, kind, down)):
                hints.append((-fact.last, place))
        for place in (*places, *(place for _, place in sorted(hints))):
            if place in self.furniture and (step := self._open_at(place)) is not None:
                return step
        return None

    def _is_left(self, place: str, kind: str, taken: Collection[str]) -> bool:
        """Whether a visited place still has such a thing: it was seen there in this episode, and not taken.

        The newest record of the place is of this episode if it agrees with what is seen there now.
        """
        if place == self.shown.at:
            return any(kind_of(thing) == kind and thing not in taken for thing in self.shown.sees)
        return self.errand.number > 1 or bool(self.shown.done)

    def _open_at(self, place: str) -> str | None:
        """Go to furniture, and open it; `None` if it cannot be reached or opened, or is open already."""
        shown = self.shown
        if self.is_locked(place) and shown.holds == NOTHING and (step := self._unlock_from_afar(place)) is not None:
            return step
        if place != shown.at:
            return None if self.is_shut(place) else f"go to {place}"
        if shown.door == "closed" and shown.holds == NOTHING and not shown.says and not self.is_locked(place):
            return f"open {place}"
        return None

    def _look_for(self, kind: str) -> str | None:
        """Look into furniture that was not visited in this episode."""
        shown = self.shown
        is_new = shown.door == "closed" and shown.at not in shown.visited and not shown.says
        if is_new and not self.is_locked(shown.at):
            return f"open {shown.at}"
        open_ = [
            place
            for place in self.furniture
            if place not in shown.visited and place != shown.at and not self.is_shut(place)
        ]
        free = [place for place in open_ if not self.is_locked(place)]
        likely = [place for place in free if self._is_likely(kind, place)]
        if likely:
            return f"go to {self._most_likely(kind, likely)}"
        for place in [*open_, shown.at]:
            if self.is_locked(place) and place not in shown.visited and (step := self._unlock_from_afar(place)):
                return step
        return f"go to {self._most_likely(kind, free)}" if free else None

    def _is_likely(self, kind: str, place: str) -> bool:
        """Whether a thing may well be there: nothing is known about the place, and others of its kind hold such things.

        What memory has seen in other houses counts, and what is common.
        """
        fact = self.known.contents.get(place)
        if fact is not None and fact.last >= self.doubt:
            return False
        is_seen = (kind, kind_of(place)) in self.known.habits
        return is_seen or not self.common_sense or is_common(kind, kind_of(place))

    def _most_likely(self, kind: str, places: Sequence[str]) -> str:
        """The furniture where such a thing is most likely to be: by records of other houses, then by common sense.

        What memory has seen there in this house, without such a thing, counts against it.
        """
        seen = self.known.habits
        total = sum(times for (thing, _), times in seen.items() if thing == kind)

        def rank(place: str) -> tuple[bool, float, int]:
            fact = self.known.contents.get(place)
            was_empty = fact is not None and fact.last >= self.doubt
            share = seen.get((kind, kind_of(place)), 0.0) / total if total else 0.0
            return was_empty, -round(share, 6), likely_rank(kind, kind_of(place)) if self.common_sense else 0

        best = min(map(rank, places))
        return pick([place for place in places if rank(place) == best], self.rng)

    # Keys.

    def _unlock_from_afar(self, place: str) -> str | None:
        """On the way to the key of a door; `None` if no keychain is left to try."""
        key = self._key_for(place)
        if key is None or self.shown.holds != NOTHING:
            return None
        shown = self.shown
        if key in shown.sees:
            return f"take {key} from {shown.at}"
        down = placed(shown.done)
        spots = [down[key]] if key in down else []
        spots += [spot for spot, fact in self.known.contents.items() if key in fact.value and key not in down]
        for spot in spots:
            if spot == shown.at and shown.door == "closed" and not shown.says:
                return f"open {spot}"
            if spot in self.furniture and spot != shown.at and not self.is_shut(spot):
                return f"go to {spot}"
        return None

    def _key_for(self, place: str) -> str | None:
        """The keychain that opened a door, else one that was not tried there."""
        tried = {key: fact for (spot, key), fact in self.known.keys.items() if spot == place and key != NOTHING}
        working = [key for key, fact in tried.items() if fact.value]
        if working:
            return max(working, key=lambda key: tried[key].last)
        kept = (thing for fact in self.known.contents.values() for thing in fact.value)
        seen: set[str] = {thing for thing in kept if kind_of(thing) == "keychain"}
        seen |= {thing for thing in (*self.shown.sees, *placed(self.shown.done)) if kind_of(thing) == "keychain"}
        untried = sorted(key for key in seen if key not in tried or tried[key].last < self.doubt)
        if untried:
            return untried[0]
        return min(tried, key=lambda key: tried[key].last) if tried else None

    # Treating.

    def _treat(self, thing: str) -> str | None:
        """The next step of the treatment; `None` when it is done."""
        shown, mark = self.shown, self.errand.mark
        ways = treatments(shown.done, thing)
        seen = read_marks(shown.says, thing)
        if seen is not None and mark in seen:
            return None
        failed = {way for other, _, tried in self.own_failures() for way in tried if other == thing}
        if ways and ways[-1] not in failed and seen is None:
            return f"examine {thing}" if self._does(ways[-1]) is None and self._has_failed else None
        tried = failed | set(ways)
        for way in self._ways():
            if way not in tried:
                verb, place = way
                return f"{verb} {thing} with {place}" if place == shown.at else f"go to {place}"
        return None

    def _ways(self) -> list[Way]:
        """Treatments in the order in which they are tried."""
        found = []
        for order, (verb, kind) in enumerate(WAYS[self.errand.mark]):
            for place in self.furniture:
                if kind_of(place) == kind and not self.is_shut(place):
                    works = self._does((verb, place))
                    rank = 1 if works is None else 0 if works else 2
                    found.append(
                        ((rank, -self._did_elsewhere((verb, place)), order, place != self.shown.at), (verb, place))
                    )
        # Where one appliance of a kind has failed, another kind is tried before its like.
        failed = {kind_of(place) for (rank, *_), (_, place) in found if rank == 2}
        return [way for _, way in sorted(found, key=lambda one: (one[0][0], kind_of(one[1][1]) in failed, one[0]))]

    def _does(self, way: Way) -> bool | None:
        """Whether a treatment does what is wanted; `None` if nothing is known."""
        mark = self.errand.mark
        found: DatedFact | None = None
        seen = self.known.marks.get(way)
        if seen is not None and seen.last >= self.doubt:
            found = DatedFact(mark in seen.value, seen.last)
        for attempt, fact in self.known.attempts.items():
            if attempt.mark != mark or not attempt.ways or attempt.ways[-1] != way or fact.last < self.doubt:
                continue
            if not fact.value and attempt.word != attempt.kind:
                continue  # in all likelihood the thing was of another kind
            if found is None or fact.last > found.last:
                found = DatedFact(fact.value > 0, fact.last)
        return None if found is None else bool(found.value)

    def _did_elsewhere(self, way: Way) -> float:
        """In other houses, how often such a treatment did what is wanted less how often it did not."""
        general, balance = (way[0], kind_of(way[1])), 0.0
        for attempt, fact in self.known.elsewhere.items():
            if attempt.mark == self.errand.mark and attempt.ways and attempt.ways[-1] == general:
                balance += 1.0 if fact.value > 0 else -1.0
        return balance

    @cached_property
    def _has_failed(self) -> bool:
        """Whether any treatment for this mark is known to have failed."""
        mark, usual = self.errand.mark, WAYS[self.errand.mark][0]
        seen = [fact.value for (verb, place), fact in self.known.marks.items() if (verb, kind_of(place)) == usual]
        return (
            any(not fact.value for attempt, fact in self.known.attempts.items() if attempt.mark == mark)
            or any(mark not in marks for marks in seen)
            or bool(self.own_failures())
        )
