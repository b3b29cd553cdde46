"""Sentences about facts, and days, as agents read them.

* `FactClaim`, `read_claim` - what a sentence says
* `read_about` - the fact that a sentence is about
* `ShownDay`, `read_day` - a state from its JSON text
* `mentions_end` - whether a sentence says that a value no longer holds
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import NamedTuple

NOTHING = "nothing"
"""The value of what a person no longer has."""

SYNONYMS = {
    "workspace": "office",
    "orthodontist": "dentist",
    "cubby": "locker",
    "intolerance": "allergy",
    "supervisor": "manager",
    "residence": "address",
}
"""Names of attributes that mean the same, as a language model knows."""

_ABOUT = re.compile(r"\b([A-Z]\w+)'s (\w+)")
_VALUE = re.compile(r"\b(?:[bdfgklmnprstvz][aeiou]){3}\b")
_DATE = re.compile(r"\bday (\d+)\b")
_HEARSAY = re.compile(r"\b(?:says that|has heard|believes in|[Aa]ccording to)\b")
_ENDED = re.compile(r"\b(?:no longer|not hold|over with|ceased)\b")
_TOLD = "Asked today: "


class FactClaim(NamedTuple):
    """What a sentence says about a fact.

    Args:
        about: the person and the attribute.
        value: the value.
        day: of which it is news, `None` for the day on which it is heard.
        is_hearsay: whether it is said of somebody who said it.
        is_told: whether it is the answer to `ask`.
    """

    about: tuple[str, str]
    value: str
    day: int | None = None
    is_hearsay: bool = False
    is_told: bool = False


class ShownDay(NamedTuple):
    """A state, parsed from its JSON text.

    Args:
        day: its number.
        heard: the sentences.
        claims: what they say about facts.
        asked: how often the agent has asked.
        question: the question.
        about: the person and the attribute of the question.
    """

    day: int
    heard: tuple[str, ...]
    claims: tuple[FactClaim, ...]
    asked: int
    question: str
    about: tuple[str, str]


def read_about(sentence: str) -> tuple[str, str] | None:
    """The person and the attribute that a sentence or a question is about; `None` if there is none.

    Example:
        >>> read_about("What is Ana's workspace?")
        ('Ana', 'office')
    """
    found = _ABOUT.search(sentence)
    return None if found is None else (found[1], SYNONYMS.get(found[2], found[2]))


@lru_cache(maxsize=8192)
def read_claim(sentence: str) -> FactClaim | None:
    """What a sentence says about a fact; `None` if it is about none.

    Args:
        sentence: of any wording: it names the person, the attribute and the value, the new one last.

    Example:
        >>> read_claim("News of day 3: Ana's workspace was bolitu on that day.")
        FactClaim(about=('Ana', 'office'), value='bolitu', day=3, is_hearsay=False, is_told=False)
        >>> read_claim("It is over with bolitu as Ana's dentist.").value
        'nothing'
    """
    about, values, date = read_about(sentence), _VALUE.findall(sentence.lower()), _DATE.search(sentence)
    if about is None:
        return None
    if len(values) < 2 and (_ENDED.search(sentence) or NOTHING in sentence.lower()):
        values = [NOTHING]
    if not values:
        return None
    return FactClaim(
        about,
        values[-1],
        None if date is None else int(date[1]),
        _HEARSAY.search(sentence) is not None,
        sentence.startswith(_TOLD),
    )


@lru_cache(maxsize=32768)
def read_day(state: str) -> ShownDay | None:
    r"""Parse a state; `None` if the text is no state of this environment.

    Args:
        state: the text state.

    Example:
        >>> shown = read_day('{"day": 4, "heard": ["It rained."], "asked": 0, "question": "What is Ana\'s office?"}')
        >>> shown.about, shown.claims
        (('Ana', 'office'), ())
    """
    try:
        shown = json.loads(state)
        heard, question = tuple(map(str, shown["heard"])), str(shown["question"])
        day, asked = int(shown["day"]), int(shown["asked"])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    about = read_about(question)
    if about is None:
        return None
    claims = tuple(claim for claim in map(read_claim, heard) if claim is not None)
    return ShownDay(day, heard, claims, asked, question, about)


def mentions_end(sentence: str) -> bool:
    """Whether a sentence says that a value no longer holds.

    Example:
        >>> mentions_end("Ana's office is no longer bolitu."), mentions_end("Ana's office is bolitu.")
        (True, False)
    """
    return _ENDED.search(sentence) is not None
