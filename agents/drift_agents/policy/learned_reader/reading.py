"""Messages and admissible actions as the learned reader sees them.

* `ReadMessages` - lines and candidates as words
* `read_messages` - makes them

Two things would be lost on a network that reads lines apart from each other and knows a fixed list of words, so that
they are said here. A listing's code becomes a number, and stands with the title and the price that the page shows below
it. Where messages name a task, every line and every action begins with how many words it has in common with it, and how
many not: the feature "exact match" of Chen et al. (2017), "Reading Wikipedia to answer open-domain questions",
section 3.2.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from drift_agents.policy.learned_reader.words import read_words, split_text

Words = tuple[str, ...]

_TASK = re.compile(r"^(?:Instruction|Task): (.*)$", re.MULTILINE)
_CODE = re.compile(r"\b(?=[a-z]*\d)(?=\d*[a-z])[a-z0-9]{10}\b", re.IGNORECASE)
_CLICK = re.compile(rf"click\[({_CODE.pattern})\]", re.IGNORECASE)
_PLAIN = re.compile(r"[a-z']+|\d+")
_COMMON = frozenset(
    ["a", "an", "and", "at", "for", "from", "in", "is", "it", "me", "of", "on", "than", "the", "to", "with"]
)
"""Words that say nothing about what is wanted."""
_MOST = 9
"""Larger counts are read as this one."""


class ReadMessages(NamedTuple):
    """What the network reads.

    Args:
        lines: the words of each line.
        candidates: the words of each admissible action, in the order of the actions.
    """

    lines: tuple[Words, ...]
    candidates: tuple[Words, ...]


def read_messages(text: str, actions: Sequence[str]) -> ReadMessages:
    """Messages and admissible actions as words.

    Args:
        text: the messages.
        actions: the admissible actions.

    Example:
        >>> read = read_messages("Task: put an egg in bed" + chr(10) + "You see egg 1.", ["take egg 1", "look"])
        >>> read.lines
        (('task', 'put', 'an', 'egg', 'in', 'bed'), ('has1', 'lacks3', 'you', 'see', 'egg', '1'))
        >>> read.candidates
        (('has1', 'lacks2', 'take', 'egg', '1'), ('has0', 'lacks1', 'look'))
    """
    text, names = _name_listings(text, actions)
    found = _TASK.search(text)
    task = frozenset(_PLAIN.findall(found[1].lower())) - _COMMON if found else None
    return ReadMessages(
        tuple(_read(line, None if _TASK.match(line) else task) for line in split_text(text)),
        tuple(_read(name, task) for name in names),
    )


@lru_cache(maxsize=65536)
def _read(line: str, task: frozenset[str] | None) -> Words:
    words = read_words(line)
    if task is None:
        return words
    own = frozenset(_PLAIN.findall(line.lower())) - _COMMON
    return (f"has{min(len(own & task), _MOST)}", f"lacks{min(len(own - task), _MOST)}", *words)


def _name_listings(text: str, actions: Sequence[str]) -> tuple[str, list[str]]:
    """The text with numbers for codes, and the actions with what the page shows below their codes."""
    codes = [found[1].lower() for action in actions if (found := _CLICK.fullmatch(action))]
    if "click[" not in text or not _CODE.search(text):
        return text, list(actions)
    numbers = {code: f"code {number}" for number, code in enumerate(dict.fromkeys(codes), 1)}
    lines = text.split("\n")
    shown = {
        line.lower(): " ".join(lines[row + 1 : row + 3]) for row, line in enumerate(lines) if _CODE.fullmatch(line)
    }

    def title(found: re.Match[str]) -> str:
        code = found[0].lower()
        return f"{numbers[code]} {shown.get(code, '')}".strip()

    names = [_CODE.sub(title, action) if _CLICK.fullmatch(action) else action for action in actions]
    return _CODE.sub(lambda found: numbers.get(found[0].lower(), "code 0"), text), names
