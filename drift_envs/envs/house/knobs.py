"""The plan of a house, drawn from its number, and the knobs that change it, with the rules between their values.

Names of furniture and things are those of ALFWorld's text interface (Shridhar et al., 2021); numbers and places are
this project's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from drift_envs.errors import KnobError
from drift_envs.knobs import FrozenMapping, Knob, KnobTable, Value, draw_number, mapping_knob

ROOMS = ("kitchen", "living room", "bedroom", "bathroom")

_K, _L, _B, _W = ROOMS


class FurnitureKind(NamedTuple):
    """A kind of receptacle.

    Args:
        rooms: by room, the least and the greatest number in a house.
        opens: whether it is closed at first and can be opened.
    """

    rooms: dict[str, tuple[int, int]]
    opens: bool = False


FURNITURE: dict[str, FurnitureKind] = {
    "countertop": FurnitureKind({_K: (2, 3), _W: (1, 1)}),
    "cabinet": FurnitureKind({_K: (3, 5), _W: (1, 2)}, opens=True),
    "drawer": FurnitureKind({_K: (2, 3), _B: (2, 3)}, opens=True),
    "fridge": FurnitureKind({_K: (1, 1), _L: (1, 1)}, opens=True),
    "microwave": FurnitureKind({_K: (1, 1), _L: (1, 1)}, opens=True),
    "sinkbasin": FurnitureKind({_K: (1, 1), _W: (1, 1)}),
    "stoveburner": FurnitureKind({_K: (2, 2)}),
    "coffeemachine": FurnitureKind({_K: (1, 1)}),
    "diningtable": FurnitureKind({_K: (1, 1)}),
    "garbagecan": FurnitureKind({_K: (1, 1), _B: (0, 1)}),
    "sofa": FurnitureKind({_L: (1, 1)}),
    "armchair": FurnitureKind({_L: (1, 2)}),
    "coffeetable": FurnitureKind({_L: (1, 1)}),
    "sidetable": FurnitureKind({_L: (1, 1), _B: (1, 2)}),
    "shelf": FurnitureKind({_L: (2, 3), _B: (1, 2)}),
    "tvstand": FurnitureKind({_L: (1, 1)}),
    "bed": FurnitureKind({_B: (1, 1)}),
    "desk": FurnitureKind({_B: (1, 2)}),
    "dresser": FurnitureKind({_B: (1, 1)}, opens=False),
    "safe": FurnitureKind({_B: (0, 1)}, opens=True),
    "bathtubbasin": FurnitureKind({_W: (1, 1)}),
    "toilet": FurnitureKind({_W: (1, 1)}),
    "cart": FurnitureKind({_W: (0, 1)}),
}

VERBS = {"microwave": "heat", "fridge": "cool", "sinkbasin": "clean", "bathtubbasin": "clean"}
"""The command that an appliance takes; what it does to a thing is a knob."""

EFFECTS = {"microwave": "heat", "fridge": "cool", "sinkbasin": "clean", "bathtubbasin": "nothing"}
"""What appliances do by default; a bathtub is too coarse to clean anything, as in ALFWorld."""


class ThingKind(NamedTuple):
    """A kind of thing.

    Args:
        kept: the kinds of furniture in or on which it is kept.
        takes: the commands that can be applied to it, of `heat`, `cool` and `clean`.
    """

    kept: tuple[str, ...]
    takes: frozenset[str] = frozenset()


_ALL = frozenset({"heat", "cool", "clean"})
_COLD = frozenset({"heat", "cool"})
_COOK = frozenset({"cool", "clean"})
_WASH = frozenset({"clean"})

_FOOD = ("countertop", "diningtable", "fridge", "cabinet", "sinkbasin", "garbagecan")
_DISH = ("cabinet", "countertop", "diningtable", "shelf", "sinkbasin", "coffeemachine")
_TOOL = ("drawer", "countertop", "diningtable", "sinkbasin", "cabinet")
_PAPER = ("desk", "shelf", "sidetable", "bed", "sofa", "dresser", "coffeetable", "drawer")
_SMALL = ("drawer", "desk", "dresser", "sidetable", "shelf", "coffeetable", "tvstand")
_BATH = ("countertop", "cabinet", "toilet", "cart", "bathtubbasin", "sinkbasin", "shelf")
_SOFT = ("bed", "sofa", "armchair")

THINGS: dict[str, ThingKind] = {
    "apple": ThingKind(_FOOD, _ALL),
    "bread": ThingKind(_FOOD, _COLD),
    "egg": ThingKind(_FOOD, _ALL),
    "lettuce": ThingKind(_FOOD, _COOK),
    "potato": ThingKind(_FOOD, _ALL),
    "tomato": ThingKind(_FOOD, _ALL),
    "mug": ThingKind(_DISH, _ALL),
    "cup": ThingKind(_DISH, _ALL),
    "bowl": ThingKind(_DISH, _ALL),
    "plate": ThingKind(_DISH, _ALL),
    "pan": ThingKind(("stoveburner", *_TOOL), _COOK),
    "pot": ThingKind(("stoveburner", *_TOOL), _COOK),
    "fork": ThingKind(_TOOL, _WASH),
    "spoon": ThingKind(_TOOL, _WASH),
    "knife": ThingKind(_TOOL, _WASH),
    "butterknife": ThingKind(_TOOL, _WASH),
    "spatula": ThingKind(_TOOL, _WASH),
    "ladle": ThingKind(_TOOL, _WASH),
    "peppershaker": ThingKind(_TOOL),
    "saltshaker": ThingKind(_TOOL),
    "winebottle": ThingKind(("fridge", "countertop", "cabinet", "diningtable"), frozenset({"cool"})),
    "dishsponge": ThingKind(("sinkbasin", "countertop", "drawer", "cabinet"), _WASH),
    "soapbar": ThingKind(_BATH, _WASH),
    "soapbottle": ThingKind(_BATH),
    "cloth": ThingKind(_BATH, _WASH),
    "spraybottle": ThingKind(_BATH),
    "toiletpaper": ThingKind(_BATH),
    "candle": ThingKind(_BATH),
    "tissuebox": ThingKind(("coffeetable", "dresser", "sidetable", "toilet", "cart", "desk")),
    "book": ThingKind(_PAPER),
    "newspaper": ThingKind(_PAPER),
    "pen": ThingKind(_SMALL),
    "pencil": ThingKind(_SMALL),
    "cd": ThingKind(_SMALL),
    "cellphone": ThingKind((*_SMALL, "bed")),
    "creditcard": ThingKind(_SMALL),
    "keychain": ThingKind(_SMALL),
    "watch": ThingKind(_SMALL),
    "remotecontrol": ThingKind(("sofa", "armchair", "coffeetable", "tvstand", "sidetable", "drawer")),
    "alarmclock": ThingKind(("desk", "dresser", "sidetable", "shelf")),
    "statue": ThingKind(("shelf", "dresser", "tvstand", "coffeetable", "sidetable", "desk")),
    "vase": ThingKind(("shelf", "dresser", "diningtable", "coffeetable", "sidetable")),
    "box": ThingKind(("sofa", "armchair", "coffeetable", "dresser", "desk", "bed")),
    "laptop": ThingKind(("desk", "bed", "sofa", "coffeetable", "armchair")),
    "pillow": ThingKind(_SOFT),
    "basketball": ThingKind(("bed", "armchair", "sofa", "dresser", "garbagecan")),
}

KNIVES = frozenset({"knife", "butterknife"})
SLICED = frozenset({"apple", "bread", "egg", "lettuce", "potato", "tomato"})

_KITCHEN = (_FOOD, _DISH, _TOOL)
_PARLOUR = (_PAPER, _SMALL, _SOFT)


def _list_kinds(places: tuple[tuple[str, ...], ...], *more: str) -> tuple[str, ...]:
    return (*(kind for kind, thing in THINGS.items() if thing.kept in places), *more)


ROOM_THINGS = {
    _K: _list_kinds(_KITCHEN, "pan", "pot", "winebottle", "dishsponge"),
    _L: _list_kinds(_PARLOUR, "tissuebox", "cellphone", "remotecontrol", "statue", "vase", "box", "laptop"),
    _B: _list_kinds(_PARLOUR, "tissuebox", "cellphone", "alarmclock", "statue", "box", "laptop", "basketball"),
    _W: _list_kinds((_BATH,), "tissuebox"),
}
"""By room, the kinds of things of a house that has this room alone, as ALFWorld's scenes have."""

