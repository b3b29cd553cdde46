"""A world of facts under the present knobs, as a pure function.

* `FactsModel` - what is true, and what was said
* `make_model` - the model of a world under knob values
* `FACTS_OF_A_KIND`, `FACTS_OF_A_WORLD` - how many facts there are

A fact is a person's attribute. Each belongs to one kind of change or to none, so that the number of changes of its
kind alone says which value it has: the changes of a kind take turns among its facts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from drift_envs.envs.facts.knobs import KINDS
from drift_envs.envs.facts.vocabulary import (
    ATTRIBUTES,
    NAMESAKES,
    NOTHING,
    PEOPLE,
    SMALL_TALK,
    WORDINGS,
    make_value,
    write_statement,
)
from drift_envs.knobs import Value

FACTS_OF_A_KIND = 6
FATES = (*KINDS, "unchanged")
"""The kinds of facts, by what happens to them."""
FACTS_OF_A_WORLD = FACTS_OF_A_KIND * len(FATES)

_LAST = 1000
_FALSE = 500
"""From this number on the values of a fact are false ones."""
_AGE = 3
"""How many days late news is old."""

Counts = tuple[int, ...]
"""The number of changes of each of `KINDS`."""


class Fact(NamedTuple):
    """A person's attribute.

    Args:
        number: of the fact.
        fate: one of `FATES`.
        who: the person.
        what: the attribute.
    """

    number: int
    fate: str
    who: str
    what: str


@lru_cache(maxsize=256)
def draw_facts(world: int) -> tuple[Fact, ...]:
    """The facts of a world, those of a kind together.

    Args:
        world: its number.
    """
    pairs = [(who, what) for who in PEOPLE for what in ATTRIBUTES]
    order = np.random.default_rng([0xFAC7, world]).permutation(len(pairs))
    return tuple(
        Fact(number, FATES[number // FACTS_OF_A_KIND], *pairs[int(place)]) for number, place in enumerate(order)
    )


class FactsModel(NamedTuple):
    """A world under knob values.

    Args:
        world: its number.
        counts: the number of changes of each kind.
        price: the cost of `ask`.
        lost: the probability that an answer to `ask` is false.

    Example:
        >>> old, new = make_model(7, {}), make_model(7, {"change": 1})
        >>> [(model.facts[0].who, model.facts[0].what, model.value(0)) for model in (old, new)]
        [('Ana', 'address', 'fegege'), ('Ana', 'address', 'fitunu')]
        >>> new.news(5, old.counts, [0, 1])
        ("As of today Ana's address is fitunu.", 'The printer is out of paper.')
    """

    world: int
    counts: Counts
    price: float = 0.1
    lost: float = 0.0

    @property
    def facts(self) -> tuple[Fact, ...]:
        """All facts."""
        return draw_facts(self.world)

    def version(self, number: int, counts: Counts | None = None) -> int:
        """How often a fact was hit by a change of its kind."""
        kind, place = divmod(number, FACTS_OF_A_KIND)
        counts = self.counts if counts is None else counts
        return 0 if kind == len(KINDS) else (counts[kind] - place + FACTS_OF_A_KIND - 1) // FACTS_OF_A_KIND

    def value(self, number: int, version: int | None = None) -> str:
        """The true value of a fact: a word, or `NOTHING`.

        Args:
            number: of the fact.
            version: which one; by default the present one.
        """
        fate = FATES[number // FACTS_OF_A_KIND]
        version = self.version(number) if version is None else version
        if fate in ("hearsay", "confuse", "unchanged"):
            version = 0
        elif fate == "return":
            version %= 2
        elif fate == "retract" and version % 2:
            return NOTHING
        return make_value(self.world, number * _LAST + version)

    def false_value(self, number: int, which: int) -> str:
        """A value that the fact never has."""
        return make_value(self.world, number * _LAST + _FALSE + which % _FALSE)

    def name(self, number: int, version: int | None = None) -> str:
        """What the attribute is called."""
        fact = self.facts[number]
        version = self.version(number) if version is None else version
        return ATTRIBUTES[fact.what] if fact.fate == "rename" and version % 2 else fact.what

    def is_said(self, number: int) -> bool:
        """Whether the present value was said; a silent change is not."""
        return FATES[number // FACTS_OF_A_KIND] != "silent" or not self.version(number)

    def question(self, number: int, wording: int) -> str:
        """The question about a fact, with the attribute's present name."""
        return _question(self.facts[number].who, self.name(number), wording)

    def find(self, question: str) -> int | None:
        """The fact that a question is about; the attribute may have a former or a later name."""
        return _questions(self.world).get(question)

    def tell(self, number: int, value: str) -> str:
        """The answer to `ask`."""
        return write_statement("told", 0, who=self.facts[number].who, what=self.name(number), value=value)

    def news(self, day: int, since: Counts | None, pool: Sequence[int], held_out: bool = False) -> tuple[str, ...]:
        """What is said on a day.

        Args:
            day: its number.
            since: the numbers of changes on the day before; `None` for the first day, which introduces all facts.
            pool: the facts that are talked about.
            held_out: whether the wording is the one that is held out.
        """
        talk = SMALL_TALK[(day + self.world) % len(SMALL_TALK)]
        if since == self.counts:
            return (talk,)
        said: list[str] = []
        for number in pool:
            wording = WORDINGS if held_out else (number + day) % WORDINGS
            if since is None:
                fact = self.facts[number]
                said_last = 0 if fact.fate == "silent" else None
                words = {"who": fact.who, "what": self.name(number), "value": self.value(number, said_last)}
                said.append(write_statement("said", wording, **words))
            elif (before := self.version(number, since)) != self.version(number):
                said += self._report(number, before, day, wording)
        return (*said, talk)

    def _report(self, number: int, before: int, day: int, wording: int) -> list[str]:
        """What is said about a fact since whose version something has happened."""
        fact, now = self.facts[number], self.version(number)
        old, value = self.value(number, before), self.value(number)
        words = {"who": fact.who, "what": self.name(number), "value": value, "old": old}
        if fact.fate == "silent":
            return []
        if fact.fate in ("hearsay", "confuse"):
            if now < before:
                return []
            words["value"] = self.false_value(number, now)
            if fact.fate == "confuse":
                return [write_statement("change", wording, **{**words, "who": NAMESAKES[fact.who]})]
            speaker = PEOPLE[(PEOPLE.index(fact.who) + 1 + now) % len(PEOPLE)]
            return [write_statement("hearsay", wording, **words, speaker=speaker)]
        if fact.fate == "retract" and NOTHING not in (old, value):
            return [write_statement("retract", wording, **words)]
        if fact.fate == "retract":
            return [write_statement("gone" if value == NOTHING else "change", wording, **words)]
        if fact.fate == "rename":
            if (was := self.name(number, before)) == self.name(number):
                return [write_statement("change", wording, **words)]
            return [write_statement("rename", wording, **words, was=was)]
        if fact.fate == "late":
            words["value"], late = value, {**words, "value": old}
            then = max(day - _AGE, 0)
            return [write_statement("change", wording, **words), write_statement("late", wording, **late, then=then)]
        return [write_statement(fact.fate, wording, **words)]


@lru_cache(maxsize=4096)
def _question(who: str, what: str, wording: int) -> str:
    return write_statement("question", wording, who=who, what=what)


@lru_cache(maxsize=64)
def _questions(world: int) -> dict[str, int]:
    """The facts of a world by question."""
    return {
        _question(fact.who, name, wording): fact.number
        for fact in draw_facts(world)
        for name in (fact.what, ATTRIBUTES[fact.what])
        for wording in range(WORDINGS + 1)
    }


def make_model(world: int, knobs: Mapping[str, Value]) -> FactsModel:
    """The model of a world under knob values; those that are left out are at their defaults.

    Args:
        world: its number.
        knobs: the values.
    """
    counts = tuple(int(knobs.get(kind, 0)) for kind in KINDS)
    return FactsModel(world, counts, float(knobs.get("price", 0.1)), float(knobs.get("transient", 0.0)))
