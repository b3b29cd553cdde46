"""A house in words: the commands that are understood, and the answers to them.

The phrases are those of ALFWorld's text interface (Shridhar et al., 2021), which agents parse.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from drift_envs.envs.house.knobs import Blueprint, draw_house
from drift_envs.envs.house.rules import NOWHERE, TREATMENTS, VERB_OF, Command, HouseRules, HouseState, Verb
from drift_envs.knobs import Value
from drift_envs.tasks.households import NOTHING

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
