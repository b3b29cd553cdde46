"""Whether a text says that a value was withdrawn, in whatever wording a service has.

No word list has all wordings. So texts are compared with those that the same service returns for facts that hold: what
it says of these too (a suffix, a field `deleted_at: null`, the question) is no sign that a value is gone.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from drift_agents.envs.facts.planner import SYNONYMS, mentions_end, read_about
from drift_envs.envs.facts.world import NAMESAKES, PEOPLE, SMALL_TALK
from drift_envs.tasks.invented_words import read_words

_END = re.compile(
    r"\b(?:no|not|none|nothing|null|nil|n/a|never|without|nobody|nowhere|unknown|unset|undefined|empty|vacant|vacated|"
    r"unassigned|missing|blank|remov\w+|delet\w+|with?dr[ae]w\w*|retract\w*|revok\w+|rescind\w*|cancel\w*|clear\w*|"
    r"drop\w*|lost|former\w*|previous\w*|earlier|past|once(?! more)|used to|ex|old|end(?:s|ed)?|over|ceas\w+|stop\w*|"
    r"expir\w+|obsolete|outdated|supersed\w+|invalid\w*|inactive|archiv\w+|clos\w+|gone|forg[eo]t\w*|until|till|was|"
    r"were|had|gave up|given up|discontinu\w+|terminat\w+|abandon\w*|histor\w+|deprecat\w+|false|stale|longer|"
    r"any ?more|resign\w*|relinquish\w*|cannot|void\w*)\b|n't\b|~~|[:=]\s*(?:[-\u2013\u2014]|\"\"|''|\[\]|\{\})?\s*$",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|[\n;]+|\s\|\s")
_CLAUSE = re.compile(r"[.,;|{}\n]+")
_WORD = re.compile(r"[^\W\d_]+(?:'\w+)?")
_NUMBER = re.compile(r"\d+")
_PERSON = re.compile(rf"\b({'|'.join((*PEOPLE, *NAMESAKES.values()))})\b", re.IGNORECASE)
_ATTRIBUTE = re.compile(rf"\b({'|'.join((*SYNONYMS.values(), *SYNONYMS))})\b", re.IGNORECASE)


class _Named(NamedTuple):
    """Whom and what a text names."""

    people: set[str]
    attributes: set[str]

    @classmethod
    def by(cls, text: str) -> _Named:
        found = (name.lower() for name in _ATTRIBUTE.findall(text))
        return cls({name.title() for name in _PERSON.findall(text)}, {SYNONYMS.get(name, name) for name in found})

    def is_about(self, who: str, what: str) -> bool:
        """Whether nothing else is named."""
        return self.people <= {who} and self.attributes <= {what}


def _template(text: str) -> str:
    """A text without what differs from fact to fact and from day to day."""
    for value in set(read_words(text)):
        text = re.sub(value, "#", text, flags=re.IGNORECASE)
    return " ".join(_NUMBER.sub("0", _ATTRIBUTE.sub("#", _PERSON.sub("#", text))).casefold().split())


def _words(text: str) -> set[str]:
    return set(_WORD.findall(_template(text)))


class Withdrawals:
    """Reads what a service says about values that were withdrawn.

    * A text whose like comes back for facts that hold says nothing about an end.
    * Else a sentence with a withdrawn value says so by a word for an end, or by a word that the service has for two
      withdrawn facts or more, and for none that holds. Any other sentence states the value as present.
    * Else a text about the fact, and about no other one, that names no value says so if it names both the person and
      the attribute, or has a word for an end.

    Args:
        held: questions about facts that were never withdrawn, each with the texts that came back.
        withdrawn: questions about facts whose value is withdrawn, likewise, each with the texts that came back.
        said: what was said to the service.
    """

    def __init__(
        self,
        held: Iterable[tuple[str, Iterable[str]]],
        withdrawn: Iterable[tuple[str, Iterable[str]]],
        said: Iterable[str],
    ) -> None:
        own = {text for question, texts in held for text in texts if _Named.by(text).is_about(*_about(question))}
        self._templates = {_template(text) for text in own}
        known = {word for text in {*own, *(one for one in said if not mentions_end(one))} for word in _words(text)}
        facts: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
        for question, texts in withdrawn:
            for text in texts:
                if read_words(text) and _Named.by(text).is_about(*_about(question)):
                    for word in _words(text) - known:
                        facts[word].add(_about(question))
        self._ends = {word for word, of in facts.items() if len(of) > 1}

    def classify(self, text: str, question: str, stale: Iterable[str]) -> str | None:
        """What a text says about a withdrawn value.

        Args:
            text: what came back.
            question: the question, which names the person and the attribute.
            stale: the values that the fact had.

        Returns:
            `present` if it says that there is no value, `stale` if it states one, `mixed` if it does both, else `None`.
        """
        who, what = _about(question)
        values, named = set(read_words(text)) & set(stale), _Named.by(text)
        if _template(text) in self._templates:
            return "stale" if values else None
        if values:
            ended = {self._ends_in(sentence) for sentence in _sentences(text) if values & set(read_words(sentence))}
            return "mixed" if len(ended) > 1 else "present" if ended == {True} else "stale"
        if not named.people <= {who} or "?" in text:
            return None
        if what in named.attributes:
            own = [one for one in _CLAUSE.split(text) if _Named.by(one).attributes == {what} and not read_words(one)]
            says = any(who in named.people or _END.search(one.strip(" \"'")) for one in own)
            return "present" if says else None
        is_bare = not named.attributes and not read_words(text) and text not in SMALL_TALK
        return "present" if is_bare and _END.search(text) else None

    def _ends_in(self, sentence: str) -> bool:
        return _END.search(sentence) is not None or bool(_words(sentence) & self._ends)


def _about(question: str) -> tuple[str, str]:
    return read_about(question) or ("", "")


def _sentences(text: str) -> list[str]:
    """The sentences of a text; one that names nothing goes on with the one before."""
    for talk in SMALL_TALK:
        text = text.replace(talk, "")
    sentences: list[str] = []
    for one in filter(None, map(str.strip, _SENTENCE.split(text))):
        if sentences and not read_words(one) and not _PERSON.search(one):
            sentences[-1] += f" {one}"
        else:
            sentences.append(one)
    return sentences
