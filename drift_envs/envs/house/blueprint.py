"""The plan of a house: rooms, furniture, things and the household's habits, drawn from its number.

* `Blueprint` - a house before any knob is applied
* `Furniture`, `Thing` - a receptacle and a thing of it
* `draw_house`, `number_room` - the house of a number, and the numbers of houses of one room
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from drift_envs.envs.house.vocabulary import FURNITURE, LAMPS, MOST_OF_A_KIND, ROOM_THINGS, ROOMS, THINGS

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
