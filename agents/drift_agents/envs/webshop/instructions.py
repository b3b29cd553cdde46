"""Instructions of the shop as words: what they ask for, at what price; prices and classes of colours."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

import Stemmer

COLORS_OF = {"warm": "red orange yellow", "cool": "blue green purple"}
"""The prior colours of each class; declared, and the same for all agents."""

_LIMIT = re.compile(r",?\s*and price lower than (\d+(?:\.\d+)?) dollars\W*$", re.IGNORECASE)
# The last "with" before the colon: "with wash cold with color: blue".
_NAMED_OPTIONS = re.compile(r"(?:\bwith|, and) (?:(?!with )[\w &'.-]){1,40}: ", re.IGNORECASE)
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
    """An instruction as words, a price limit and a class of colours.

    Args:
        text: the instruction in lower case, without the price limit.
        words: the stems of the product's name and attributes.
        choices: the stems of the option values, where the instruction names option groups.
        limit: the price limit in dollars; infinite without one.
        color_class: the requested class of colours, or "".
    """

    text: str
    words: frozenset[str]
    choices: frozenset[str]
    limit: float
    color_class: str

    @property
    def size(self) -> int:
        """The number of words, at least 1."""
        return max(1, len(self.words) + len(self.choices))


@lru_cache(maxsize=1024)
def parse_instruction(instruction: str) -> ParsedInstruction:
    """Parse an instruction.

    Args:
        instruction: the task in words.

    Example:
        >>> parsed = parse_instruction("Find me long sleeve shirts with color: red, and price lower than 20.00 dollars")
        >>> sorted(parsed.words), sorted(parsed.choices), parsed.limit
        (['long', 'shirt', 'sleev'], ['red'], 20.0)
    """
    limit = _LIMIT.search(instruction)
    text = instruction[: limit.start()] if limit else instruction
    text = " ".join(text.lower().split())
    color_class = _CLASS.search(text)
    rest = _CLASS.sub(" ", text)
    options = _NAMED_OPTIONS.search(rest)
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
    """The stems of a text's words, without the most common words.

    Args:
        text: any text.

    Example:
        >>> sorted(stems("Men's Hoodies with a Lined Hood"))
        ['hood', 'hoodi', 'line', 'men']
    """
    found = _WORD.findall(text.lower().replace("'s", "").replace("’s", ""))
    return frozenset(_STEMMER.stemWord(word) for word in found if word not in _FILLERS)


def prior_colors(color_class: str) -> frozenset[str]:
    """The stems of the colours of a class; none for an unknown class.

    Args:
        color_class: such as `warm`.

    Example:
        >>> prior_colors("warm") == stems("red orange yellow"), prior_colors("loud")
        (True, frozenset())
    """
    return stems(COLORS_OF.get(color_class, ""))


def read_price(text: str) -> float | None:
    """Parse a price; the middle of a range, `None` without a price.

    Args:
        text: as in `$4.5 to $6.5`.

    Example:
        >>> read_price("$4.5 to $6.5"), read_price("Price: $20.0"), read_price("free")
        (5.5, 20.0, None)
    """
    prices = [float(price) for price in _PRICE.findall(text)]
    return sum(prices) / len(prices) if prices else None
