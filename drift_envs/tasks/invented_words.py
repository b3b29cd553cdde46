"""Words of three syllables that occur nowhere else, so that they can be found and counted in any text."""

from __future__ import annotations

import re
from math import gcd

_SYLLABLES = tuple(consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou")
_COUNT = len(_SYLLABLES) ** 3
_WORD = re.compile(r"\b(?:[bdfgklmnprstvz][aeiou]){3}\b")


def make_word(world: int, number: int) -> str:
    """A word, another one for each number.

    Args:
        world: the number of the world, which permutes the words.
        number: of the word, from 0; there are 343,000.

    Example:
        >>> make_word(7, 0), make_word(7, 1)
        ('fegege', 'fitunu')
    """
    step = 7919 + 2 * world
    while gcd(step, _COUNT) > 1:
        step += 1
    place = (step * (number + 1) + 104_729 * world) % _COUNT
    count = len(_SYLLABLES)
    return _SYLLABLES[place // count**2] + _SYLLABLES[place // count % count] + _SYLLABLES[place % count]


def read_words(text: str) -> list[str]:
    """All invented words in a text, in their order, in lower case.

    Example:
        >>> read_words("Lodafi has ceased to be Ana's dentist.")
        ['lodafi']
    """
    return _WORD.findall(text.lower())
