"""Commands and states of a house, in numbers.

* `Verb`, `Command` - a parsed command
* `HouseState` - where everything is, as far as it differs from the start of an episode
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

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
