"""Other words for the commands of a house.

* `plain` - a command in the usual words
"""

from __future__ import annotations

import re
from functools import lru_cache

_NAME = r"[a-z]+ \d+"
_COMMAND = re.compile(rf"(?P<verb>[a-z]+)(?: [a-z]+)? (?P<one>{_NAME})(?: [a-z/]+ (?P<other>{_NAME}))?")

_LIKE = {
    "go to": "go walk head run",
    "open": "open unlatch",
    "close": "close shut",
    "use": "use toggle switch",
    "examine": "examine inspect",
    "take from": "take grab get pick",
    "move to": "move put place set",
    "heat with": "heat warm",
    "cool with": "cool chill",
    "clean with": "clean wash rinse",
    "slice with": "slice cut",
}
"""By command, the verbs that mean it; `with` and its like stand between two names."""

_MEANT = {(" " in words and words != "go to", verb): words for words, verbs in _LIKE.items() for verb in verbs.split()}


@lru_cache(maxsize=65536)
def plain(command: str) -> str:
    """A command in the usual words; as it is where its verb is not known.

    Args:
        command: the command.

    Example:
        >>> plain("walk to shelf 2"), plain("put mug 1 in/on shelf 2"), plain("look"), plain("sing to mug 1")
        ('go to shelf 2', 'move mug 1 to shelf 2', 'look', 'sing to mug 1')
    """
    found = _COMMAND.fullmatch(command)
    if found is None:
        return command
    one, other = found["one"], found["other"]
    words = _MEANT.get((other is not None, found["verb"]))
    if words is None:
        return command
    if other is None:
        return f"{words} {one}"
    first, second = words.split(" ")
    return f"{first} {one} {second} {other}"
