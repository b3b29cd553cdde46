"""Memories that show records as they are: those of the same state, or the newest steps of all episodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from drift_agents.envs.matching import Matching
from drift_agents.memory.transitions import AnswerCache, TransitionStoreMemory
from drift_agents.prompt.lessons import build_trajectories, render_trajectory
from drift_agents.prompt.view import Recollection
from drift_agents.types import AgentClock, Note, Record, RecordId, Removed, Retrieved
from drift_envs.checks import check_choice, check_count

ORDERS = ("oldest", "newest")
MOST_CACHED = 10_000
"""Results of so many states are kept, so that the cache does not grow with the memory."""


class VanillaMemory(TransitionStoreMemory):
    """Append every transition, retrieve the top-k of the same state (GLOVE, appendix B.1).

    The paper does not say how the records of one state, which are equally similar, are ranked. A
    similarity index that breaks ties by insertion gives the oldest first: that is the default
    here, and `order="newest"` is the alternative. `k` counts the records of one action, so that an
    action tried often does not displace the others.

    Args:
        k: records retrieved for each action of the state; positive.
        order: `oldest` or `newest`: which records come first when there are more than `k`.
        matching: when two states count as the same; texts must be equal if not given.

    Raises:
        ArgumentError: if `k` is not positive or `order` is unknown.

    Example:
        >>> from drift_agents.types import Experience, Outcome
        >>> memory = VanillaMemory(k=1)
        >>> fell = Experience("a", "1", Outcome("hole", 0.0, True), 0.0, AgentClock())
        >>> memory.observe(fell, AgentClock())
        0
        >>> [record.outcome.state for record in memory.retrieve("a", None, AgentClock()).records]
        ['hole']
    """

    name = "vanilla"

    def __init__(self, *, k: int = 5, order: str = "oldest", matching: Matching | None = None) -> None:
        self.k = check_count("k", k)
        self.order = check_choice("order", order, ORDERS)
        super().__init__(matching=matching)
        self._cache = AnswerCache()

    def retrieve(self, state: str, k: int | None, now: AgentClock) -> Retrieved:
        """The `k` oldest or newest records of every action of this state; no side effect."""
        k = self.k if k is None else k
        return self._cache[k].get(self.transitions.keys[state]) or self._choose(state, k)

    def retrieve_many(self, states: Sequence[str], k: int | None, now: AgentClock) -> list[Retrieved]:
        """What `retrieve` returns for each of these states."""
        k = self.k if k is None else k
        keys, cache = self.transitions.keys, self._cache[k]
        return [cache.get(keys[state]) or self._choose(state, k) for state in states]

    def _choose(self, state: str, k: int) -> Retrieved:
        chosen: list[Record] = []
        cache = self._cache[k]
        for records in self.transitions.by_action(state).values():
            chosen += records[:k] if self.order == "oldest" else records[: -k - 1 : -1]
        if len(cache) >= MOST_CACHED:
            del cache[next(iter(cache))]
        answer = cache[self.transitions.keys[state]] = Retrieved(tuple(chosen), (1.0,) * len(chosen))
        return answer

    def peek(self, state: str, now: AgentClock) -> Retrieved:
        """What `retrieve` returns."""
        return self.retrieve(state, None, now)

    def _note_written(self, record: Record) -> None:
        self._cache.forget(self.transitions.keys[record.state])

    def remove(self, ids: Iterable[RecordId]) -> Removed:
        """Remove these records; no item depends on them."""
        self._cache.clear()
        return super().remove(ids)


class FullTranscript(TransitionStoreMemory):
    """The newest steps of all episodes as they were, an episode a text, in every prompt.

    No step is selected, ranked or summarized: the language model gets what happened within the window, as in
    in-context learning from whole episodes. Prompts are long, and what they cost is best counted apart.

    Args:
        window: how many steps are shown, the newest ones.
        matching: when two states count as the same, for verifiers; texts must be equal if not given.

    Raises:
        ArgumentError: if `window` is not positive.

    Example:
        >>> from drift_agents.types import Experience, Outcome
        >>> memory = FullTranscript(window=2)
        >>> for step in range(3):
        ...     now, after = AgentClock(0, step), Outcome(f"[{step + 1}]", 0.0, False)
        ...     _ = memory.observe(Experience(f"[{step}]", "1", after, 0.0, now), now)
        >>> memory.retrieve("[9]", None, AgentClock(0, 3)).notes[0].text
        'Episode 0. From [1] do "1" to get to [2], then do "1" to get to [3]: score 0, last seen at step 2.'
    """

    name = "full_transcript"

    def __init__(self, *, window: int = 200, matching: Matching | None = None) -> None:
        self.window = check_count("window", window)
        super().__init__(matching=matching)
        self._shown: Retrieved | None = None

    def retrieve(self, state: str, k: int | None, now: AgentClock) -> Retrieved:
        """The steps of the window, whatever the state; no side effect."""
        if self._shown is None:
            episodes = groupby(list(self.transitions)[-self.window :], lambda record: record.now.episode)
            self._shown = Retrieved(notes=tuple(_write(number, list(records)) for number, records in episodes))
        return self._shown

    def in_mind(self) -> Iterator[str]:
        """No further state: one query shows the whole window."""
        return iter(())

    def _note_written(self, record: Record) -> None:
        self._shown = None

    def remove(self, ids: Iterable[RecordId]) -> Removed:
        """Remove these records, and so these steps from the transcript."""
        self._shown = None
        return super().remove(ids)


def _write(episode: int, records: list[Record]) -> Note:
    """The steps of an episode as one text; of several outcomes in a verified summary the likeliest is shown."""
    steps = [
        Recollection(one.state, one.action, max(one.outcomes, key=lambda pair: pair[1])[0], 1.0, one.now.step)
        for one in records
    ]
    ways = " ".join(map(render_trajectory, build_trajectories(steps)))
    return Note(records[0].id, f"Episode {episode}. {ways}", tuple(record.id for record in records))
