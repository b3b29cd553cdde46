"""What records tell about a house, and what a planner believes about one errand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from drift_agents.envs.house.states import (
    LIKE,
    NOTHING,
    Errand,
    ShownHouse,
    kind_of,
    parse_errand,
    plain,
    read_house_state,
)
from drift_agents.policy.base import pick
from drift_agents.prompt.view import PromptView, Recollection, Sightings, add_sighting, believe

_TAKE = re.compile(r"take (?P<thing>\w+ \d+) from (?P<place>\w+ \d+)")
_PUT = re.compile(r"(?:move|put) (?P<thing>\w+ \d+) (?:to|in/on|in|on) (?P<place>\w+ \d+)")
_TREAT = re.compile(r"(?P<verb>heat|cool|clean) (?P<thing>\w+ \d+) with (?P<place>\w+ \d+)")
_FOUND = re.compile(r"This is a (?P<marks>[a-z ]+?) (?P<thing>[a-z]+ \d+)\.")

Way = tuple[str, str]
"""A command of treatment and the appliance, as in `("heat", "microwave 1")`."""


class DatedFact(NamedTuple):
    """A believed value, and when it was last seen.

    Args:
        value: the value.
        last: when it was last seen, in the agent's interactions.
    """

    value: Any
    last: int


class Attempt(NamedTuple):
    """A thing put down at the wanted kind of place, or looked at under the wanted lamp, for a task.

    Args:
        word: the word of the task.
        kind: the kind of the thing.
        mark: what was to hold of it, or "".
        place: the furniture.
        ways: what was done to it, in order.
    """

    word: str
    kind: str
    mark: str
    place: str
    ways: tuple[Way, ...]


class HouseKnowledge(NamedTuple):
    """What is known from recollections, conflicts settled.

    Args:
        contents: by furniture of this house, the things that are kept there.
        shut: furniture that could not be reached.
        keys: by furniture and what was in the hand, whether it opened.
        attempts: the score of each attempt in this house; 0 where the task was not done.
        elsewhere: the same for other houses, with kinds in place of names.
        marks: by way, kind of thing left out: what it was found to do in this house, as in `{"hot"}`.
        habits: by kind of thing and kind of furniture, how often one was seen in the other, in other houses.
    """

    contents: Mapping[str, DatedFact]
    shut: Mapping[str, DatedFact]
    keys: Mapping[tuple[str, str], DatedFact]
    attempts: Mapping[Attempt, DatedFact]
    elsewhere: Mapping[Attempt, DatedFact]
    marks: Mapping[Way, DatedFact]
    habits: Mapping[tuple[str, str], float]


def treatments(done: Iterable[str], thing: str) -> tuple[Way, ...]:
    """What was done to a thing.

    Args:
        done: the commands that had an effect.
        thing: the thing.

    Example:
        >>> treatments(["take mug 1 from shelf 1", "heat mug 1 with microwave 1"], "mug 1")
        (('heat', 'microwave 1'),)
    """
    found = (_TREAT.fullmatch(line) for line in done)
    return tuple((one["verb"], one["place"]) for one in found if one is not None and one["thing"] == thing)


def placed(done: Iterable[str]) -> dict[str, str]:
    """Where the things that were put down are now.

    Args:
        done: the commands that had an effect.
    """
    places: dict[str, str] = {}
    for line in done:
        if (found := _TAKE.fullmatch(line)) is not None:
            places.pop(found["thing"], None)
        elif (found := _PUT.fullmatch(line)) is not None:
            places[found["thing"]] = found["place"]
    return places


def failed_puts(done: tuple[str, ...]) -> list[tuple[str, str, tuple[Way, ...]]]:
    """The things that were put down in an episode that still goes on: thing, place, and what had been done to it.

    Args:
        done: the commands that had an effect.
    """
    found = []
    for number, line in enumerate(done):
        if (put := _PUT.fullmatch(line)) is not None:
            found.append((put["thing"], put["place"], treatments(done[:number], put["thing"])))
    return found


def _kept_here(shown: ShownHouse) -> frozenset[str]:
    """What is kept where the agent stands: what it sees, without what it brought and with what it took."""
    origins: dict[str, str] = {}
    for line in shown.done:
        if (found := _TAKE.fullmatch(line)) is not None:
            origins.setdefault(found["thing"], found["place"])
    seen = {thing for thing in shown.sees if origins.get(thing, shown.at) == shown.at}
    return frozenset(seen | {thing for thing, place in origins.items() if place == shown.at})


def learn_house(here: ShownHouse, recalled: Iterable[Recollection], conflict: str) -> HouseKnowledge:
    """Summarise recollections.

    Args:
        here: the present state.
        recalled: the recollections of a prompt, in order.
        conflict: how several outcomes of one (state, action) are weighed (`drift_agents.prompt.view`).
    """
    tables: dict[str, dict[Any, Sightings[Any]]] = {name: {} for name in _TABLES}
    habits: dict[tuple[str, str], float] = {}
    for item in recalled:
        support, last = item.support, item.last
        for table, house, key, value in _read_facts(item):
            if house == here.house:
                add_sighting(tables[table].setdefault(key, {}), value, support, last)
            elif table == "attempts":
                add_sighting(tables["elsewhere"].setdefault(_general(key), {}), value, support, last)
            elif table == "contents":
                for thing in sorted(value):
                    pair = (kind_of(thing), kind_of(key))
                    habits[pair] = habits.get(pair, 0.0) + support
    facts: dict[str, dict[Any, DatedFact]] = {name: {} for name in _TABLES}
    for name, sightings in tables.items():
        for key, seen in sightings.items():
            value = believe(seen, conflict)
            facts[name][key] = DatedFact(value, seen[value][1])
    return HouseKnowledge(habits=habits, **facts)


_TABLES = ("contents", "shut", "keys", "attempts", "elsewhere", "marks")


@lru_cache(maxsize=65536)
def _read_facts(item: Recollection) -> tuple[tuple[str, int, Any, Any], ...]:
    """What one recollection shows: table, house, key and value of each fact."""
    before, after = read_house_state(item.state), read_house_state(item.outcome.state)
    if before is None or after is None:
        return ()
    house, action = before.house, plain(item.action)
    found: list[tuple[str, int, Any, Any]] = []
    if (attempt := _read_attempt(before, item)) is not None:
        found.append(("attempts", house, attempt, item.outcome.score))
    found += [("contents", house, shown.at, _kept_here(shown)) for shown in (before, after) if shown.is_seen]
    if action.startswith("go to ") and before.at != action[6:]:
        # a lost command (`Nothing happens.`) shows nothing about doors
        if after.says.startswith("The door") or after.at == action[6:]:
            found.append(("shut", house, action[6:], after.at != action[6:]))
    elif action.startswith("open ") and before.at == action[5:]:
        found.append(("keys", house, (before.at, before.holds), after.door == "open"))
    elif action.startswith("examine ") and after.holds != NOTHING:
        ways, seen = treatments(after.done, after.holds), read_marks(after.says, after.holds)
        if ways and seen is not None and (len(ways) == 1 or ways[-1][0] != "clean"):
            # of several, the last one decides between hot and cold, and it is open which one cleaned
            found.append(("marks", house, ways[-1], seen if len(ways) == 1 else seen - {"clean"}))
    return tuple(found)


def _read_attempt(before: ShownHouse, item: Recollection) -> Attempt | None:
    """The attempt that an action was, if it was one."""
    errand, action = parse_errand(before.task), plain(item.action)
    if errand is None:
        return None
    if errand.is_light:
        used = action.startswith(f"use {errand.target}") and before.holds != NOTHING
        if not used or action in before.done:  # a second `use` turns the lamp off
            return None
        return Attempt(errand.thing, kind_of(before.holds), "", errand.target, ())
    found = _PUT.fullmatch(action)
    if found is None or before.holds != found["thing"] or kind_of(found["place"]) != errand.target:
        return None
    if errand.number > 1 and not item.outcome.ended:
        lying = placed(before.done).items()
        others = [thing for thing, place in lying if kind_of(place) == errand.target and thing != found["thing"]]
        if kind_of(found["thing"]) not in map(kind_of, others):
            return None  # the first of two
    ways = treatments(before.done, found["thing"])
    return Attempt(errand.thing, kind_of(found["thing"]), errand.mark, found["place"], ways)


def _general(attempt: Attempt) -> Attempt:
    """The attempt without the names of one house."""
    ways = tuple((verb, kind_of(place)) for verb, place in attempt.ways)
    return attempt._replace(place=kind_of(attempt.place), ways=ways)


def read_marks(says: str, thing: str) -> frozenset[str] | None:
    """What an answer says about a thing; `None` if it says nothing about it.

    Args:
        says: the answer to `examine`.
        thing: the thing.

    Example:
        >>> sorted(read_marks("This is a hot and clean mug 1.", "mug 1")), read_marks("Nothing happens.", "mug 1")
        (['clean', 'hot'], None)
    """
    if says == f"There's nothing special about {thing}.":
        return frozenset()
    found = _FOUND.fullmatch(says)
    return frozenset(found["marks"].split(" and ")) if found is not None and found["thing"] == thing else None


class HouseBeliefs:
    """The state, the task and what is known, with what follows about words and doors.

    Args:
        view: the prompt.
        shown: its state.
        errand: its task.
        known: what its records show.
        explores: whether untried meanings of the word are considered.
        common_sense: whether it is known where kinds of things are commonly kept.
        rng: for ties.
    """

    def __init__(
        self,
        view: PromptView,
        shown: ShownHouse,
        errand: Errand,
        known: HouseKnowledge,
        explores: bool,
        common_sense: bool,
        rng: np.random.Generator,
    ) -> None:
        self.shown, self.errand, self.known, self.rng = shown, errand, known, rng
        self.explores, self.common_sense = explores, common_sense
        self.actions = view.actions
        self.doubt = view.trusted_since
        gos = [action[6:] for action in view.actions if action.startswith("go to ")]
        self.furniture = tuple(gos if shown.at == NOTHING else (*gos, shown.at))

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """The kinds that the word may refer to, the most believable first."""
        word = self.errand.thing
        candidates = [word, LIKE[word]] if self.explores and word in LIKE else [word]
        failures = {kind_of(thing) for thing, _, ways in self.own_failures() if self._blames_word(ways)}
        beliefs = {kind: self._believe_word(kind) for kind in candidates}

        def rank(kind: str) -> tuple[int, float]:
            belief = beliefs[kind]
            if kind in failures:
                return 3, 0.0
            if belief is None or belief.last < self.doubt:
                return 1, float(kind != word)
            return (0, -belief.last) if belief.value else (2, belief.last)

        return tuple(sorted(candidates, key=rank))

    def _believe_word(self, kind: str) -> DatedFact | None:
        """Whether the word was found to refer to a kind; a failed attempt with a treatment shows nothing."""
        found: DatedFact | None = None
        tables: tuple[Mapping[Attempt, DatedFact], ...] = (self.known.attempts, self.known.elsewhere)
        for table in tables:
            for attempt, fact in table.items():
                if attempt.word != self.errand.thing or attempt.kind != kind:
                    continue
                if not fact.value and attempt.mark:
                    continue
                if found is None or fact.last > found.last:
                    found = DatedFact(fact.value > 0, fact.last)
        return found

    def own_failures(self) -> list[tuple[str, str, tuple[Way, ...]]]:
        """What was put at the wanted place in this episode, without completing the task."""
        if self.errand.is_light:
            return []
        found = [one for one in failed_puts(self.shown.done) if kind_of(one[1]) == self.errand.target]
        kinds = [kind_of(thing) for thing in {thing: None for thing, _, _ in found}]
        return [one for one in found if kinds.count(kind_of(one[0])) >= self.errand.number]

    def _blames_word(self, ways: tuple[Way, ...]) -> bool:
        """Whether a failed attempt shows that the word means something else."""
        marks = self.known.marks
        return not self.errand.mark or any(way in marks and self.errand.mark in marks[way].value for way in ways)

    def is_shut(self, place: str) -> bool:
        """Whether it could not be reached."""
        fact = self.known.shut.get(place)
        return fact is not None and bool(fact.value) and fact.last >= self.doubt

    def is_locked(self, place: str) -> bool:
        """Whether it did not open with an empty hand."""
        fact = self.known.keys.get((place, NOTHING))
        return fact is not None and not fact.value and fact.last >= self.doubt

    def wander(self) -> str:
        """Where nothing is left to do: look behind closed doors again, or anywhere."""
        gos = [action for action in self.actions if action.startswith(("go to ", "open "))]
        return pick(gos or self.actions, self.rng)