LAMPS = {"desklamp": ("desk", "sidetable", "dresser"), "floorlamp": ("sofa", "armchair", "bed")}
"""Kinds of lamps, and the furniture by which one may stand. Lamps cannot be taken."""

MOST_OF_A_KIND = 3
"""How many things of one kind a house may have, at most."""

_SPELT = """
    AlarmClock ArmChair BasketBall BathtubBasin ButterKnife CD CellPhone CoffeeMachine CoffeeTable CounterTop CreditCard
    DeskLamp DiningTable DishSponge FloorLamp GarbageCan KeyChain PepperShaker RemoteControl SaltShaker SideTable
    SinkBasin SoapBar SoapBottle SprayBottle StoveBurner TissueBox ToiletPaper TVStand WineBottle
"""
_SPELLING = {name.lower(): name for name in _SPELT.split()}


def spell(name: str) -> str:
    """A kind of thing or furniture as the paths of ALFWorld's games have it.

    Args:
        name: the kind.

    Example:
        >>> spell("alarmclock"), spell("mug")
        ('AlarmClock', 'Mug')
    """
    return _SPELLING.get(name, name.capitalize())


FEWEST, MOST = 30, 120
"""How many things a house has."""

FEWEST_OF_A_ROOM, MOST_OF_A_ROOM = 10, 30
"""How many things a house of one room has."""

