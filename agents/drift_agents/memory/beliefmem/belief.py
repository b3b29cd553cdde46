"""The beliefs of an agent about one attribute: several conclusions, each with a probability.

* `BeliefAttribute` - a state and an action with its conclusions, its evidence and its archive
* `HeldConclusion` - a present conclusion
* `Belief` - a conclusion with its probability at some time
* `Version` - a former probability of a conclusion, in the archive
* `Event` - one piece of evidence
* `BeliefRule` - the constants of the update
* `noisy_or` - the update by one piece of evidence
* `supports`, `says_the_same` - whether a record is evidence for a conclusion

Source: "BeliefMem" (the paper's section 3.3, equations 8 and 9; appendices A.1 to A.3 and B.3). An
attribute is a state and an action here, a conclusion is its outcome.
`drift_agents.memory.beliefmem.beliefmem` stores attributes; `docs/memories/beliefmem.md` says what is faithful.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from drift_agents.errors import ArgumentError
from drift_agents.types import AgentClock, Record, RecordId, Transition
from drift_envs.checks import check_interval

Same = Callable[[Transition, Transition], bool]
"""Whether two outcomes count as the same: `Matching.same_outcome`."""


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
        collapse: whether only the most probable conclusion is kept ("without belief-based memory").

    Raises:
        ArgumentError: if a probability is not in (0, 1], or the bounds are not in order.

    Example:
        >>> rule = BeliefRule()
        >>> rule.add(0.2), rule.add(0.8), rule.add(1.0)
        (0.7, 0.8, 0.9)
    """

    initial: tuple[float, float] = (0.7, 0.9)
    cap: float = 0.99
    contradicted: float = 0.25
    collapse: bool = False

    def __post_init__(self) -> None:
        """Check the probabilities."""
        if not isinstance(self.initial, (tuple, list)) or len(self.initial) != 2:
            raise ArgumentError(f"`initial` should be two probabilities. Received {self.initial!r}")
        low, high = (check_probability("initial", p) for p in self.initial)
        check_probability("contradicted", self.contradicted)
        check_probability("cap", self.cap)
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


def check_probability(name: str, value: float) -> float:
    """A probability above zero.

    Args:
        name: the argument's name.
        value: the number.

    Raises:
        ArgumentError: if it is not in (0, 1].
    """
    return check_interval(name, value, "(0, 1]")


@dataclass
class HeldConclusion:
    """A present conclusion.

    Args:
        record: the newest record that states exactly this conclusion.
        evidence: the ids of all records that support it, oldest first.
        p: its probability.
        since: when that probability was last changed, or confirmed.
    """

    record: Record
    evidence: list[RecordId]
    p: float
    since: AgentClock


class Belief(NamedTuple):
    """A conclusion with its probability at some time.

    Args:
        record: the record that states it.
        p: its probability.
        since: when that probability began.
    """

    record: Record
    p: float
    since: AgentClock


class Version(NamedTuple):
    """A former probability of a conclusion.

    Args:
        record: the record that states it.
        p: its probability.
        since: when that probability began.
        until: when it changed.
    """

    record: Record
    p: float
    since: AgentClock
    until: AgentClock


class Event(NamedTuple):
    """One piece of evidence.

    Args:
        record: the evidence.
        strength: of the evidence, in [0, 1].
        adds: whether it may add a new conclusion.
    """

    record: Record
    strength: float
    adds: bool = True


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
        >>> [(candidate.record.outcome.state, round(candidate.p, 3)) for candidate in attribute.candidates]
        [('ice', 0.25), ('hole', 0.8)]
        >>> [(version.record.outcome.state, round(version.p, 3)) for version in attribute.archive]
        [('ice', 0.8), ('ice', 0.96)]
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
        """Update by one piece of evidence: Merge what it supports, contradict what it does not, Add what is new.

        Args:
            event: the evidence.
            rule: the constants.
            same: whether two outcomes count as the same.
        """
        record, now = event.record, event.record.now
        self.events.append(event)
        is_new = is_unstated = True
        for held in self.candidates:
            if supports(record, held.record, same):
                is_new = False
                self._archive(held, now)
                held.p, held.since = rule.merge(held.p, event.strength), now
                held.evidence.append(record.id)
                # Equality with a tolerance is not transitive: a record may equal two conclusions, and states one.
                if is_unstated and says_the_same(record, held.record, same):
                    held.record, is_unstated = record, False
            elif rule.contradict(held.p) < held.p:
                self._archive(held, now)
                held.p, held.since = rule.contradict(held.p), now
        if is_new and event.adds:
            self.candidates.append(HeldConclusion(record, [record.id], rule.add(event.strength), now))
        if rule.collapse and len(self.candidates) > 1:
            self.candidates = [self.best]

    def _archive(self, held: HeldConclusion, now: AgentClock) -> None:
        self.archive.append(Version(held.record, held.p, held.since, now))

    def relearn(self, events: Iterable[Event], rule: BeliefRule, same: Same) -> None:
        """Recompute all conclusions and the archive from this evidence alone.

        Args:
            events: the evidence, in the order in which it was written.
            rule: the constants.
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
        held = [Belief(c.record, c.p, c.since) for c in self.candidates if at is None or c.since <= at]
        if at is not None:
            held += [Belief(v.record, v.p, v.since) for v in self.archive if v.since <= at < v.until]
        return held


def supports(record: Record, conclusion: Record, same: Same) -> bool:
    """Whether a record is evidence for a conclusion.

    An experienced outcome supports every conclusion that contains it: that outcome alone, or a verified
    distribution in which it occurs. A verified summary supports the conclusions with the same outcomes.

    Args:
        record: the evidence.
        conclusion: a record that states the conclusion.
        same: whether two outcomes count as the same.
    """
    if record.verified:
        return says_the_same(record, conclusion, same)
    return _is_among(record, 0, conclusion, same)


def says_the_same(one: Record, other: Record, same: Same) -> bool:
    """Whether two records have the same outcomes.

    Args:
        one: a record.
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
