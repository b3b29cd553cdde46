"""A room: the receptacles of a floor plan, and the things that are usually kept in each.

* `Room`, `Receptacle`, `RoomThing` - a room before any knob is applied
* `draw_room` - the room of a floor plan
* `Layout`, `make_layout` - the same under given knob values
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from drift_envs.envs.alfworld.package import kind_of_id, load_kinds, load_plan
from drift_envs.errors import KnobError
from drift_envs.knobs import Value

MOST_THINGS = 36
"""A room has no more things, unless it has more kinds of them."""

MOST_OF_A_KIND = 3
"""How many things of one kind a room has at most, as ALFRED's generator places them."""

_STREAM = 0xA1F


class Receptacle(NamedTuple):
    """A receptacle.

    Args:
        id: its identifier in the game.
        name: kind and number, as in `shelf 2`.
        kind: its kind.
        opens: whether it has a door.
    """

    id: str
    name: str
    kind: str
    opens: bool


class RoomThing(NamedTuple):
    """A thing that can be carried, or a lamp.

    Args:
        id: its identifier in the game.
        name: kind and number, as in `mug 1`.
        kind: its kind.
        slots: the receptacles where it may be kept, by arrangement.
    """

    id: str
    name: str
    kind: str
    slots: tuple[int, ...]


class Room(NamedTuple):
    """A room before any knob is applied.

    Args:
        plan: the number of its floor plan.
        receptacles: the receptacles, in the order in which the game lists them.
        things: the things, in that order.
    """

    plan: int
    receptacles: tuple[Receptacle, ...]
    things: tuple[RoomThing, ...]


def _name_all(ids: list[str], kinds: list[str]) -> list[str]:
    """Kind and number of each, numbered as ALFWorld does: the last identifier of a kind is its first."""
    left = Counter(kinds)
    names = []
    for kind in kinds:
        names.append(f"{kind} {left[kind]}")
        left[kind] -= 1
    return names


def _mangle(identifier: str) -> str:
    """An identifier of AI2-THOR as one of PDDL, as ALFWorld's games have it."""
    for sign, word in (("|", "_bar_"), ("-", "_minus_"), ("+", "_plus_"), (".", "_dot_"), (",", "_comma_")):
        identifier = identifier.replace(sign, word)
    return identifier.lower()


@lru_cache(maxsize=128)
def draw_room(plan: int) -> Room:
    """The room of a floor plan; the plan's number decides which things it has and where they are kept.

    The things of a kind are kept in neighbouring places of one list, which is drawn for each kind from the
    receptacles that can hold it: under the next arrangement they are kept in the places behind those.

    Args:
        plan: the number of the floor plan.

    Raises:
        ArgumentError: there is no such floor plan.
    """
    found, kinds = load_plan(plan), load_kinds()
    rng = np.random.default_rng([_STREAM, plan])
    spelt = {_mangle(one): kind_of_id(one) for one in found.receptacles}
    ids = sorted(spelt)
    names = _name_all(ids, [spelt[one] for one in ids])
    receptacles = tuple(
        Receptacle(one, name, spelt[one], spelt[one] in kinds.opens) for one, name in zip(ids, names, strict=True)
    )
    stands = {kind: [place for place, one in enumerate(receptacles) if _holds(one, kind)] for kind in found.kinds}
    carried = [kind for kind in found.kinds if stands[kind] and kind not in kinds.lamps]
    counts = dict.fromkeys(carried, 1)
    left = MOST_THINGS - len(carried)
    for kind in rng.permutation(carried):
        added = int(rng.integers(0, MOST_OF_A_KIND))
        counts[str(kind)] += max(0, min(added, left))
        left -= added
    counts |= {lamp: 1 for lamp in kinds.lamps if lamp in found.kinds}
    order: dict[str, list[int]] = {}
    for kind in counts:
        places = list(stands[kind])
        if kind in kinds.lamps:
            flat = [place for place, one in enumerate(receptacles) if not one.opens]
            likely = [place for place in flat if receptacles[place].kind in _BY_LAMPS[kind]]
            places = [int(rng.choice(likely or flat))]
        rng.shuffle(places)
        order[kind] = places
    listed = sorted((f"{kind}_bar_{copy + 1}", kind, copy) for kind in counts for copy in range(counts[kind]))
    names = _name_all([one[0] for one in listed], [one[1] for one in listed])
    things = []
    for (one, kind, copy), name in zip(listed, names, strict=True):
        places, count = order[kind], counts[kind]
        slots = tuple(places[(step * count + copy) % len(places)] for step in range(len(places)))
        things.append(RoomThing(one, name, kind, slots))
    return Room(plan, receptacles, tuple(things))


_BY_LAMPS = {"desklamp": ("desk", "sidetable", "dresser", "shelf"), "floorlamp": ("sofa", "armchair", "bed")}


