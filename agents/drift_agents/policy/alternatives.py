"""Lists of similar texts in few tokens: `go to {bed 1 | shelf {1-3}}` for `go to bed 1`, `go to shelf 1` and so on.

* `fold_alternatives` - the short form of a list
* `unfold_alternatives` - the list again
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from os.path import commonprefix

BAR = " | "
_HEAD = re.compile(r"[^ \[]*[ \[]?")
_TAIL = "]"
_NUMBER = re.compile(r"0|[1-9]\d*")
_RANGE = re.compile(rf"({_NUMBER.pattern})-({_NUMBER.pattern})")
_MARK = re.compile(rf"[{{|}}]|^$|(?:^|[ \[]){_RANGE.pattern}\]*$")
"""What a text has that cannot be folded, since it would read as a part of the short form."""


def fold_alternatives(texts: Sequence[str]) -> str:
    """Write what consecutive texts have in common at their beginning once; the order stays.

    Args:
        texts: not empty; where one of them has a brace or a bar, or ends with a range, none is folded.

    Example:
        >>> fold_alternatives(["go to bed 1", "go to shelf 1", "go to shelf 2", "go to shelf 3", "look"])
        'go to {bed 1 | shelf {1-3}} | look'
        >>> fold_alternatives(["click[red]", "click[light blue]"])
        'click[{red | light blue}]'
    """
    return BAR.join(texts if any(map(_MARK.search, texts)) else _fold(texts))


def _fold(texts: Sequence[str]) -> Iterator[str]:
    for _, found in groupby(texts, key=_head):
        group = list(found)
        shared = commonprefix(group)  # noqa: RUF071 - texts, no paths
        prefix = shared[: max(shared.rfind(" "), shared.rfind("[")) + 1]
        tail = _TAIL if prefix.endswith("[") and all(text.endswith(_TAIL) for text in group) else ""
        rests = [text[len(prefix) : len(text) - len(tail)] for text in group]
        if len(group) == 1 or not prefix or not all(rests):
            yield from group
        else:
            yield f"{prefix}{{{BAR.join(_join_ranges(list(_fold(rests))))}}}{tail}"


def _head(text: str) -> str:
    found = _HEAD.match(text)
    return found[0] if found else ""


def _join_ranges(texts: Sequence[str]) -> Iterator[str]:
    """Consecutive whole numbers as a range."""
    numbers = enumerate(int(text) if _NUMBER.fullmatch(text) else None for text in texts)
    for _, found in groupby(numbers, key=lambda pair: pair if pair[1] is None else pair[1] - pair[0]):
        places = [place for place, _ in found]
        first, last = texts[places[0]], texts[places[-1]]
        yield first if first == last else f"{first}-{last}"


def unfold_alternatives(text: str) -> list[str]:
    """The list behind a short form.

    Args:
        text: what `fold_alternatives` wrote for texts that can be folded.

    Example:
        >>> unfold_alternatives("go to {bed 1 | shelf {1-3}} | look")
        ['go to bed 1', 'go to shelf 1', 'go to shelf 2', 'go to shelf 3', 'look']
    """
    return [one for part in _split(text) for one in _unfold(part)]


def _unfold(part: str) -> Iterator[str]:
    begin, end = part.find("{"), part.rfind("}")
    if begin < 0 or end < begin:
        yield part
        return
    for inner in _split(part[begin + 1 : end]):
        numbers = _RANGE.fullmatch(inner)
        inside = map(str, range(int(numbers[1]), int(numbers[2]) + 1)) if numbers else _unfold(inner)
        yield from (f"{part[:begin]}{one}{part[end + 1 :]}" for one in inside)


def _split(text: str) -> list[str]:
    """The parts between bars that stand in no braces."""
    parts, depth = [""], 0
    for piece in re.split(r"([{}]| \| )", text):
        depth += (piece == "{") - (piece == "}")
        if piece == BAR and not depth:
            parts.append("")
        else:
            parts[-1] += piece
    return parts
