"""A house under given knob values: where everything is, and what each command does."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, NamedTuple

from drift_envs.envs.house.knobs import EFFECTS, KNIVES, ROOMS, SLICED, THINGS, VERBS, Blueprint
from drift_envs.knobs import Value
from drift_envs.tasks.households import MARKS

NOWHERE = -1


class Verb(IntEnum):
    """What a command does."""

    GO = 0
    OPEN = 1
    CLOSE = 2
    TAKE = 3
    PUT = 4
    HEAT = 5
    COOL = 6
    CLEAN = 7
    USE = 8
    EXAMINE = 9
    LOOK = 10
    INVENTORY = 11
    HELP = 12
    SLICE = 13


TREATMENTS = {Verb.HEAT: "heat", Verb.COOL: "cool", Verb.CLEAN: "clean"}
"""The commands for appliances."""

VERB_OF = {name: verb for verb, name in TREATMENTS.items()}
"""By name of a treatment, the command."""


class Command(NamedTuple):
    """A parsed command.

    Args:
        verb: what it does.
        thing: the thing, by position, or `NOWHERE`.
        place: the receptacle, by position, or `NOWHERE`; for `SLICE`, the knife.
    """

    verb: Verb
    thing: int = NOWHERE
    place: int = NOWHERE


class HouseState(NamedTuple):
    """Where everything is, as far as it differs from the start of an episode.

    Args:
        at: the receptacle where the agent stands, or `NOWHERE`.
        held: the thing in its hand, or `NOWHERE`.
        moved: the things that were taken, and where each is now; a thing in the hand is `NOWHERE`.
        opened: the receptacles that are open.
        marks: the things that were treated, and what holds of each, of `hot`, `cold`, `clean`, `sliced`.
        lit: the lamps that are on.
    """

    at: int = NOWHERE
    held: int = NOWHERE
    moved: tuple[tuple[int, int], ...] = ()
    opened: frozenset[int] = frozenset()
    marks: tuple[tuple[int, frozenset[str]], ...] = ()
    lit: frozenset[int] = frozenset()

    def marks_of(self, thing: int) -> frozenset[str]:
        """What holds of a thing."""
        for one, found in self.marks:
            if one == thing:
                return found
        return frozenset()


class HouseLayout:
    """A house under given knob values, before any command.

    Receptacles and things are numbered by their position in the blueprint, whatever they are called.

    Args:
        blueprint: the house.
        knobs: the values of the knobs but `house` and `transient`.
    """

    def __init__(self, blueprint: Blueprint, knobs: Mapping[str, Value]) -> None:
        self.blueprint = blueprint
        self.furniture, self.things = blueprint.furniture, blueprint.things
        self.number = blueprint.number
        self._set_furniture(knobs)
        self._set_things(knobs)
        self.words: Mapping[str, str] = knobs.get("words") or {}
        self._habit = int(knobs.get("tidy") or 0)

    def _set_furniture(self, knobs: Mapping[str, Value]) -> None:
        names: Mapping[str, str] = knobs.get("names") or {}
        gone, locked, keys = knobs.get("gone") or (), knobs.get("locked") or (), knobs.get("keys") or {}
        effects: Mapping[str, str] = knobs.get("effects") or {}
        self.names: list[str] = []
        self.kinds: list[str] = []
        """The word for each receptacle's kind, as tasks use it."""
        for one in self.furniture:
            kind = names.get(one.kind, one.kind)
            name = names.get(one.name, f"{kind} {one.name.rpartition(' ')[2]}")
            self.names.append(name)
            self.kinds.append(name.rpartition(" ")[0])
        self.shown = tuple(
            place for place, one in enumerate(self.furniture) if one.name not in gone and one.kind not in gone
        )
        self.by_name = {self.names[place]: place for place in self.shown}
        self.shut_rooms = frozenset(room for room in ROOMS if room in locked)
        by_thing = {one.name: index for index, one in enumerate(self.things)}
        wanted = {place: keys[one.name] for place, one in enumerate(self.furniture) if one.name in keys}
        self.keys = {place: by_thing[key] for place, key in wanted.items() if key in by_thing}
        self.locked = frozenset(
            place
            for place, one in enumerate(self.furniture)
            if one.name in locked or one.kind in locked or (place in wanted and place not in self.keys)
        )
        self.opens = frozenset(place for place, one in enumerate(self.furniture) if one.opens)
        self.verbs = {place: VERB_OF[VERBS[one.kind]] for place, one in enumerate(self.furniture) if one.kind in VERBS}
        self.effects = {
            place: effects.get(one.name, effects.get(one.kind, EFFECTS[one.kind]))
            for place, one in enumerate(self.furniture)
            if one.kind in EFFECTS
        }

    def _set_things(self, knobs: Mapping[str, Value]) -> None:
        kept: Mapping[str, str] = knobs.get("kept") or {}
        arrangement, wander = int(knobs.get("arrangement") or 0), float(knobs.get("wander") or 0.0)
        shown = frozenset(self.shown)
        furniture = {one.name: place for place, one in enumerate(self.furniture)}
        self.thing_by_name = {one.name: index for index, one in enumerate(self.things)}
        starts: list[int] = []
        for one in self.things:
            home = furniture.get(kept.get(one.kind, ""), NOWHERE)
            first = 0 if one.is_lamp else arrangement + int(wander + one.jitter)
            slots = (one.slots[(first + step) % len(one.slots)] for step in range(len(one.slots)))
            # A key is never kept behind a lock, and nothing in furniture that is gone.
            places = [home, *slots] if home != NOWHERE else list(slots)
            free = [place for place in places if place in shown and (one.kind != "keychain" or place not in self.keys)]
            starts.append(free[0] if free else self.shown[0])
        self.starts = tuple(starts)
        """By thing, the receptacle at the start."""
        contents: dict[int, list[int]] = {}
        for thing, place in enumerate(starts):
            contents.setdefault(place, []).append(thing)
        self.start_contents = {place: tuple(things) for place, things in contents.items()}
        """By receptacle, the things in or on it at the start."""
        self.takes = [THINGS[one.kind].takes if one.kind in THINGS else frozenset() for one in self.things]

    def facts(self, place: int) -> tuple[Any, ...]:
        """Everything about a receptacle that knobs decide. For evaluators.

        Args:
            place: the receptacle.
        """
        things = tuple(sorted(thing for thing, start in enumerate(self.starts) if start == place))
        tidy = tuple(thing for thing in range(len(self.things)) if self._habit and self.is_tidy(thing, place))
        locks = (place in self.locked, self.keys.get(place), self.furniture[place].room in self.shut_rooms)
        return (self.names[place], place in self.shown, things, self.effects.get(place), locks, tidy)

    def is_tidy(self, thing: int, place: int) -> bool:
        """Whether this is the place where the household wants such a thing, among furniture of its kind."""
        if not self._habit:
            return True
        kind = self.furniture[place].kind
        same = [one for one in self.shown if self.furniture[one].kind == kind]
        offset = int(self.blueprint.habits[self.things[thing].kind, kind] * len(same))
        return same[(offset + self._habit) % len(same)] == place