def _holds(receptacle: Receptacle, kind: str) -> bool:
    return kind in load_kinds().holds[receptacle.kind]


class Layout:
    """A room under given knob values, before any command.

    Receptacles and things are numbered by their position in the room, whatever they are called.

    Args:
        room: the room.
        knobs: the values of the knobs but `plan` and `transient`.

    Raises:
        KnobError: a knob names what no room of ALFWorld has.
    """

    def __init__(self, room: Room, knobs: Mapping[str, Value]) -> None:
        self.room, self.plan, self.knobs = room, room.plan, dict(knobs)
        self.receptacles, self.things = room.receptacles, room.things
        check_names(knobs)
        names: Mapping[str, str] = knobs.get("names") or {}
        self.kinds: list[str] = [names.get(one.kind, one.kind) for one in self.receptacles]
        """The word for each receptacle's kind, as tasks use it."""
        self.names = [
            f"{kind} {one.name.rpartition(' ')[2]}" for kind, one in zip(self.kinds, self.receptacles, strict=True)
        ]
        gone, locked = knobs.get("gone") or (), knobs.get("locked") or ()
        self.shown = tuple(
            place for place, one in enumerate(self.receptacles) if one.name not in gone and one.kind not in gone
        ) or tuple(range(len(self.receptacles)))
        self.locked = frozenset(
            place
            for place, one in enumerate(self.receptacles)
            if one.opens and (one.name in locked or one.kind in locked)
        )
        self.effects = {**EFFECTS, **(knobs.get("effects") or {})}
        self.verbs: Mapping[str, str] = knobs.get("verbs") or {}
        kept: Mapping[str, str] = knobs.get("kept") or {}
        arrangement = int(knobs.get("arrangement") or 0)
        shown, starts = frozenset(self.shown), []
        for one in self.things:
            lamp = one.kind in load_kinds().lamps
            first = 0 if lamp else arrangement
            slots = [one.slots[(first + step) % len(one.slots)] for step in range(len(one.slots))]
            home = kept.get(one.kind, "")
            wanted = [
                place
                for place, other in enumerate(self.receptacles)
                if home in (other.name, other.kind) and (lamp or _holds(other, one.kind))
            ]
            # Nothing is kept in a receptacle that is gone, nor behind a lock, which nothing opens.
            free = [place for place in (*wanted, *slots) if place in shown and place not in self.locked]
            starts.append(free[0] if free else self.shown[0])
        self.starts = tuple(starts)
        """By thing, the receptacle at the start."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Equal values share one layout, copies too."""
        return make_layout, (self.plan, self.knobs)


EFFECTS = {"microwave": "heat", "fridge": "cool", "sinkbasin": "clean"}
"""What appliances do by default."""


def check_names(knobs: Mapping[str, Value]) -> None:
    """Refuse names that no floor plan of ALFWorld has.

    Args:
        knobs: canonical values.

    Raises:
        KnobError: a knob names another kind.
    """
    kinds = load_kinds()
    things = sorted({thing for held in kinds.holds.values() for thing in held})
    for knob in ("names", "gone", "locked"):
        for name in knobs.get(knob) or ():
            _check_kind(knob, name, kinds.holds, "receptacles such as 'shelf'")
    names = knobs.get("names") or {}
    for old, new in names.items():
        if new in things or new in kinds.lamps or (new in kinds.holds and new not in names):
            raise KnobError(f"`names` should give {old!r} no name of another kind. Received {new!r}")
    for thing, place in (knobs.get("kept") or {}).items():
        _check_kind("kept", thing, things, "things such as 'mug'")
        _check_kind("kept", place, kinds.holds, "receptacles such as 'shelf'")


def _check_kind(knob: str, name: str, known: object, what: str) -> None:
    kind, _, number = name.rpartition(" ")
    if (kind if number.isdecimal() else name) not in known:  # type: ignore[operator]
        raise KnobError(f"`{knob}` should name {what} of ALFWorld's floor plans. Received {name!r}")


MODEL_KNOBS = ("arrangement", "kept", "names", "gone", "locked", "effects", "verbs")
"""The knobs on which a game depends, beside the number of the floor plan."""


def make_layout(plan: int, knobs: Mapping[str, Value]) -> Layout:
    """The layout for a floor plan and knob values; equal values share one layout.

    Args:
        plan: the number of the floor plan.
        knobs: canonical values of some or all knobs; the others have their default.

    Raises:
        ArgumentError: there is no such floor plan.
        KnobError: a knob names what no room of ALFWorld has.
    """
    return _layout(plan, tuple((name, knobs[name]) for name in MODEL_KNOBS if knobs.get(name)))


@lru_cache(maxsize=512)
def _layout(plan: int, knobs: tuple[tuple[str, Value], ...]) -> Layout:
    return Layout(draw_room(plan), dict(knobs))