HOUSES = 1_000_000
"""Houses with numbers up to this one have all rooms."""

MOST_NUMBER = HOUSES * (1 + len(ROOMS))
"""The last number of a house."""

_ALWAYS = ("keychain", "mug", "cup", "pen", "pencil", "apple", "egg", "plate", "bowl", "fork", "spoon")
"""Kinds that every house has, since schedules name them."""

_STREAM = 0x40053


@dataclass(frozen=True)
class Furniture:
    """A receptacle.

    Args:
        name: kind and number, as in `shelf 2`.
        kind: its kind.
        room: where it stands.
        opens: whether it has a door.
    """

    name: str
    kind: str
    room: str
    opens: bool


@dataclass(frozen=True)
class Thing:
    """A thing that can be carried, or a lamp.

    Args:
        name: kind and number, as in `mug 1`.
        kind: its kind.
        slots: the receptacles where it may be kept, by arrangement: it is kept in the first one of them
            under arrangement 0.
        jitter: in [0, 1), the level of `wander` at which it first changes its place.
    """

    name: str
    kind: str
    slots: tuple[int, ...]
    jitter: float

    @property
    def is_lamp(self) -> bool:
        """Whether it stays where it stands."""
        return self.kind in LAMPS


@dataclass(frozen=True)
class Blueprint:
    """A house before any knob is applied.

    Args:
        number: the number from which it is drawn.
        furniture: the receptacles.
        things: the things, lamps last.
        habits: by kind of thing and kind of furniture, a number in [0, 1) from which tidy places follow.
    """

    number: int
    furniture: tuple[Furniture, ...]
    things: tuple[Thing, ...]
    habits: Mapping[tuple[str, str], float]


def number_room(room: str, number: int) -> int:
    """The number of a house that has one room, as ALFWorld's scenes have.

    Args:
        room: one of `ROOMS`.
        number: which house of this room, from 1 to `HOUSES`.

    Example:
        >>> sorted({one.room for one in draw_house(number_room("bathroom", 7)).furniture})
        ['bathroom']
    """
    return HOUSES * (1 + ROOMS.index(room)) + number


@lru_cache(maxsize=256)
def draw_house(number: int) -> Blueprint:
    """Draw a house.

    The things of one kind are kept in neighbouring places of one list, which is drawn for each kind: under the
    next arrangement they are kept in the places behind those, so that no thing of that kind stays where it was,
    nor takes the place of another, unless the kind has too few places.

    Args:
        number: the number of the house; above `HOUSES` it is one of `number_room`.

    Example:
        >>> house = draw_house(7)
        >>> house == draw_house(7), house == draw_house(8), 30 <= len(house.things) <= 122
        (True, False, True)
    """
    rng = np.random.default_rng([_STREAM, number])
    group = (number - 1) // HOUSES
    rooms = (ROOMS[group - 1],) if group > 0 else ROOMS
    furniture = _draw_furniture(rng, rooms)
    places: dict[str, list[int]] = {}
    for index, one in enumerate(furniture):
        places.setdefault(one.kind, []).append(index)
    things: list[Thing] = []
    for kind, count in (_draw_counts(rng) if group <= 0 else _draw_room_counts(rng, rooms[0])).items():
        order = [index for name in THINGS[kind].kept for index in places.get(name, ())]
        rng.shuffle(order)
        for copy in range(count):
            slots = tuple(order[(step * count + copy) % len(order)] for step in range(len(order)))
            things.append(Thing(f"{kind} {copy + 1}", kind, slots, float(rng.random())))
    for lamp, stands in LAMPS.items():
        order = [index for name in stands for index in places.get(name, ())]
        if not order:
            continue
        things.append(Thing(f"{lamp} 1", lamp, (order[int(rng.integers(len(order)))],), 0.0))
    habits = {(thing, kind): float(rng.random()) for thing in THINGS for kind in FURNITURE}
    return Blueprint(number, tuple(furniture), tuple(things), habits)


