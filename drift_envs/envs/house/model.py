"""A house under given knob values: where everything is, what each command does, and the words for both.

The phrases are those of ALFWorld's text interface (Shridhar et al., 2021), which agents parse.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum
from functools import lru_cache
from typing import Any, NamedTuple

from drift_envs.envs.house.knobs import EFFECTS, KNIVES, ROOMS, SLICED, THINGS, VERBS, Blueprint, draw_house
from drift_envs.households import MARKS, NOTHING
from drift_envs.knobs import Value

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


VERB_OF = {name: verb for verb, name in TREATMENTS.items()}
"""By name of a treatment, the command."""


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


_CACHED = 4096
"""How many parsed commands a model keeps."""

_PUT = re.compile(r"(?:put|move) (?P<thing>[a-z]+ \d+) (?:in/on|in|on|to|into|onto) (?P<place>[a-z]+ \d+)")
_TWO = re.compile(r"(?P<verb>take|heat|cool|clean|slice) (?P<thing>[a-z]+ \d+) (?:from|with) (?P<place>[a-z]+ \d+)")
_ONE = re.compile(r"(?P<verb>go to|open|close|use|examine) (?P<name>[a-z]+ \d+)")
_BARE = {"look": Verb.LOOK, "inventory": Verb.INVENTORY, "help": Verb.HELP}
_LINKS = {"take": "from", "heat": "with", "cool": "with", "clean": "with", "slice": "with"}

HELP = (
    "Available commands: look, inventory, go to (receptacle), open (receptacle), close (receptacle), "
    "take (object) from (receptacle), move (object) to (receptacle), examine (something), use (object), "
    "heat (object) with (receptacle), clean (object) with (receptacle), cool (object) with (receptacle), "
    "slice (object) with (object)."
)


class HouseModel(HouseRules):
    """A house under given knob values, in words.

    Args:
        blueprint: the house.
        knobs: the values of the knobs but `house` and `transient`.

    Example:
        >>> model = make_model(7, {})
        >>> state = model.apply(HouseState(), model.parse("go to fridge 1"))
        >>> model.describe(HouseState(), model.parse("go to fridge 1"), state)
        'You arrive at fridge 1. The fridge 1 is closed.'
        >>> model.apply(HouseState(), model.parse("open fridge 1")) is None
        True
    """

    def __init__(self, blueprint: Blueprint, knobs: Mapping[str, Value]) -> None:
        super().__init__(blueprint, knobs)
        self._commands: dict[str, Command | None] = {}
        # Listed by their present names, so that furniture that changed places looks as before.
        kinds = list(dict.fromkeys(one.kind for one in self.furniture))
        self._listed = sorted(
            self.shown, key=lambda place: (kinds.index(self.furniture[place].kind), int(self.names[place].split()[1]))
        )
        self._gos = [f"go to {self.names[place]}" for place in self._listed]
        self._arrivals: dict[int, str] = {}

    def parse(self, text: str) -> Command | None:
        """A command, `None` if it is none or names what is not in the house.

        Args:
            text: the command; both `put ... in/on ...` and `move ... to ...` are understood.
        """
        try:
            return self._commands[text]
        except KeyError:
            if len(self._commands) >= _CACHED:
                self._commands.clear()
            found = self._commands[text] = self._parse(" ".join(text.lower().split()))
            return found

    def _parse(self, text: str) -> Command | None:
        if text in _BARE:
            return Command(_BARE[text])
        if (found := _ONE.fullmatch(text)) is not None:
            verb, name = found["verb"], found["name"]
            place, thing = self.by_name.get(name, NOWHERE), self.thing_by_name.get(name, NOWHERE)
            if verb == "use":
                return None if thing == NOWHERE else Command(Verb.USE, thing)
            if verb == "examine":
                known = place != NOWHERE or thing != NOWHERE
                return Command(Verb.EXAMINE, NOWHERE if place != NOWHERE else thing, place) if known else None
            go = {"go to": Verb.GO, "open": Verb.OPEN, "close": Verb.CLOSE}[verb]
            return None if place == NOWHERE else Command(go, NOWHERE, place)
        found = _PUT.fullmatch(text) or _TWO.fullmatch(text)
        if found is None:
            return None
        verb = found.groupdict().get("verb")
        if verb is not None and f" {_LINKS[verb]} " not in text:
            return None
        second = self.thing_by_name if verb == "slice" else self.by_name
        thing, place = self.thing_by_name.get(found["thing"], NOWHERE), second.get(found["place"], NOWHERE)
        if thing == NOWHERE or place == NOWHERE:
            return None
        if verb is None:
            return Command(Verb.PUT, thing, place)
        if verb == "slice":
            return Command(Verb.SLICE, thing, place)
        return Command(Verb.TAKE if verb == "take" else VERB_OF[verb], thing, place)

    def write(self, command: Command) -> str:
        """The text of a command, as `admissible` has it."""
        verb, thing, place = command
        if verb in TREATMENTS:
            return f"{TREATMENTS[verb]} {self.things[thing].name} with {self.names[place]}"
        if verb is Verb.TAKE:
            return f"take {self.things[thing].name} from {self.names[place]}"
        if verb is Verb.PUT:
            return f"move {self.things[thing].name} to {self.names[place]}"
        if verb is Verb.SLICE:
            return f"slice {self.things[thing].name} with {self.things[place].name}"
        name = self.names[place] if place != NOWHERE else self.things[thing].name if thing != NOWHERE else ""
        word = {Verb.GO: "go to", Verb.HELP: "help", Verb.LOOK: "look", Verb.INVENTORY: "inventory"}
        return f"{word.get(verb, verb.name.lower())} {name}".strip()

    def admissible(self, state: HouseState) -> list[str]:
        """The commands that a sensible agent may give; locked doors are not told from others.

        Args:
            state: the state.
        """
        at, held = state.at, state.held
        if at == NOWHERE:
            found = [*self._gos, "look", "inventory"]
            if held != NOWHERE:
                found.append(f"examine {self.things[held].name}")
            return found
        name, things = self.names[at], self.things
        here = f"go to {name}"
        found = [go for go in self._gos if go != here]
        accessible = True
        if at in self.opens:
            accessible = at in state.opened
            found.append(f"close {name}" if accessible else f"open {name}")
        seen = self.contents(state, at) if accessible else ()
        if held == NOWHERE:
            for thing in seen:
                if not things[thing].is_lamp:
                    found.append(f"take {things[thing].name} from {name}")
        else:
            carried = things[held].name
            if accessible:
                found.append(f"move {carried} to {name}")
            verb = self.verbs.get(at)
            if verb is not None and TREATMENTS[verb] in self.takes[held]:
                found.append(f"{TREATMENTS[verb]} {carried} with {name}")
            found.append(f"examine {carried}")
        for thing in seen:
            if things[thing].is_lamp:
                found.append(f"use {things[thing].name}")
        found += (f"examine {name}", "look", "inventory")
        return found

    def slices(self, state: HouseState) -> list[str]:
        """The commands that slice what is seen with the knife in the hand; `admissible` leaves them out.

        Args:
            state: the state.
        """
        found = (thing for thing in self.visible(state) if self.is_sliceable(state, thing))
        return [self.write(Command(Verb.SLICE, thing, state.held)) for thing in found]

    def introduce(self) -> str:
        """What is seen at the start: all furniture."""
        seen = ", ".join(f"a {self.names[place]}" for place in self._listed[:-1])
        last = f"a {self.names[self._listed[-1]]}"
        return f"You are in the middle of a room. Looking quickly around you, you see {seen}, and {last}."

    def list_things(self, things: tuple[int, ...]) -> str:
        """Things in words."""
        names = [f"a {self.things[thing].name}" for thing in things]
        if not names:
            return "nothing"
        return names[0] if len(names) == 1 else f"{', '.join(names[:-1])}, and {names[-1]}"

    def describe_place(self, state: HouseState, place: int) -> str:
        """What is seen in or on a receptacle."""
        name = self.names[place]
        if place not in self.opens:
            return f"On the {name}, you see {self.list_things(self.contents(state, place))}."
        if place in state.opened:
            return f"The {name} is open. In it, you see {self.list_things(self.contents(state, place))}."
        return f"The {name} is {'locked' if place in self.locked else 'closed'}."

    def describe(self, before: HouseState, command: Command | None, after: HouseState | None) -> str:
        """The answer to a command.

        Args:
            before: the state before.
            command: the command.
            after: what `apply` returned.
        """
        if command is None or after is None:
            if command is not None and command.verb is Verb.GO and command.place != before.at:
                return f"The door of the {self.furniture[command.place].room} is locked."
            return NOTHING
        verb, thing, place = command
        if verb is Verb.GO:
            if not after.moved and not after.opened:
                if place not in self._arrivals:
                    self._arrivals[place] = f"You arrive at {self.names[place]}. {self.describe_place(after, place)}"
                return self._arrivals[place]
            return f"You arrive at {self.names[place]}. {self.describe_place(after, place)}"
        if verb is Verb.OPEN:
            return f"You open the {self.names[place]}. {self.describe_place(after, place)}"
        if verb is Verb.CLOSE:
            return f"You close the {self.names[place]}."
        if verb is Verb.TAKE:
            return f"You pick up the {self.things[thing].name} from the {self.names[place]}."
        if verb is Verb.PUT:
            return f"You move the {self.things[thing].name} to the {self.names[place]}."
        if verb in TREATMENTS:
            return f"You {TREATMENTS[verb]} the {self.things[thing].name} using the {self.names[place]}."
        if verb is Verb.SLICE:
            return f"You sliced the {self.things[thing].name} with the {self.things[place].name}."
        if verb is Verb.USE:
            return f"You turn {'on' if thing in after.lit else 'off'} the {self.things[thing].name}."
        if verb is Verb.EXAMINE:
            return self.describe_place(after, place) if place != NOWHERE else self._describe_thing(after, thing)
        if verb is Verb.INVENTORY:
            carried = () if after.held == NOWHERE else (after.held,)
            return f"You are carrying: {self.list_things(carried)}." if carried else "You are not carrying anything."
        if verb is Verb.HELP:
            return HELP
        if after.at == NOWHERE:
            return self.introduce()
        return f"You are facing the {self.names[after.at]}. Next to it, you see nothing."

    def _describe_thing(self, state: HouseState, thing: int) -> str:
        name = self.things[thing].name
        if self.things[thing].is_lamp:
            return f"This {name} is {'on' if thing in state.lit else 'off'}."
        marks = state.marks_of(thing)
        words = [word for word in ("hot", "cold", "clean") if word in marks]
        found = [" and ".join(words)] if words else []
        found += ["sliced"] if "sliced" in marks else []
        return f"This is a {' '.join(found)} {name}." if found else f"There's nothing special about {name}."


MODEL_KNOBS = (
    "arrangement",
    "kept",
    "wander",
    "names",
    "gone",
    "locked",
    "keys",
    "effects",
    "words",
    "tidy",
)
"""The knobs on which a model depends, beside the number of the house."""


def make_model(number: int, knobs: Mapping[str, Value]) -> HouseModel:
    """The model for a house's number and knob values; equal values share one model.

    Args:
        number: the number of the house.
        knobs: canonical values of some or all knobs; the others have their default.
    """
    return _model(number, tuple((name, knobs[name]) for name in MODEL_KNOBS if knobs.get(name)))


@lru_cache(maxsize=512)
def _model(number: int, knobs: tuple[tuple[str, Value], ...]) -> HouseModel:
    return HouseModel(draw_house(number), dict(knobs))
