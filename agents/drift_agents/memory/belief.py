"""The beliefs of an agent about one attribute: several conclusions, each with a probability.

Source: "BeliefMem" (the paper's section 3.3, equations 8 and 9; appendices A.1 to A.3 and B.3). An attribute is a state
and an action here, a conclusion is its outcome, or a text of a language model. `drift_agents.memory.relevance` ranks
attributes for a state, `drift_agents.memory.beliefmem` stores them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from drift_agents.errors import ArgumentError
from drift_agents.memory.transcript import render_statement
from drift_agents.types import AgentClock, Record, RecordId, Transition
from drift_envs.checks import check_interval

Same = Callable[[Transition, Transition], bool]
"""Whether two outcomes count as the same: `Matching.same_outcome`."""

Extracted = tuple[tuple[str, float], ...]
"""Conclusions that one observation supports, as texts, each with its strength in [0, 1]."""


_WORD = re.compile(r"\w+")


def noisy_or(p: float, strength: float) -> float:
    """The probability after one more piece of evidence (equation 9, without its bound).

    Args:
        p: the probability before, in [0, 1].
        strength: of the new evidence, in [0, 1].

    Example:
        >>> round(noisy_or(0.8, 0.5), 6)
        0.9
    """
    return 1.0 - (1.0 - p) * (1.0 - strength)


@dataclass(frozen=True)
class BeliefRule:
    """The constants of the update.

    Args:
        initial: the least and the greatest probability of a new conclusion (equation 8).
        cap: the greatest probability of a conclusion (equation 9).
        contradicted: the greatest probability of a contradicted conclusion (appendix A.2).
        one_off: the strength of a contradicting response as evidence that it was false itself; in [0, 1].
        collapse: whether only the most probable conclusion is kept ("without belief-based memory").

    Raises:
        ArgumentError: if a value is outside its range, or the bounds are not in order.

    Example:
        >>> rule = BeliefRule()
        >>> rule.add(0.2), rule.add(0.8), rule.add(1.0)
        (0.7, 0.8, 0.9)
    """

    initial: tuple[float, float] = (0.7, 0.9)
    cap: float = 0.99
    contradicted: float = 0.25
    one_off: float = 0.2
    collapse: bool = False

    def __post_init__(self) -> None:
        """Check the probabilities."""
        if not isinstance(self.initial, (tuple, list)) or len(self.initial) != 2:
            raise ArgumentError(f"`initial` should be two probabilities. Received {self.initial!r}")
        low, high = (check_interval("initial", p, "(0, 1]") for p in self.initial)
        check_interval("contradicted", self.contradicted, "(0, 1]")
        check_interval("one_off", self.one_off, "[0, 1]")
        check_interval("cap", self.cap, "(0, 1]")
        if not low <= high <= self.cap:
            raise ArgumentError(
                f"`initial` should be in order and not above `cap` ({self.cap:g}). Received {self.initial!r}"
            )
        object.__setattr__(self, "initial", (low, high))

    def add(self, strength: float) -> float:
        """The probability of a new conclusion (equation 8)."""
        return min(max(strength, self.initial[0]), self.initial[1])

    def merge(self, p: float, strength: float) -> float:
        """The probability of a conclusion after evidence for it (equation 9)."""
        return min(noisy_or(p, strength), self.cap)

    def contradict(self, p: float) -> float:
        """The probability of a conclusion after evidence for another one; never raised (appendix A.2)."""
        return min(p, self.contradicted)


@dataclass
class HeldConclusion:
    """A present conclusion.

    Args:
        record: the newest record that states exactly this conclusion; of one in words, the newest that supports it.
        evidence: the ids of all records that support it, oldest first.
        p: its probability.
        since: when that probability was last changed, or confirmed.
        words: the text of a conclusion that is no outcome.
    """

    record: Record
    evidence: list[RecordId]
    p: float
    since: AgentClock
    words: str = ""

    @property
    def text(self) -> str:
        """The conclusion in one line."""
        return _stated(self.record, self.words)


def _stated(record: Record, words: str) -> str:
    return words or render_statement(record.state, record.action, record.outcomes)


class Belief(NamedTuple):
    """A conclusion with its probability at some time.

    Args:
        record: the record that states it.
        p: its probability.
        since: when that probability began.
        words: the text of a conclusion that is no outcome.
    """

    record: Record
    p: float
    since: AgentClock
    words: str = ""


class Version(NamedTuple):
    """A former probability of a conclusion.

    Args:
        record: the record that states it.
        p: its probability.
        since: when that probability began.
        until: when it changed.
        words: the text of a conclusion that is no outcome.
    """

    record: Record
    p: float
    since: AgentClock
    until: AgentClock
    words: str = ""

    @property
    def text(self) -> str:
        """The conclusion in one line."""
        return _stated(self.record, self.words)


class Event(NamedTuple):
    """One piece of evidence.

    Args:
        record: the evidence.
        strength: of the evidence for its own outcome, in [0, 1].
        adds: whether it may add a new conclusion.
        extracted: the conclusions that a language model found supported; by rule if empty.
    """

    record: Record
    strength: float
    adds: bool = True
    extracted: Extracted = ()


class _Supported(NamedTuple):
    """The hypotheses that one observation supports.

    Args:
        held: place of a known conclusion -> strength.
        new: text (empty for the record's own outcome) and strength of new conclusions.
        doubted: those of `held` that the record supports only if its own response was false: it is not their evidence.
    """

    held: dict[int, float]
    new: list[tuple[str, float]]
    doubted: set[int]


@dataclass
class BeliefAttribute:
    """A state and an action with its conclusions, its evidence and its archive.

    Args:
        id: its number.
        events: the evidence, in the order in which it was written.
        candidates: the conclusions, in the order in which they were added.
        archive: former versions, in the order in which they were archived.

    Example:
        >>> from drift_agents.types import Outcome
        >>> same = lambda one, other: one.outcome == other.outcome
        >>> ice, hole = Outcome("ice", 0.0, False), Outcome("hole", 0.0, True)
        >>> attribute = BeliefAttribute(0)
        >>> for time, outcome in enumerate([ice, ice, hole]):
        ...     record = Record(time, "s", "1", ((outcome, 1.0),), 1, AgentClock(0, time))
        ...     attribute.learn(Event(record, 0.8), BeliefRule(), same)
        ...     print([(held.record.outcome.state, round(held.p, 3)) for held in attribute.candidates])
        [('ice', 0.8)]
        [('ice', 0.96)]
        [('ice', 0.968), ('hole', 0.8)]
        >>> attribute.learn(Event(record._replace(id=3), 0.8), BeliefRule(), same)  # a second hole
        >>> [(held.record.outcome.state, round(held.p, 3)) for held in attribute.candidates]
        [('ice', 0.25), ('hole', 0.96)]
        >>> [(version.record.outcome.state, round(version.p, 3)) for version in attribute.archive]
        [('ice', 0.8), ('ice', 0.96), ('ice', 0.968), ('hole', 0.8)]
    """

    id: RecordId
    events: list[Event] = field(default_factory=list)
    candidates: list[HeldConclusion] = field(default_factory=list)
    archive: list[Version] = field(default_factory=list)

    @property
    def state(self) -> str:
        """The state of its oldest record."""
        return self.events[0].record.state

    @property
    def action(self) -> str:
        """The action."""
        return self.events[0].record.action

    @property
    def updated(self) -> AgentClock:
        """When it was last updated by Add or Merge: there its staleness is zero."""
        return self.events[-1].record.now

    @property
    def best(self) -> HeldConclusion:
        """The most probable conclusion; of equally probable ones the one confirmed last."""
        return self.ranked()[0]

    def ranked(self) -> list[HeldConclusion]:
        """The conclusions, the most probable first; of equals the one with the newest evidence."""
        return sorted(self.candidates, key=lambda held: (-held.p, -held.evidence[-1]))

    def learn(self, event: Event, rule: BeliefRule, same: Same) -> None:
        """Update by one observation, with every conclusion that it supports.

        Merge what is known and supported (equation 9), lower what is not supported (appendix A.2), Add what is
        supported and new (equation 8).

        Args:
            same: whether two outcomes count as the same.
        """
        record, now = event.record, event.record.now
        supported = self._extracted(event, same) if event.extracted else self._by_rule(event, rule, same)
        self.events.append(event)
        is_unstated = True
        for place, held in enumerate(self.candidates):
            if place in supported.held:
                self._archive(held, now)
                held.p, held.since = rule.merge(held.p, supported.held[place]), now
                if place in supported.doubted:
                    continue
                held.evidence.append(record.id)
                if held.words:
                    held.record = record
                # Equality with a tolerance is not transitive: a record may equal two conclusions, and states one.
                elif is_unstated and says_the_same(record, held.record, same):
                    held.record, is_unstated = record, False
            elif rule.contradict(held.p) < held.p:
                self._archive(held, now)
                held.p, held.since = rule.contradict(held.p), now
        if event.adds:
            for words, strength in supported.new:
                self.candidates.append(HeldConclusion(record, [record.id], rule.add(strength), now, words))
        if rule.collapse and len(self.candidates) > 1:
            self.candidates = [self.best]

    def _by_rule(self, event: Event, rule: BeliefRule, same: Same) -> _Supported:
        """The hypotheses that rules find supported: the outcome, and for a first contradiction that it was false.

        Two false responses in a row are not considered, and a verified summary is not doubted.
        """
        record = event.record
        held = {
            place: event.strength
            for place, one in enumerate(self.candidates)
            if not one.words and supports(record, one.record, same)
        }
        new, doubted = [] if held else [("", event.strength)], set()
        if rule.one_off and self.candidates and not record.verified:
            leader = self.candidates.index(self.best)
            if leader not in held and self.best.evidence[-1] == self.events[-1].record.id:
                held[leader] = rule.one_off
                doubted.add(leader)
        return _Supported(held, new, doubted)

    def _extracted(self, event: Event, same: Same) -> _Supported:
        """The hypotheses that a language model found supported, each under the known conclusion that it names."""
        record = event.record
        own = render_statement(record.state, record.action, record.outcomes)
        direct = [not one.words and supports(record, one.record, same) for one in self.candidates]
        texts = [one.text for one in self.candidates]
        held: dict[int, float] = {}
        new: dict[str, float] = {}
        for text, strength in event.extracted:
            is_own = same_words(text, own)
            named = [
                place for place, known in enumerate(texts) if same_words(text, known) or (is_own and direct[place])
            ]
            for place in named:
                held[place] = max(held.get(place, 0.0), strength)
            if not named:
                words = "" if is_own else " ".join(text.split())
                new[words] = max(new.get(words, 0.0), strength)
        doubted = {place for place in held if not (direct[place] or self.candidates[place].words)}
        return _Supported(held, list(new.items()), doubted)

    def _archive(self, held: HeldConclusion, now: AgentClock) -> None:
        self.archive.append(Version(held.record, held.p, held.since, now, held.words))

    def relearn(self, events: Iterable[Event], rule: BeliefRule, same: Same) -> None:
        """Recompute all conclusions and the archive from this evidence alone.

        Args:
            events: the evidence, in the order in which it was written.
            same: whether two outcomes count as the same.
        """
        self.events, self.candidates, self.archive = [], [], []
        for event in events:
            self.learn(event, rule, same)

    def beliefs(self, at: AgentClock | None = None) -> list[Belief]:
        """The beliefs now, or at an earlier time.

        Args:
            at: the time, the evidence of its own step included; now if not given.
        """
        held = [Belief(c.record, c.p, c.since, c.words) for c in self.candidates if at is None or c.since <= at]
        if at is not None:
            held += [Belief(v.record, v.p, v.since, v.words) for v in self.archive if v.since <= at < v.until]
        return held


def supports(record: Record, conclusion: Record, same: Same) -> bool:
    """Whether a record is evidence for a conclusion.

    An experienced outcome supports every conclusion that contains it: that outcome alone, or a verified
    distribution in which it occurs. A verified summary supports the conclusions with the same outcomes.

    Args:
        conclusion: a record that states the conclusion.
        same: whether two outcomes count as the same.
    """
    if record.verified:
        return says_the_same(record, conclusion, same)
    return _is_among(record, 0, conclusion, same)


def says_the_same(one: Record, other: Record, same: Same) -> bool:
    """Whether two records have the same outcomes.

    Args:
        other: another one of the same state and action.
        same: whether two outcomes count as the same.
    """
    return all(_is_among(one, place, other, same) for place in range(len(one.outcomes))) and all(
        _is_among(other, place, one, same) for place in range(len(other.outcomes))
    )


def _is_among(one: Record, place: int, other: Record, same: Same) -> bool:
    """Whether an outcome of one record is among those of the other."""
    transition = Transition(one.state, one.action, one.outcomes[place][0])
    return any(same(transition, Transition(other.state, other.action, outcome)) for outcome, _ in other.outcomes)


def same_words(one: str, other: str) -> bool:
    """Whether two texts have the same words in the same order; case, spaces and punctuation are ignored.

    Example:
        >>> same_words("The door is locked.", "the door  is locked")
        True
    """
    return _WORD.findall(one.casefold()) == _WORD.findall(other.casefold())
