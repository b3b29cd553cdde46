"""What AdaMEM, Synapse and ReasoningBank have in common: a ledger, and the episode under way.

* `Choice` - what was recalled: a trajectory, and a place in it
* `POOLS`, `is_success` - which episodes are learned from
* `EpisodicMemory` - writes every transition, learns from an episode when it is over
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from drift_agents.errors import ArgumentError, MemoryStateError
from drift_agents.matching.base import Matching
from drift_agents.memory.ledger import Ledger
from drift_agents.memory.ledgered import LedgerMemory
from drift_agents.memory.voyager.critic import attempt_steps, highest_score
from drift_agents.types import (
    AgentClock,
    Episode,
    Experience,
    Outcome,
    Plain,
    Record,
    RecordId,
    Removed,
    Retrieved,
)

MOST = 16
"""Items that are recalled at the most: the largest number in AdaMEM's figure 4."""


POOLS = ("success", "all")
"""`success`: episodes that reached the highest score that their task names (r_T = 1), as in AdaMEM and in
its comparison. `all`: failures too, as in the original ReasoningBank."""


class Choice(NamedTuple):
    """What was recalled.

    Args:
        item: the number of a trajectory.
        place: a place in it.
        similarity: of its key to what was asked, in [-1, 1].
    """

    item: RecordId
    place: int
    similarity: float


def is_success(result: Episode) -> bool:
    """Whether an episode reached the highest score that its task names, or 1 where it names none.

    Args:
        result: the episode.

    Example:
        >>> is_success(Episode("Reach a goal. The highest score is 0.5.", 0.5, 3, True))
        True
    """
    return result.score >= highest_score(result.task)


