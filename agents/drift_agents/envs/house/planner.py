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
    is_common,
    kind_of,
    likely_rank,
    parse_errand,
    plain,
    read_house_state,
)
from drift_agents.errors import ArgumentError
from drift_agents.policy.base import Reply, pick
from drift_agents.prompt.view import PromptView, check_conflict
from drift_envs.checks import check_flag

SATISFIED = 0.9
"""The score from which on a place is used again without a search for a better one."""


class HousePlanner:
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

    name = "house"

    def __init__(self, *, conflict: str = "majority", explores: bool = True, common_sense: bool = True) -> None:
        self.conflict = check_conflict(conflict)
        self.explores = check_flag("explores", explores)
        self.common_sense = check_flag("common_sense", common_sense)

    def decide(self, view: PromptView, rng: np.random.Generator) -> Reply:
        """Choose an action.

        Args:
            view: what the policy decides by.
            rng: for ties and exploration.

        Raises:
            ArgumentError: if the prompt has no state of a house.
        """
        words = {plain(action): action for action in view.actions}
        view = replace(view, actions=tuple(words))
        shown = read_house_state(view.state)
        if shown is None:
            raise ArgumentError(f"the state should be one of a house. Received {view.state!r}")
        errand = parse_errand(shown.task)
        if errand is None or not view.actions:
            return Reply(words[pick(view.actions, rng)] if words else "look")
        known = learn_house(shown, (*view.elsewhere, *view.here), self.conflict)
        beliefs = HouseBeliefs(view, shown, errand, known, self.explores, self.common_sense, rng)
        wanted = _HouseDecision(beliefs).choose()
        return Reply(words[wanted if wanted in words else pick(view.actions, rng)])


class _HouseDecision:
    """One decision.

    Args:
        beliefs: what is believed in it.
    """

    def __init__(self, beliefs: HouseBeliefs) -> None:
        self._beliefs = beliefs
        self._treatment = Treatment(beliefs)
        self._search = HouseSearch(beliefs, self._treatment)
        self._shown, self._errand, self._known = beliefs.shown, beliefs.errand, beliefs.known

    def choose(self) -> str:
        """The command."""
        holds = self._shown.holds
        if holds == NOTHING:
            return self._search.fetch()
        if kind_of(holds) == "keychain":
            return self._use_key()
        if kind_of(holds) not in self._beliefs.kinds[:1] and not self._is_worth_trying(holds):
            return self._put_down()
        if self._errand.is_light:
            return self._look_under_lamp()
        if self._errand.mark and (step := self._treatment.next_step(holds)):
            return step
        return self._bring()

    def _is_worth_trying(self, thing: str) -> bool:
        return kind_of(thing) in self._beliefs.kinds and not any(
            kind_of(other) == self._beliefs.kinds[0] for other in self._shown.sees
        )

    def _use_key(self) -> str:
        """Open the door for which the key was fetched, then put the key down."""
        shown, key = self._shown, self._shown.holds
        if shown.door == "closed" and self._beliefs.is_locked(shown.at):
            fact = self._known.keys.get((shown.at, key))
            if not shown.says and (fact is None or fact.value or fact.last < self._beliefs.doubt):
                return f"open {shown.at}"
        elif shown.door == "open" and self._beliefs.is_locked(shown.at):
            return self._put_down()
        for place in self._locked_places():
            if place != shown.at and self._search.key_for(place) == key:
                return f"go to {place}"
        return self._put_down()

    def _locked_places(self) -> list[str]:
        """Doors that did not open, those with what is wanted first."""
        found = [
            place
            for place in self._beliefs.furniture
            if self._beliefs.is_locked(place) and place not in self._shown.opened
        ]
        wanted = self._beliefs.kinds[0]

        def has(place: str) -> bool:
            fact = self._known.contents.get(place)
            return fact is not None and any(kind_of(thing) == wanted for thing in fact.value)

        return sorted(found, key=lambda place: (not has(place), kind_of(place) != self._errand.target))

    def _bring(self) -> str:
        """Put the thing down at the best place of the wanted kind."""
        shown, target = self._shown, self._errand.target
        places = [
            place for place in self._beliefs.furniture if kind_of(place) == target and not self._beliefs.is_shut(place)
        ]
        if not places:
            return self._beliefs.wander()
        place = self._best_place(places)
        if place != shown.at:
            return f"go to {place}"
        if shown.door == "closed":
            if self._beliefs.is_locked(place):
                return self._put_down()  # to fetch the key first
            return f"open {place}" if not shown.says else self._beliefs.wander()
        return f"move {shown.holds} to {place}"

    def _best_place(self, places: list[str]) -> str:
        """One that was worth `SATISFIED`, else an untried one, else the best."""
        kind = kind_of(self._shown.holds)
        worth: dict[str, DatedFact] = {}
        for attempt, fact in self._known.attempts.items():
            is_good = attempt.kind == kind and attempt.place in places and fact.value > 0
            if is_good and (attempt.place not in worth or fact.last > worth[attempt.place].last):
                worth[attempt.place] = fact
        fresh = {place: fact for place, fact in worth.items() if fact.last >= self._beliefs.doubt}
        good = [place for place in places if place in fresh and fresh[place].value >= SATISFIED]
        untried = [place for place in places if place not in fresh]
        used = {place for _, place, _ in failed_puts(self._shown.done)}
        if self._errand.number > 1 and (
            same := [place for place in places if place in placed(self._shown.done).values()]
        ):
            return same[0]
        if good:
            choice = good
        elif untried and (self._beliefs.explores or not fresh):
            choice = [place for place in untried if place not in used] or untried
        else:
            best = max(fact.value for fact in worth.values())
            choice = [place for place in places if place in worth and worth[place].value == best]
        return self._shown.at if self._shown.at in choice else choice[0]

    def _put_down(self) -> str:
        """Put down what is in the hand, here or nearby."""
        shown = self._shown
        move = f"move {shown.holds} to {shown.at}"
        if move in self._beliefs.actions:
            return move
        flat = [place for place in shown.visited if place in self._beliefs.furniture and place != shown.at]
        return f"go to {flat[-1]}" if flat else self._beliefs.wander()

    def _look_under_lamp(self) -> str:
        """Use the lamp, or look for it."""
        shown, lamp = self._shown, self._errand.target
        for thing in shown.sees:
            if kind_of(thing) == lamp:
                return f"use {thing}"
        for place, fact in sorted(self._known.contents.items(), key=lambda pair: -pair[1].last):
            is_there = any(kind_of(thing) == lamp for thing in fact.value) and place != shown.at
            if is_there and place in self._beliefs.furniture and not self._beliefs.is_shut(place):
                return f"go to {place}"
        return self._search.look_for(lamp) or self._beliefs.wander()


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
        return pick([place for place in places if rank(place) == best], self._beliefs.rng)

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
            if not fact.value and attempt.word != attempt.kind:
                continue  # in all likelihood the thing was of another kind
            if found is None or fact.last > found.last:
                found = DatedFact(fact.value > 0, fact.last)
        return None if found is None else bool(found.value)

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
        mark, usual = self._errand.mark, WAYS[self._errand.mark][0]
        seen = [fact.value for (verb, place), fact in self._known.marks.items() if (verb, kind_of(place)) == usual]
        return (
            any(not fact.value for attempt, fact in self._known.attempts.items() if attempt.mark == mark)
            or any(mark not in marks for marks in seen)
            or bool(self._beliefs.own_failures())
        )
