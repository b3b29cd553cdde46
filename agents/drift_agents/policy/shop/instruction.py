"""What a shopper is asked to buy, read out of the instruction.

* `ParsedInstruction` - an instruction as words to look for, a price limit and a class of colours
* `parse_instruction` - from the text to that
* `stems` - the words of a text, each brought down to its stem
* `read_price` - a price as pages show it
* `prior_colors` - which colours people call warm or cool: the planner's prior, not the shop's rule
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

import Stemmer

COLORS_OF = {"warm": "red orange yellow", "cool": "blue green purple"}
"""Which colours a class may mean before anything is known; declared, and the same for every agent."""

_LIMIT = re.compile(r",?\s*and price lower than (\d+(?:\.\d+)?) dollars\W*$", re.IGNORECASE)
# The last "with" before the colon: "with wash cold with color: blue".
_OPTIONS = re.compile(r"(?:\bwith|, and) (?:(?!with )[\w &'.-]){1,40}: ", re.IGNORECASE)
_CLASS = re.compile(r"\bin an? (\w+) colou?r\b", re.IGNORECASE)
_WORD = re.compile(r"[a-z0-9]+(?:\.[0-9]+)?")
_PRICE = re.compile(r"\$(\d+(?:\.\d+)?)")
_FILLERS_TEXT = """
a an and are at be buy by can color colour find for from get give have i in is it lb like looking me my need of on one
or order place should so some something that the them there these this to want which with would you your im also am
help helps please
"""
_FILLERS = frozenset(_FILLERS_TEXT.split())
_STEMMER = Stemmer.Stemmer("english")


class ParsedInstruction(NamedTuple):
    """An instruction as words to look for, a price limit and a class of colours.

    Args:
        text: the instruction in lower case, without the price limit.
        words: the stems that say what it is and what it should be like.
        choices: the stems that say which options to choose, where the instruction names groups.
        limit: the price limit in dollars; infinite where there is none.
        color_class: the class of colours that is asked for, or "".
    """

    text: str
    words: frozenset[str]
    choices: frozenset[str]
    limit: float
    color_class: str

    @property
    def size(self) -> int:
        """How many words there are, at least 1."""
        return max(1, len(self.words) + len(self.choices))


@lru_cache(maxsize=1024)
def parse_instruction(instruction: str) -> ParsedInstruction:
    """Read an instruction.

    Args:
        instruction: the task in words.

    Example:
        >>> wish = parse_instruction("Find me long sleeve shirts with color: red, and price lower than 20.00 dollars")
        >>> sorted(wish.words), sorted(wish.choices), wish.limit
        (['long', 'shirt', 'sleev'], ['red'], 20.0)
    """
    limit = _LIMIT.search(instruction)
    text = instruction[: limit.start()] if limit else instruction
    text = " ".join(text.lower().split())
    color_class = _CLASS.search(text)
    rest = _CLASS.sub(" ", text)
    options = _OPTIONS.search(rest)
    words = stems(rest[: options.start()] if options else rest)
    choices = stems(rest[options.start() :]) if options else frozenset()
    return ParsedInstruction(
        text,
        words,
        choices - words,
        float(limit[1]) if limit else float("inf"),
        color_class[1] if color_class else "",
    )


@lru_cache(maxsize=16384)
def stems(text: str) -> frozenset[str]:
    """The words of a text, each brought down to its stem, without the most common ones.

    Args:
        text: any text.

    Example:
        >>> sorted(stems("Men's Hoodies with a Lined Hood"))
        ['hood', 'hoodi', 'line', 'men']
    """
    found = _WORD.findall(text.lower().replace("'s", "").replace("’s", ""))
    return frozenset(_STEMMER.stemWord(word) for word in found if word not in _FILLERS)


def prior_colors(color_class: str) -> frozenset[str]:
    """Which colours people call so, as stems; none for a class that nobody knows.

    Args:
        color_class: such as `warm`.

    Example:
        >>> prior_colors("warm") == stems("red orange yellow"), prior_colors("loud")
        (True, frozenset())
    """
    return stems(COLORS_OF.get(color_class, ""))


def read_price(text: str) -> float | None:
    """A price as pages show it; of a range the middle, `None` where there is none.

    Args:
        text: as in `$4.5 to $6.5`.

    Example:
        >>> read_price("$4.5 to $6.5"), read_price("Price: $20.0"), read_price("free")
        (5.5, 20.0, None)
    """
    prices = [float(price) for price in _PRICE.findall(text)]
    return sum(prices) / len(prices) if prices else None