class HouseRules(HouseLayout):
    """A house under given knob values, with the effects of commands on states."""

    def place_of(self, state: HouseState, thing: int) -> int:
        """Where a thing is; `NOWHERE` if it is in the agent's hand."""
        for one, place in state.moved:
            if one == thing:
                return place
        return self.starts[thing]

    def contents(self, state: HouseState, place: int) -> tuple[int, ...]:
        """The things in or on a receptacle, open or not."""
        here = self.start_contents.get(place, ())
        if not state.moved:
            return here
        moved = dict(state.moved)
        found = [thing for thing in here if thing not in moved]
        found += [thing for thing, now in state.moved if now == place]
        return tuple(found)

    def is_accessible(self, state: HouseState, place: int) -> bool:
        """Whether things can be taken from a receptacle and put there."""
        return place not in self.opens or place in state.opened

    def visible(self, state: HouseState) -> tuple[int, ...]:
        """The things that the agent sees where it stands."""
        if state.at == NOWHERE or not self.is_accessible(state, state.at):
            return ()
        return self.contents(state, state.at)

    def apply(self, state: HouseState, command: Command | None) -> HouseState | None:
        """The state after a command; `None` if nothing happens.

        Args:
            state: the state before.
            command: the command.
        """
        if command is None:
            return None
        verb, thing, place = command
        if verb is Verb.GO:
            if place == state.at or self.furniture[place].room in self.shut_rooms:
                return None
            return HouseState(place, *state[1:])  # three times faster than `_replace`, for each place of a search
        if verb is Verb.SLICE:
            can_slice = self.is_sliceable(state, thing) and place == state.held
            return mark_thing(state, thing, state.marks_of(thing) | {"sliced"}) if can_slice else None
        if verb >= Verb.LOOK:
            return state
        if verb is Verb.EXAMINE:
            known = place == state.at if place != NOWHERE else thing == state.held or thing in self.visible(state)
            return state if known else None
        if verb is Verb.USE:
            if thing not in self.visible(state) or not self.things[thing].is_lamp:
                return None
            return state._replace(lit=state.lit ^ {thing})
        if place != state.at:
            return None
        if verb is Verb.OPEN:
            return state._replace(opened=state.opened | {place}) if self._can_open(state, place) else None
        if verb is Verb.CLOSE:
            return state._replace(opened=state.opened - {place}) if place in state.opened else None
        if verb is Verb.TAKE:
            if state.held != NOWHERE or thing not in self.visible(state) or self.things[thing].is_lamp:
                return None
            return move_thing(state, thing, NOWHERE)
        if thing != state.held:
            return None
        if verb is Verb.PUT:
            return move_thing(state, thing, place) if self.is_accessible(state, place) else None
        if self.verbs.get(place) is not verb or TREATMENTS[verb] not in self.takes[thing]:
            return None
        return mark_thing(state, thing, self._treated(state.marks_of(thing), self.effects[place]))

    def is_sliceable(self, state: HouseState, thing: int) -> bool:
        """Whether the agent can slice a thing with what it holds."""
        if state.held == NOWHERE or self.things[state.held].kind not in KNIVES:
            return False
        return self.things[thing].kind in SLICED and thing in self.visible(state)

    def _can_open(self, state: HouseState, place: int) -> bool:
        if place not in self.opens or place in state.opened or place in self.locked:
            return False
        key = self.keys.get(place)
        return key is None or key == state.held

    @staticmethod
    def _treated(marks: frozenset[str], effect: str) -> frozenset[str]:
        """What holds of a thing after an appliance has done this to it; heat drives out cold."""
        if effect == "nothing":
            return marks
        if effect == "clean":
            return marks | {"clean"}
        return (marks - {"hot", "cold"}) | {MARKS[effect]}


def mark_thing(state: HouseState, thing: int, marks: frozenset[str]) -> HouseState:
    """The state in which exactly this holds of a thing.

    Args:
        state: the state before.
        thing: the thing.
        marks: of `hot`, `cold`, `clean` and `sliced`.
    """
    others = tuple(pair for pair in state.marks if pair[0] != thing)
    return state._replace(marks=tuple(sorted((*others, (thing, marks)))) if marks else others)


def move_thing(state: HouseState, thing: int, place: int) -> HouseState:
    """The state in which a thing is elsewhere.

    Args:
        state: the state before.
        thing: the thing.
        place: the receptacle, or `NOWHERE` for the agent's hand.
    """
    moved = tuple(sorted((*(pair for pair in state.moved if pair[0] != thing), (thing, place))))
    return state._replace(held=thing if place == NOWHERE else NOWHERE, moved=moved)