def _draw_furniture(rng: np.random.Generator, rooms: Sequence[str]) -> list[Furniture]:
    found = []
    for kind, (numbers, opens) in FURNITURE.items():
        number = 0
        for room in rooms:
            low, high = numbers.get(room, (0, 0))
            for _ in range(int(rng.integers(low, high + 1))):
                number += 1
                found.append(Furniture(f"{kind} {number}", kind, room, opens))
    return found


def _draw_counts(rng: np.random.Generator) -> dict[str, int]:
    """How many things of each kind the house has."""
    left = int(rng.integers(FEWEST, MOST + 1))
    others = [kind for kind in THINGS if kind not in _ALWAYS]
    rng.shuffle(others)
    counts = dict.fromkeys(_ALWAYS, 1) | {"keychain": 2}
    left -= sum(counts.values())
    for kind in (*_ALWAYS[1:], *others):
        if left <= 0:
            break
        before = counts.get(kind, 0)
        # Small households have few things of a kind, large ones up to three of each.
        added = min(left, int(rng.integers(1, MOST_OF_A_KIND + 1 - before)) if before < MOST_OF_A_KIND else 0)
        counts[kind] = before + added
        left -= added
    return dict(sorted(counts.items(), key=lambda pair: list(THINGS).index(pair[0])))


def _draw_room_counts(rng: np.random.Generator, room: str) -> dict[str, int]:
    """How many things of each kind a house of one room has."""
    left = int(rng.integers(FEWEST_OF_A_ROOM, MOST_OF_A_ROOM + 1))
    counts: dict[str, int] = {}
    for kind in rng.permutation(ROOM_THINGS[room]):
        if left <= 0:
            break
        counts[str(kind)] = min(left, int(rng.integers(1, MOST_OF_A_KIND + 1)))
        left -= counts[str(kind)]
    return {kind: counts[kind] for kind in THINGS if kind in counts}


MOST_ARRANGEMENTS = 1000
MOST_HABITS = 1000
MOST_WANDER = 1000.0
_EFFECTS = ("heat", "cool", "clean", "nothing")
_LONGEST = 24


def _is_numbered(name: str, kinds: Iterable[str]) -> bool:
    kind, _, number = name.rpartition(" ")
    # Python refuses to read an integer of thousands of digits.
    is_short = number.isdecimal() and len(number) <= 2
    return kind in kinds and is_short and number == str(int(number)) and int(number) >= 1


def _check_furniture(knob: str, name: Any, or_kinds: bool = False) -> str:
    """The name of a receptacle, or of a kind of receptacles.

    Raises:
        KnobError: if it is neither.
    """
    if isinstance(name, str) and (_is_numbered(name, FURNITURE) or (or_kinds and name in FURNITURE)):
        return name
    rule = "furniture such as 'shelf 2'" + (" or a kind such as 'shelf'" if or_kinds else "")
    raise KnobError(f"`{knob}` should name {rule}. Received {name!r}")


def _parse_kept(value: Mapping[str, Any]) -> FrozenMapping:
    """Kinds of things, and the receptacle where all things of a kind are kept."""
    for thing, place in value.items():
        if thing not in THINGS:
            raise KnobError(f"`kept` should name kinds of things such as 'mug'. Received {thing!r}")
        _check_furniture("kept", place)
    return FrozenMapping(value)


def _parse_names(value: Mapping[str, Any]) -> FrozenMapping:
    """Receptacles or kinds, and their new names."""
    for old, new in value.items():
        is_single = " " in _check_furniture("names", old, or_kinds=True)
        words = new.rpartition(" ")[0] if is_single and isinstance(new, str) else new
        good = isinstance(words, str) and words.isascii() and words.isalpha() and words.islower()
        if not good or len(words) > _LONGEST or (is_single and not _is_numbered(new, [words])):
            form = "a word of lower-case letters and a number" if is_single else "a word of lower-case letters"
            raise KnobError(f"`names` should give {old!r} {form}. Received {new!r}")
    return FrozenMapping(value)


def _parse_places(knob: str, more: tuple[str, ...], value: Any) -> tuple[str, ...]:
    """Receptacles, kinds, or one of some other names."""
    return tuple(name if name in more else _check_furniture(knob, name, or_kinds=True) for name in value)


