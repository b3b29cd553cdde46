"""What is wrong with a schedule, as data, and the parts of its messages.

* `Finding` - a path to a key and the rule that it breaks
* `key_path` - a path in the notation of messages, `drifts[1].set.map`
* `show` - a value as YAML writes it, cut to a readable length
* `nearest` - the half sentence that suggests a known name for an unknown one
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

Path = tuple[str | int, ...]
Finding = tuple[Path, str]

_MAX_SHOWN = 60
_MANY = 20
"""Above so many names a message names the nearest ones only."""


def key_path(path: Iterable[str | int]) -> str:
    """A path in the notation of messages.

    Example:
        >>> key_path(("drifts", 1, "set", "map"))
        'drifts[1].set.map'
    """
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def show(value: Any) -> str:
    """A value as YAML writes it, cut to a readable length.

    Example:
        >>> show(None), show(True), show("B")
        ('null', 'true', "'B'")
    """
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = repr(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 4]} ..."


def nearest(name: str, known: Iterable[str]) -> str:
    """Suggests the known name that is most like an unknown one, or lists them all, of many names the nearest.

    Example:
        >>> nearest("slipp", ["map", "slip"])
        'Did you mean `slip`?'
        >>> nearest("gravity", ["map", "slip"])
        'Known: `map`, `slip`'
    """
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        return f"Did you mean `{close[0]}`?"
    if len(names) > _MANY:
        near = difflib.get_close_matches(name, names, n=3, cutoff=0)
        return f"The nearest of {len(names)}: {', '.join(f'`{name}`' for name in near)}"
    return f"Known: {', '.join(f'`{name}`' for name in names)}" if names else "There are none"
