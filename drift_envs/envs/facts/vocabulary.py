"""The words of the facts: people, attributes, values that occur nowhere else, and wordings.

* `PEOPLE`, `NAMESAKES`, `ATTRIBUTES` - who has which attributes, similar names, and other names of attributes
* `make_value`, `read_values` - the word of a value, and the values in a sentence
* `write_statement` - sentences and questions, in one of `WORDINGS` wordings or in the one that is held out
* `NOTHING` - the value of an attribute that a person no longer has
"""

from __future__ import annotations

import re
from math import gcd

NOTHING = "nothing"

PEOPLE = ("Ana", "Omar", "Lena", "Tariq", "Mira", "Jonas", "Priya", "Carlo", "Sofie")
NAMESAKES = {
    "Ana": "Anna",
    "Omar": "Omer",
    "Lena": "Lana",
    "Tariq": "Tarik",
    "Mira": "Myra",
    "Jonas": "Jonah",
    "Priya": "Prisha",
    "Carlo": "Carla",
    "Sofie": "Sofia",
}
"""Another person with a similar name, for each person."""

ATTRIBUTES = {
    "office": "workspace",
    "dentist": "orthodontist",
    "locker": "cubby",
    "allergy": "intolerance",
    "manager": "supervisor",
    "address": "residence",
}
"""The name of each attribute after `rename`."""

TOLD = "Asked today: "
"""How an answer to `ask` begins."""

WORDINGS = 3
"""How many wordings there are; one more is held out."""

_SYLLABLES = tuple(consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou")
_VALUES = len(_SYLLABLES) ** 3
_VALUE = re.compile(r"\b(?:[bdfgklmnprstvz][aeiou]){3}\b")

_STATEMENTS: dict[str, tuple[str, ...]] = {
    "said": (
        "{who}'s {what} is {value}.",
        "Note that {who}'s {what} is {value}.",
        "For {who}'s {what}, write down {value}.",
        "Please remember {value} as {who}'s {what}.",
    ),
    "change": (
        "Update: {who}'s {what} is {value}.",
        "{who}'s {what} is now {value}.",
        "As of today {who}'s {what} is {value}.",
        "There is a change: {who}'s {what} became {value}.",
    ),
    "gone": (
        "{who}'s {what} is no longer {old}.",
        "Forget {who}'s {what}: {old} does not hold any more.",
        "It is over with {old} as {who}'s {what}.",
        "{old} has ceased to be {who}'s {what}.",
    ),
    "retract": (
        "{who}'s {what} is no longer {old}; it is {value}.",
        "Forget what I said about {who}'s {what}: not {old}, it is {value}.",
        "It is over with {old} as {who}'s {what}, which is {value} from today.",
        "{old} has ceased to be {who}'s {what}; the new one is {value}.",
    ),
    "return": (
        "{who}'s {what} is {value} again.",
        "Once more {who}'s {what} is {value}.",
        "{who}'s {what} is back to {value}.",
        "As before, {who}'s {what} is {value}.",
    ),
    "late": (
        "News of day {then}: {who}'s {what} was {value} on that day.",
        "A letter of day {then} arrives: {who}'s {what} is {value}.",
        "Only now I hear that on day {then} {who}'s {what} was {value}.",
        "A note dated day {then} says {value} for {who}'s {what}.",
    ),
    "rename": (
        "{who}'s {was} is called {what} now, and {who}'s {what} is {value}.",
        "From today we say {what} for {who}'s {was}: {who}'s {what} is {value}.",
        "What was {who}'s {was} has the name {what} and is {value}.",
        "{who}'s {what}, once the {was}, is {value}.",
    ),
    "hearsay": (
        "{speaker} says that {who}'s {what} is {value}.",
        "According to {speaker}, {who}'s {what} is {value}.",
        "{speaker} has heard that {who}'s {what} is {value}.",
        "{speaker} believes in {value} as {who}'s {what}.",
    ),
    "told": (TOLD + "{who}'s {what} is {value}.",) * 4,
    "question": (
        "What is {who}'s {what}?",
        "Tell me {who}'s {what}.",
        "Which one is {who}'s {what}?",
        "I need {who}'s {what}; what is it?",
    ),
}

SMALL_TALK = (
    "It rained all morning.",
    "The lift is slow today.",
    "Lunch was better than last week.",
    "The plants need water.",
    "There is cake in the kitchen.",
    "The printer is out of paper.",
    "Somebody left an umbrella behind.",
)
"""What is said beside; it is about no fact."""


def make_value(world: int, number: int) -> str:
    """A word of three syllables, another one for each number.

    Args:
        world: the number of the world, which permutes the words.
        number: of the value, from 0.

    Example:
        >>> make_value(7, 0), make_value(7, 1)
        ('fegege', 'fitunu')
    """
    step = 7919 + 2 * world
    while gcd(step, _VALUES) > 1:
        step += 1
    place = (step * (number + 1) + 104_729 * world) % _VALUES
    count = len(_SYLLABLES)
    return _SYLLABLES[place // count**2] + _SYLLABLES[place // count % count] + _SYLLABLES[place % count]


def read_values(sentence: str) -> list[str]:
    """The values in a sentence.

    Example:
        >>> read_values("Lodafi has ceased to be Ana's dentist.")
        ['lodafi']
    """
    return _VALUE.findall(sentence.lower())


def write_statement(kind: str, wording: int, **words: object) -> str:
    """A sentence.

    Args:
        kind: a key of the wordings, as `change`.
        wording: which one; `WORDINGS` is the one that is held out.
        words: `who`, `what`, `value`, and what else the kind needs: `old`, `was`, `then`, `speaker`.

    Example:
        >>> write_statement("change", 1, who="Ana", what="dentist", value="bolitu")
        "Ana's dentist is now bolitu."
    """
    sentence = _STATEMENTS[kind][wording].format(**words)
    return sentence[0].upper() + sentence[1:]