def _parse_keys(value: Mapping[str, Any]) -> FrozenMapping:
    """Receptacles that open, and the keychain that opens each."""
    for place, key in value.items():
        kind = _check_furniture("keys", place).rpartition(" ")[0]
        if not FURNITURE[kind].opens:
            raise KnobError(f"`keys` should name furniture that opens. Received {place!r}")
        if not isinstance(key, str) or not _is_numbered(key, ["keychain"]):
            raise KnobError(f"`keys` should give {place!r} a keychain such as 'keychain 1'. Received {key!r}")
    return FrozenMapping(value)


def _parse_effects(value: Mapping[str, Any]) -> FrozenMapping:
    """Appliances or kinds of them, and what they do."""
    for place, effect in value.items():
        kind = _check_furniture("effects", place, or_kinds=True).partition(" ")[0]
        if kind not in EFFECTS:
            raise KnobError(f"`effects` should name one of {', '.join(EFFECTS)}. Received {place!r}")
        if effect not in _EFFECTS:
            raise KnobError(f"`effects` should give {place!r} one of {', '.join(_EFFECTS)}. Received {effect!r}")
    return FrozenMapping(value)


def _parse_words(value: Mapping[str, Any]) -> FrozenMapping:
    """Words of tasks, and the kinds that they refer to."""
    for word, kind in value.items():
        for name in (word, kind):
            if name not in THINGS:
                raise KnobError(f"`words` should map kinds of things such as 'mug'. Received {name!r}")
    return FrozenMapping(value)


def _rule(values: Mapping[str, Value]) -> Iterator[tuple[str, str]]:
    """No two receptacles may have one name, and what locks with a key has to be reachable."""
    names = values["names"]
    new = [name for old, name in names.items() if " " in old]
    for name in new:
        if new.count(name) > 1:
            yield "names", f"two receptacles should not have one name, {name!r} is given twice"
            return
    kinds = {old: name for old, name in names.items() if " " not in old}
    if len(set(kinds.values())) < len(kinds) or any(name in FURNITURE and name not in kinds for name in kinds.values()):
        yield "names", f"two kinds should not have one name. Received {dict(kinds)!r}"
    if any(name in THINGS or name in LAMPS for name in kinds.values()):
        yield "names", f"a receptacle should not be called like a thing. Received {dict(kinds)!r}"
    for old, name in names.items():
        if " " in old and name not in names and _is_numbered(name, FURNITURE) and name != old:
            yield "names", f"{name!r} is the name of other furniture; give that another name too"


_DRAW_HOUSE = partial(draw_number, "house", HOUSES)
_DRAW_ARRANGEMENT = partial(draw_number, "arrangement", MOST_ARRANGEMENTS)
_DRAW_HABIT = partial(draw_number, "tidy", MOST_HABITS)
_ARRANGEMENT = "number of the arrangement; in each one every thing is kept elsewhere"
_WANDER = "how far things have wandered; at 0.5 about half are kept in another place, at 1 all"
_HABIT = "the household's habit, which decides the tidy places; 0 has none"
_EFFECT = "appliance or kind: what it does (`heat`, `cool`, `clean`, `nothing`), whatever the command says"

HOUSE_KNOBS = KnobTable(
    (
        Knob("house", 0, (0, HOUSES), "number of the house; 0 draws one from the seed", "integer", draw=_DRAW_HOUSE),
        Knob("arrangement", 0, (0, MOST_ARRANGEMENTS), _ARRANGEMENT, "integer", draw=_DRAW_ARRANGEMENT),
        mapping_knob("kept", "kind of thing: the furniture where it is kept", _parse_kept),
        Knob("wander", 0.0, (0.0, MOST_WANDER), _WANDER),
        mapping_knob("names", "furniture or kind: its new name", _parse_names),
        Knob("gone", (), None, "furniture that is not there", "rows", None, partial(_parse_places, "gone", ())),
        Knob("locked", (), None, "rooms and furniture that cannot be entered or opened", "rows", None,
             partial(_parse_places, "locked", ROOMS)),
        mapping_knob("keys", "furniture: the keychain in the hand that opens it", _parse_keys),
        mapping_knob("effects", _EFFECT, _parse_effects),
        mapping_knob("words", "word of a task: the kind that it refers to", _parse_words),
        Knob("tidy", 0, (0, MOST_HABITS), _HABIT, "integer", draw=_DRAW_HABIT),
        Knob("transient", 0.0, (0.0, 1.0), "probability that a command has no effect, in this step only"),
    ),
    rule=_rule,
)  # fmt: skip
