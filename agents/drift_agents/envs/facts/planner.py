"""What agents know of facts that change: how statements are read, when days are the same, words, and the planner."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from drift_agents.envs.matching import ParsedMatching
from drift_agents.policy.base import ParsedPlanner, pick
from drift_agents.policy.ranked import PlainFacts
from drift_agents.prompt.view import PromptView, Recollection, Sightings, add_sighting, settle_all
from drift_envs.checks import check_choice

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


class FactsMatching(ParsedMatching[ShownDay]):
    r"""What is asked about, and what was said about facts; day and wording do not count.

    Texts that are no states of this environment are compared as they are.

    Example:
        >>> rule = FactsMatching()
        >>> one = '{"day": 4, "heard": ["It rained."], "asked": 0, "question": "What is Ana\'s office?"}'
        >>> other = '{"day": 9, "heard": [], "asked": 0, "question": "Tell me Ana\'s workspace."}'
        >>> rule.state_key(one) == rule.state_key(other)
        True
    """

    name = "facts"
    parse = staticmethod(read_day)

    def key(self, shown: ShownDay) -> Hashable:
        """The fact that is asked about, what was said about facts, and how often the agent has asked."""
        return shown.about, tuple(claim._replace(day=None) for claim in shown.claims), shown.asked

    def is_same(self, one: ShownDay, other: ShownDay) -> bool:
        """Whether what was told is the same."""
        told, told_there = ([claim for claim in shown.claims if claim.is_told] for shown in (one, other))
        return told == told_there

    def is_relevant(self, here: ShownDay, there: ShownDay) -> bool:
        """Those of a day on which the fact was asked about, or something was said about it."""
        return there.about == here.about or any(claim.about == here.about for claim in there.claims)


class HeardFacts(PlainFacts):
    r"""What was heard, and the question.

    Example:
        >>> state = '{"day": 4, "heard": ["It rained."], "asked": 0, "question": "What is Ana\'s office?"}'
        >>> HeardFacts().describe_state(state)
        'day 4, heard "It rained.", asked "What is Ana\'s office?"'
    """

    best_score = 1.0
    cut_states = ('{"day": ', "a day")

    def describe_state(self, state: str) -> str:
        """The day, what was heard, and the question; another text as it is."""
        shown = read_day(state)
        if shown is None:
            return state
        return ", ".join([f"day {shown.day}", *(f'heard "{one}"' for one in shown.heard), f'asked "{shown.question}"'])

    def is_of_other_task(self, item: Recollection, view: PromptView) -> bool:
        """Whether the outcome was seen under another question."""
        then, now = read_day(item.state), read_day(view.state)
        return then is not None and now is not None and then.about != now.about

    def state_fields(self, state: str) -> Mapping[str, str]:
        """`day`, `heard` and `question`."""
        shown = read_day(state)
        if shown is None:
            return {"day": "unknown", "heard": state, "question": "unknown"}
        return {"day": str(shown.day), "heard": " ".join(shown.heard), "question": shown.question}


ASK, PASS = "ask", "pass"
ASKS = ("doubt", "always", "never")


class FactsPlanner(ParsedPlanner[ShownDay]):
    r"""Answers with what is believed, or asks.

    * What was told or said last is believed; news with a date counts from that date. What somebody is said to have
      said counts only where nothing else was said.
    * A value that was a wrong answer since is not believed; how right and wrong answers are weighed says `conflict`.
      Of other values, one that was a right answer is believed.
    * Where nothing is believed, or only what was last seen before memory was found wrong, it asks.

    Args:
        conflict: how several outcomes of one (state, action) are weighed (`drift_agents.prompt.view`).
        asks: when it asks: in `doubt`, `always` before an answer, or `never`; then it passes where nothing is believed,
            and ignores doubt.

    Raises:
        ArgumentError: if an option is outside its range.

    Example:
        >>> at = '{"day": 4, "heard": ["Ana\'s office is bolitu."], "asked": 0, "question": "What is Ana\'s office?"}'
        >>> view = PromptView("What is Ana's office?", at, ("bolitu", "nofeze", "ask", "pass"))
        >>> FactsPlanner().decide(view, np.random.default_rng(0)).text
        'bolitu'
    """

    name, shows = "facts", "a day of facts"
    parse = staticmethod(read_day)

    def __init__(self, *, conflict: str = "majority", asks: str = "doubt") -> None:
        super().__init__(conflict=conflict)
        self.asks = check_choice("asks", asks, ASKS)

    def _choose(self, shown: ShownDay, view: PromptView, rng: np.random.Generator) -> str:
        answers = [action for action in view.actions if action not in (ASK, PASS)]
        wanted = self._believe(view, shown)
        if wanted not in answers:
            wanted = ASK if self.asks != "never" and not shown.asked else PASS
        return wanted if wanted in view.actions else pick(view.actions, rng)

    def _believe(self, view: PromptView, shown: ShownDay) -> str | None:
        """The value that is believed; `None` if there is none."""
        claims = sorted(_claims(view, shown), key=lambda dated: (not dated[1].is_hearsay, dated[0]))
        today = [claim.value for claim in shown.claims if claim.about == shown.about and claim.is_told]
        if today:
            return today[-1]
        if self.asks == "always":
            return None
        doubt = -1 if self.asks == "never" else view.trusted_since
        answers = self._read_answers(view, shown)
        right = {value: seen for value, seen in answers.items() if seen[0]}
        if claims:
            (day, _, last), claim = claims[-1]
            is_right, seen, answered = answers.get(claim.value, (True, -1, -1))
            if (is_right or seen < day) and max(last, answered) >= doubt:
                return claim.value
        fresh = {value: seen for value, seen in right.items() if seen[2] >= doubt}
        return max(fresh, key=lambda value: fresh[value][1]) if fresh else None

    def _read_answers(self, view: PromptView, shown: ShownDay) -> dict[str, tuple[bool, int, int]]:
        """By value: whether it is a right answer, the last day and the last step on which it was one or was not."""
        sightings: dict[str, Sightings[bool]] = {}
        days: dict[str, int] = {}
        for item in (*view.elsewhere, *view.here):
            then = read_day(item.state)
            if then is None or then.about != shown.about or not item.outcome.ended or item.action == PASS:
                continue
            add_sighting(sightings.setdefault(item.action, {}), item.outcome.score > 0, item.support, item.last)
            days[item.action] = max(days.get(item.action, -1), then.day)
        found = {}
        for value, seen in sightings.items():
            is_right = max(settle_all(seen, self.conflict), key=lambda pair: pair[1])[0]
            found[value] = (is_right, days[value], seen[is_right][1])
        return found


def _claims(view: PromptView, shown: ShownDay) -> Iterator[tuple[tuple[int, int, int], FactClaim]]:
    """What was said about the fact: the day that counts, the place on that day, and the agent's step; and the claim."""
    seen: list[tuple[ShownDay | None, int]] = [(shown, view.step)]
    for item in (*view.elsewhere, *view.here):
        told = read_day(item.outcome.state) if item.action == ASK else None
        seen += [(read_day(item.state), item.last), (told, item.last)]
    for then, last in seen:
        for place, claim in enumerate(() if then is None else then.claims):
            if claim.about == shown.about:
                yield ((then.day if claim.day is None else claim.day), place, last), claim  # type: ignore[union-attr]
