"""What a prober knows of the ways through a world: pure bookkeeping, no world.

* `TransitionGraph` - which action leads from where to where, as far as it was seen: a hint, never an answer
* `UnusedResponses` - what the world answered while a prober was on its way, each to be used once
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable

from drift_agents.types import Transition

FADING = 0.7
"""What a sighting still weighs after the next one of the same pair: two new ones outweigh many old ones."""

ROOM = 4096
"""How many states a chart holds; those that were seen first are dropped first."""


class TransitionGraph:
    """Which action leads from where to where, as far as it was seen.

    For every state and action it takes the next state that was seen most, the newest sightings counting
    most. It may be wrong: whoever goes by it looks where he got to, and notes that.

    Args:
        key: which states count as the same destination.

    Example:
        >>> chart = TransitionGraph(key=str.lower)
        >>> for state, action, after in [("a", "1", "b"), ("b", "0", "c"), ("a", "0", "a")]:
        ...     chart.note(state, action, after)
        >>> chart.path("a", "c"), chart.path("c", "a")
        ([('a', '1'), ('b', '0')], None)
        >>> chart.note("b", "0", None)
        >>> chart.note("b", "0", None)
        >>> chart.path("a", "c") is None
        True
    """

    def __init__(self, key: Callable[[str], Hashable]) -> None:
        self._key = key
        self._keys: dict[str, Hashable] = {}
        self._edges: dict[str, dict[str, dict[str | None, float]]] = {}

    def note(self, state: str, action: str, after: str | None) -> None:
        """Note a sighting.

        Args:
            state: where it was done.
            action: what was done.
            after: where it led; `None` if it ended the episode.
        """
        if state not in self._edges and len(self._edges) >= ROOM:
            oldest = next(iter(self._edges))
            del self._edges[oldest]
            self._keys.pop(oldest, None)
        seen = self._edges.setdefault(state, {}).setdefault(action, {})
        for other in seen:
            seen[other] *= FADING
        # The newest one stands last, and wins where weights are equal.
        seen[after] = seen.pop(after, 0.0) + 1.0

    def path(self, state: str, wanted: Hashable) -> list[tuple[str, str]] | None:
        """A shortest way that is known from a state to another one, by breadth-first search.

        Args:
            state: where it begins.
            wanted: the key of the state where it ends.

        Returns:
            The states on the way and what to do there; `None` if no way is known.
        """
        if self._key_of(state) == wanted:
            return []
        came: dict[str, tuple[str, str] | None] = {state: None}
        queue = deque([state])
        while queue:
            here = queue.popleft()
            for action, seen in self._edges.get(here, {}).items():
                after = max(reversed(seen), key=seen.__getitem__)
                if after is None or after in came:
                    continue
                came[after] = (here, action)
                if self._key_of(after) == wanted:
                    return _walk_back(came, after)
                queue.append(after)
        return None

    def _key_of(self, state: str) -> Hashable:
        if state not in self._edges:
            return self._key(state)
        if state not in self._keys:
            self._keys[state] = self._key(state)
        return self._keys[state]


def _walk_back(came: dict[str, tuple[str, str] | None], end: str) -> list[tuple[str, str]]:
    steps = []
    step = came[end]
    while step is not None:
        steps.append(step)
        step = came[step[0]]
    return steps[::-1]


class UnusedResponses:
    """What the world answered while a prober was on its way, each to be used once.

    They are used in the order in which they came. A prober that goes on until it gets through would
    else hand out its successes: the last answer before a state is left is no fair sample, the first is.

    Example:
        >>> from drift_agents.types import Outcome
        >>> answers = UnusedResponses()
        >>> for after in "xyz":
        ...     answers.note("s", Transition("s", "1", Outcome(after, 0.0, False)))
        >>> [transition.outcome.state for transition in answers.take("s", "1", 2)]
        ['x', 'y']
        >>> len(answers.take("s", "1", 2))
        1
    """

    def __init__(self) -> None:
        self._unused: dict[tuple[Hashable, str], deque[Transition]] = {}

    def clear(self) -> None:
        """Forget all."""
        self._unused.clear()

    def note(self, key: Hashable, transition: Transition) -> None:
        """Keep an answer.

        Args:
            key: the state by the matching rule.
            transition: what was done there, and what came of it.
        """
        self._unused.setdefault((key, transition.action), deque()).append(transition)

    def take(self, key: Hashable, action: str, times: int) -> list[Transition]:
        """The oldest unused answers, at most so many; they are gone afterwards."""
        unused = self._unused.get((key, action))
        return [unused.popleft() for _ in range(min(times, len(unused)))] if unused else []
