"""A world of facts as a pure function of the knobs, its words, and one day in it.

A fact is a person's attribute. Each belongs to one kind of change or to none, so that the number of changes of its
kind alone says which value it has: the changes of a kind take turns among its facts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from drift_envs.knobs import Knob, KnobTable, Value
from drift_envs.tasks.invented_words import make_word

MOST_CHANGES = 1000
"""Each kind of change can occur so often."""

MOST_WORLDS = 1_000_000

EXPLICIT = {
    "change": "changes so far in which a new value is said",
    "retract": "changes so far in which a value no longer holds; every second one names a new value",
    "return": "changes so far to and from an earlier value, all said",
    "late": "changes so far that are said, each before news of the old value that arrives late, with its date",
    "rename": "changes so far of an attribute's name together with its value, all said",
}
IMPLICIT = {
    "silent": "changes so far of values that nobody says",
    "hearsay": "false statements so far, each with its speaker",
    "confuse": "statements so far about another person with a similar name",
}
KINDS = (*EXPLICIT, *IMPLICIT)

FACTS_KNOBS = KnobTable(
    (
        Knob("world", 0, (0, MOST_WORLDS), "number of the world; 0 draws one from the seed", "integer"),
        *(Knob(name, 0, (0, MOST_CHANGES), doc, "integer") for name, doc in {**EXPLICIT, **IMPLICIT}.items()),
        Knob("price", 0.1, (0.0, 1.0), "cost of `ask`"),
        Knob("transient", 0.0, (0.0, 1.0), "probability that an answer to `ask` is false"),
    )
)

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
        return make_word(self.world, number * _LAST + version)

    def false_value(self, number: int, which: int) -> str:
        """A value that the fact never has."""
        return make_word(self.world, number * _LAST + _FALSE + which % _FALSE)

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


ASK, PASS = "ask", "pass"


class FactsEpisode:
    """The state of a day.

    Args:
        model: the world; replaced from outside when knobs change.
        number: the fact that is asked about.
        day: the number of the day.
        heard: the sentences of the day.
        question: the question.

    Example:
        >>> from drift_envs.envs.facts.world import make_model
        >>> model = make_model(7, {})
        >>> episode = FactsEpisode(model, 0, 3, model.news(3, None, [0]), model.question(0, 0))
        >>> print(episode.write_answer())
        Day 3. Ana's address is fegege.
        The plants need water.
        What is Ana's address?
        >>> episode.act("ask"), episode.act("fegege"), episode.score
        ("Asked today: Ana's address is fegege.", 'The answer was right.', 0.9)
    """

    def __init__(self, model: FactsModel, number: int, day: int, heard: Sequence[str], question: str) -> None:
        self.model, self.number, self.day = model, number, day
        self.heard, self.question = tuple(heard), question
        self.asked, self.answer, self.score, self.is_over = 0, "", 0.0, False

    def act(self, text: str) -> str:
        """Ask, pass, or answer with a value.

        Args:
            text: the command.

        Returns:
            What follows, in words.
        """
        command = " ".join(text.lower().split())
        if self.is_over:
            return self.answer
        if command == ASK:
            return self._tell(self.model.value(self.number))
        self.is_over = True
        right = command != PASS and command == self.model.value(self.number)
        self.score += float(right)
        self.answer = "The answer was right." if right else "No answer." if command == PASS else "The answer was wrong."
        return self.answer

    def lose(self) -> str:
        """Answer `ask` with a false value."""
        which = self.asked + 7 * self.day
        return self.answer if self.is_over else self._tell(self.model.false_value(self.number, which))

    def _tell(self, value: str) -> str:
        self.asked += 1
        self.score = -self.model.price * self.asked
        self.answer = self.model.tell(self.number, value)
        self.heard = (*(one for one in self.heard if one != self.answer), self.answer)
        return self.answer

    def write_answer(self) -> str:
        """The day in words, or what followed the answer."""
        return self.answer if self.is_over else f"Day {self.day}. " + "\n".join((*self.heard, self.question))

    def write_state(self) -> str:
        """The state as JSON."""
        return _write_state(self.day, self.heard, self.asked, self.question)

    def save(self) -> dict[str, Any]:
        """The state as plain data."""
        return {name: value for name, value in vars(self).items() if name != "model"}

    def load(self, saved: Mapping[str, Any]) -> None:
        """Restore a state.

        Args:
            saved: from `save`.
        """
        vars(self).update(saved)


@lru_cache(maxsize=256)
def _write_state(day: int, heard: tuple[str, ...], asked: int, question: str) -> str:
    return json.dumps({"day": day, "heard": heard, "asked": asked, "question": question})
