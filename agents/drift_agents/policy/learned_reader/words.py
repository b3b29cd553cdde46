"""Messages as lists of words, for the learned reader.

* `split_text` - messages as short lines, each of which can be read without the others
* `read_words` - a line as words
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from drift_agents.policy.alternatives import unfold_alternatives

_LIST = re.compile(r"^(?P<head>[^:\[]*): (?P<entries>[^;]*)$")
_COMMA = re.compile(r", (?!\d+\])")
_HEAD = re.compile(r"(?:^|\. )[A-Z][a-z ]*: ")
_SENTENCE = re.compile(r"(?<=\.) (?=[A-Z])")
_WORD = re.compile(r"(?P<place>\[\d+,|\d+\])|(?P<number>\d+)|(?P<word>[a-z']+)|(?P<sign>[^\s.,;:])")
NUMBERS = 30
"""Larger numbers are read as `MANY`, as are times."""
MANY = "#"
_ACTIONS = "Possible actions"
_TIMES = ("at", "step")


def split_text(text: str) -> Iterator[str]:
    """Messages as short lines: a sentence, or an entry of a list after what stands before the list.

    Args:
        text: the messages.

    Example:
        >>> list(split_text("Go on. Stop." + chr(10) + "Actions: 0 left, 1 right"))
        ['Go on.', 'Stop.', 'Actions: 0 left', 'Actions: 1 right']
        >>> list(split_text("- old, score 0: [1, 2] at 4; [3, 4] at 2"))
        ['- old, score 0: [1, 2] at 4', '- old, score 0: [3, 4] at 2']
        >>> list(split_text("In your hand: nothing. Visited: bed 1 | shelf {1-2}."))
        ['In your hand: nothing.', 'Visited: bed 1.', 'Visited: shelf 1.', 'Visited: shelf 2.']
    """
    for line in text.split("\n"):
        if line.startswith("- "):
            head, mark, entries = line.partition(": ")
            yield from (f"{head}{mark}{entry}" for entry in entries.split("; "))
        elif line.startswith(_ACTIONS):  # they are the candidates
            continue
        elif len(_HEAD.findall(line)) > 1:
            yield from (entry for sentence in _SENTENCE.split(line) for entry in _split_list(sentence))
        elif _LIST.match(line):
            yield from _split_list(line)
        elif line:
            yield from _SENTENCE.split(line)


def _split_list(line: str) -> Iterator[str]:
    """The entries of a list, each after what stands before the list; the line itself if it is no list."""
    found = _LIST.match(line)
    if found is None:
        yield line
        return
    for entry in _COMMA.split(found["entries"]):
        folded, stop = (entry[:-1], ".") if entry.endswith(".") else (entry, "")
        unfolded = unfold_alternatives(folded) if "|" in entry or "{" in entry else [folded]
        yield from (f"{found['head']}: {one}{stop}" for one in unfolded)


@lru_cache(maxsize=65536)
def read_words(line: str) -> tuple[str, ...]:
    """A line as words, in lower case, without stops; numbers above `NUMBERS`, and times, are all one word.

    Args:
        line: one of `split_text`.

    Example:
        >>> read_words("- 2 led to [3, 4]. Last at 12. Score 1, in 40 more steps.")
        ('-', '2', 'led', 'to', '[3,', '4]', 'last', 'at', '#', 'score', '1', 'in', '#', 'more', 'steps')
    """
    words: list[str] = []
    for match in _WORD.finditer(line.lower()):
        is_time = bool(words) and words[-1] in _TIMES
        hidden = match["number"] is not None and (is_time or int(match["number"]) > NUMBERS)
        words.append(MANY if hidden else match[0])
    return tuple(words)
