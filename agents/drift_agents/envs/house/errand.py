"""A task of a house in words, parsed; and what is common knowledge about houses.

* `Errand`, `parse_errand` - what is wanted
* `kind_of` - the kind in a name
* `WAYS` - the commands that may make a thing hot, cold or clean, the plain ones first
* `LIKE` - words that are easily taken for each other
* `LIKELY` - where kinds of things are commonly kept
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

_LOOK = re.compile(r"(?:look at|examine) (?:an? |the |some )?(?P<thing>[a-z]+) (?:under|with) the (?P<target>[a-z]+)")
_PUT = re.compile(
    r"put (?P<count>two |an? |some |the )?(?P<mark>hot |cool |cold |clean )?(?P<thing>[a-z]+) (?:in|on|in/on) "
    r"(?:an? |the )?(?P<target>[a-z]+)"
)
_MARKS = {"hot": "hot", "cool": "cold", "cold": "cold", "clean": "clean"}

WAYS: dict[str, tuple[tuple[str, str], ...]] = {
    "hot": (("heat", "microwave"), ("cool", "fridge")),
    "cold": (("cool", "fridge"), ("heat", "microwave")),
    "clean": (("clean", "sinkbasin"), ("clean", "bathtubbasin")),
}
"""Pairs of a command and the kind of appliance that takes it."""

LIKE = {
    one: other
    for pair in (("mug", "cup"), ("pen", "pencil"), ("fork", "spoon"), ("knife", "butterknife"), ("plate", "bowl"))
    for one, other in (pair, pair[::-1])
}

LIKELY: dict[str, tuple[str, ...]] = {
    "kitchen": ("countertop", "cabinet", "diningtable", "fridge", "sinkbasin", "drawer", "garbagecan", "stoveburner"),
    "desk": ("desk", "drawer", "dresser", "sidetable", "shelf", "coffeetable", "tvstand", "sofa", "bed", "armchair"),
    "bath": ("countertop", "cabinet", "toilet", "cart", "bathtubbasin", "sinkbasin", "shelf"),
}
_GROUPS = {
    "kitchen": "apple bread egg lettuce potato tomato mug cup bowl plate pan pot fork spoon knife butterknife spatula "
    "ladle peppershaker saltshaker winebottle dishsponge",
    "desk": "pen pencil cd cellphone creditcard keychain watch alarmclock book newspaper laptop statue box "
    "remotecontrol",
    "bath": "soapbar soapbottle cloth spraybottle toiletpaper candle",
}
GROUP_OF = {kind: group for group, kinds in _GROUPS.items() for kind in kinds.split()}


class Errand(NamedTuple):
    """What is wanted.

    Args:
        thing: the word for the things.
        target: the kind of furniture to put them in or on, or the lamp to look at them under.
        mark: `hot`, `cold` or `clean`, or "".
        number: how many.
        is_light: whether it is to be looked at under a lamp.
    """

    thing: str
    target: str
    mark: str = ""
    number: int = 1
    is_light: bool = False


@lru_cache(maxsize=4096)
def parse_errand(task: str) -> Errand | None:
    """Parse a task; `None` if it is no task of a house.

    Args:
        task: the task in words.

    Example:
        >>> parse_errand("put a hot mug in shelf")
        Errand(thing='mug', target='shelf', mark='hot', number=1, is_light=False)
        >>> parse_errand("look at book under the desklamp").is_light
        True
    """
    text = task.lower().strip().rstrip(".")
    if (found := _LOOK.search(text)) is not None:
        return Errand(found["thing"], found["target"], is_light=True)
    if (found := _PUT.search(text)) is None:
        return None
    mark = _MARKS.get((found["mark"] or "").strip(), "")
    return Errand(found["thing"], found["target"], mark, 2 if found["count"] == "two " else 1)


def kind_of(name: str) -> str:
    """The kind in a name.

    Example:
        >>> kind_of("shelf 12")
        'shelf'
    """
    return name.rpartition(" ")[0]


def is_common(thing: str, furniture: str) -> bool:
    """Whether a kind of thing is commonly kept in or on a kind of furniture; unknown kinds may be anywhere.

    Args:
        thing: the kind of thing.
        furniture: the kind of furniture.
    """
    return thing not in GROUP_OF or furniture in LIKELY[GROUP_OF[thing]]


def likely_rank(thing: str, furniture: str) -> int:
    """How far down the list of common places a kind of furniture stands, from 0.

    Args:
        thing: the kind of thing.
        furniture: the kind of furniture.
    """
    places = LIKELY[GROUP_OF.get(thing, "desk")]
    return places.index(furniture) if furniture in places else len(places)
