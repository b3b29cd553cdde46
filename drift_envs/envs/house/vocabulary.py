"""The furniture and the things of the houses, named as in ALFWorld.

* `FURNITURE` - kinds of receptacles: how many a house has in each room, and whether they open
* `THINGS` - kinds of things: where they are kept, and whether they can be heated, cooled and cleaned
* `LAMPS` - lamps, and the furniture by which they stand
* `VERBS` - what an appliance is used for
* `KNIVES`, `SLICED` - kinds of things that slice, and that can be sliced
* `ROOMS`, `ROOM_THINGS` - the rooms, and what is kept in a house of that room alone
* `spell` - a name as in the paths of ALFWorld's games

Names are those of ALFWorld's text interface (Shridhar et al., 2021); numbers and places are this project's own.
"""

from __future__ import annotations

from typing import NamedTuple

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