class EpisodicMemory(LedgerMemory):
    """Writes every transition, learns from an episode when it is over.

    The ledger holds every transition, since verifiers ask about transitions; of these a prompt shows
    the episode's own, what a verifier vouches for, and what the memory's own rule recalls. What is
    recalled is chosen by `_choose`, at most once a moment: the first question at a moment is about the
    present state. Those below say what is learned (`_learn`), what falls (`_fall`) and what a snapshot
    has beside (`_snapshot`, `_restored`).

    Args:
        k: items recalled, from 1 to `MOST`.
        pool: which episodes it learns from, one of `POOLS`.
        matching: when two states count as the same; texts must be equal if not given.

    Raises:
        ArgumentError: if an option is outside its range.
    """

    name = "episodic"
    needs: frozenset[str] = frozenset({"outcome"})
    supervision = "own reward"

    def __init__(self, k: int, pool: str, matching: Matching | None) -> None:
        if not isinstance(k, int) or isinstance(k, bool) or not 1 <= k <= MOST:
            raise ArgumentError(f"`k` should be a whole number from 1 to {MOST}. Received {k!r}")
        if pool not in POOLS:
            raise ArgumentError(f"`pool` should be one of {', '.join(POOLS)}. Received {pool!r}")
        self.k, self.pool = k, pool
        self._ledger = Ledger(matching)
        self._today: dict[RecordId, None] = {}
        # The episode that is followed, and its steps so far as pairs of state and action.
        self._episode = -1
        self._path: list[tuple[str, str]] = []
        # The moment at which `_choose` was asked, and what it answered.
        self._moment: AgentClock | None = None
        self._chosen: tuple[Choice, ...] = ()
        # The records that are shown, by state; made when it is asked for.
        self._shown: dict[Hashable, tuple[Record, ...]] | None = None

    # What a memory of this kind fills in.

    @abstractmethod
    def _choose(self, state: str, k: int, now: AgentClock) -> tuple[Choice, ...]:
        """What is recalled at this moment, the best first."""

    @abstractmethod
    def _recalled(self) -> Iterable[RecordId]:
        """The records of what was chosen."""

    @abstractmethod
    def _learn(self, result: Episode, steps: list[Record], now: AgentClock) -> None:
        """Learn from an episode; `steps` is not empty."""

    @abstractmethod
    def _fall(self, gone: Sequence[RecordId]) -> tuple[RecordId, ...]:
        """Take note that records went; the numbers of items that fell."""

    @abstractmethod
    def _snapshot(self) -> dict[str, Any]:
        """What a snapshot has beside."""

    @abstractmethod
    def _restored(self, data: Plain, ledger: Ledger) -> dict[str, Any]:
        """Attributes read from a snapshot; errors of Python's own say that it is none."""

    # What they have in common.

    def follow(self, experience: Experience) -> None:
        """Take note of a step: what has happened in an episode is part of the present state."""
        if experience.now.episode != self._episode:
            self._episode, self._path = experience.now.episode, []
        self._path.append((experience.state, experience.action))

    def history(self, now: AgentClock) -> list[tuple[str, str]]:
        """The steps of the present episode so far, as pairs of state and action."""
        return list(self._path) if now.episode == self._episode else []

    def _steps(self) -> list[Record]:
        """What was written of the episode that is over, in the order in which it was lived."""
        written = [record for number in self._today if (record := self._ledger.get(number)) is not None]
        return attempt_steps(written, self._ledger.matching.state_key)

    def retrieve(self, state: str, k: int | None, now: AgentClock) -> Retrieved:
        """What is shown of this state; the first question at a moment is about the present one, and chooses."""
        self._attend(state, k, now)
        records = self._by_state().get(self._ledger.matching.state_key(state), ())
        return Retrieved(records, (1.0,) * len(records))

    def in_mind(self) -> Iterator[str]:
        """One text for every state that is shown, in the order of their oldest records."""
        return (records[0].state for records in self._by_state().values())

    def _attend(self, state: str, k: int | None, now: AgentClock) -> None:
        """Choose what is recalled, if the moment is a new one."""
        if self._is_new(now):
            self._moment = now
            chosen = self._choose(state, self.k if k is None else min(k, MOST), now)
            if chosen != self._chosen:
                self._chosen, self._shown = chosen, None

    def _is_new(self, now: AgentClock) -> bool:
        """Whether it is time to choose."""
        return self._moment != now

    def _by_state(self) -> dict[Hashable, tuple[Record, ...]]:
        if self._shown is None:
            ids = {*self._today, *self._verified(), *self._recalled()}
            records = [record for number in sorted(ids) if (record := self._ledger.get(number)) is not None]
            groups: dict[Hashable, list[Record]] = {}
            for record in records:
                groups.setdefault(self._ledger.matching.state_key(record.state), []).append(record)
            self._shown = {key: tuple(group) for key, group in groups.items()}
        return self._shown

    def _verified(self) -> Iterator[RecordId]:
        return (record.id for record in self._ledger if record.verified)

    def observe(self, experience: Experience, now: AgentClock) -> RecordId:
        """Append it; what the episode is worth is known when it ends."""
        return self._written(self._ledger.append(experience, now))

    def insert_summary(
        self, state: str, action: str, distribution: Sequence[tuple[Outcome, float]], n: int, now: AgentClock
    ) -> RecordId:
        """Append a verified summary; it is always shown.

        Raises:
            ArgumentError: if the distribution is empty, a probability is not positive, or `n` is not.
        """
        return self._written(self._ledger.append_summary(state, action, distribution, n, now))

    def _written(self, number: RecordId) -> RecordId:
        self._today[number] = None
        self._shown = None
        return number

    def remove(self, ids: Iterable[RecordId]) -> Removed:
        """Remove these records; what rests on them falls, or is cut, and what is recalled is chosen anew."""
        gone = self._ledger.remove(ids)
        for number in gone:
            self._today.pop(number, None)
        fell = self._fall(gone)
        self._choose_again()
        self._shown = None
        return Removed(gone, fell)

    def _choose_again(self) -> None:
        """Something is gone: the next question chooses anew."""
        self._forget_choice()

    def _forget_choice(self) -> None:
        self._moment, self._chosen, self._shown = None, (), None

    def end_episode(self, result: Episode, now: AgentClock) -> None:
        """Learn from the episode, if it belongs to the pool."""
        steps = self._steps()
        if steps and (self.pool == "all" or is_success(result)):
            self._learn(result, steps, now)
        self._today = {}
        self._forget_choice()

    def snapshot(self) -> dict[str, Any]:
        """The whole content as plain data."""
        moment = self._moment
        return {
            "kind": self.name,
            "ledger": self._ledger.snapshot(),
            "today": list(self._today),
            "episode": self._episode,
            "path": [list(step) for step in self._path],
            "moment": None if moment is None else list(moment),
            "chosen": [list(choice) for choice in self._chosen],
            **self._snapshot(),
        }

    def restore(self, data: Plain) -> None:
        """Take back a snapshot; nothing changes when that fails.

        Raises:
            MemoryStateError: if the data is not a snapshot of this kind of memory.
        """
        self._refuse_other(data)
        ledger = Ledger(self._ledger.matching)
        ledger.restore(data.get("ledger", {}))
        try:
            today = {int(number): None for number in data["today"]}
            if any(number not in ledger for number in today):
                raise ValueError("records of the episode under way should be there")
            episode, path = int(data["episode"]), [(str(state), str(action)) for state, action in data["path"]]
            moment = None if data["moment"] is None else AgentClock(*map(int, data["moment"]))
            chosen = tuple(Choice(int(number), int(place), float(like)) for number, place, like in data["chosen"])
            own = self._restored(data, ledger)
        except (KeyError, TypeError, ValueError, ArgumentError) as error:
            raise MemoryStateError(
                f"not a snapshot of the memory {self.name!r}: {error!r} in {str(data)[:80]!r}"
            ) from error
        self._episode, self._path = episode, path
        self._ledger, self._today, self._moment, self._chosen, self._shown = ledger, today, moment, chosen, None
        for attribute, value in own.items():
            setattr(self, attribute, value)
