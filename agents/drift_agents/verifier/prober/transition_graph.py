"""Transitions that a prober has observed.

* `TransitionGraph` - the observed next state of each state and action; used for finding paths only
* `UnusedResponses` - responses observed on the way to a target, each used once
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable

from drift_agents.types import Transition

FADING = 0.7
"""The decay of older sightings at each new one of the same pair: two new ones outweigh many old ones."""

ROOM = 4096
"""The maximum number of states; the oldest are dropped first."""


class TransitionGraph:
    """The observed next state of each state and action.

    For each pair it holds the most frequent next state, recent sightings weighing more. It may be wrong:
    the caller compares each reached state and records it.

    Args:
        key: states with equal keys are the same destination.

    Example:
        >>> graph = TransitionGraph(key=str.lower)
        >>> for state, action, after in [("a", "1", "b"), ("b", "0", "c"), ("a", "0", "a")]:
        ...     graph.note(state, action, after)
        >>> graph.path("a", "c"), graph.path("c", "a")
        ([('a', '1'), ('b', '0')], None)
        >>> graph.note("b", "0", None)
        >>> graph.note("b", "0", None)
        >>> graph.path("a", "c") is None
        True
    """

    def __init__(self, key: Callable[[str], Hashable]) -> None:
        self._key = key
        self._keys: dict[str, Hashable] = {}
        self._edges: dict[str, dict[str, dict[str | None, float]]] = {}

    def note(self, state: str, action: str, after: str | None) -> None:
        """Record a transition.

        Args:
            state: the state before.
            action: the action.
            after: the next state; `None` if the episode ended.
        """
        if state not in self._edges and len(self._edges) >= ROOM:
            oldest = next(iter(self._edges))
            del self._edges[oldest]
            self._keys.pop(oldest, None)
        seen = self._edges.setdefault(state, {}).setdefault(action, {})
        for other in seen:
            seen[other] *= FADING
        # The newest one is last, and is chosen where weights are equal.
        seen[after] = seen.pop(after, 0.0) + 1.0

    def path(self, state: str, wanted: Hashable) -> list[tuple[str, str]] | None:
        """A shortest known path from a state to another one, by breadth-first search.

        Args:
            state: the first state.
            wanted: the key of the last state.

        Returns:
            Pairs of state and action along the path; `None` if no path is known.
        """
        if self._key_of(state) == wanted:
            return []
        previous: dict[str, tuple[str, str] | None] = {state: None}
        queue = deque([state])
        while queue:
            here = queue.popleft()
            for action, seen in self._edges.get(here, {}).items():
                after = max(reversed(seen), key=seen.__getitem__)
                if after is None or after in previous:
                    continue
                previous[after] = (here, action)
                if self._key_of(after) == wanted:
                    return _walk_back(previous, after)
                queue.append(after)
        return None

    def _key_of(self, state: str) -> Hashable:
        if state not in self._edges:
            return self._key(state)
        if state not in self._keys:
            self._keys[state] = self._key(state)
        return self._keys[state]


def _walk_back(previous: dict[str, tuple[str, str] | None], end: str) -> list[tuple[str, str]]:
    steps = []
    step = previous[end]
    while step is not None:
        steps.append(step)
        step = previous[step[0]]
    return steps[::-1]


class UnusedResponses:
    """Responses observed on the way to a target, each used once.

    They are used in order of time, which keeps them an unbiased sample: the last response before a state is
    left is selected for success, the first one is not.

    Example:
        >>> from drift_agents.types import Outcome
        >>> responses = UnusedResponses()
        >>> for after in "xyz":
        ...     responses.note("s", Transition("s", "1", Outcome(after, 0.0, False)))
        >>> [transition.outcome.state for transition in responses.take("s", "1", 2)]
        ['x', 'y']
        >>> len(responses.take("s", "1", 2))
        1
    """

    def __init__(self) -> None:
        self._unused: dict[tuple[Hashable, str], deque[Transition]] = {}

    def clear(self) -> None:
        """Remove all."""
        self._unused.clear()

    def note(self, key: Hashable, transition: Transition) -> None:
        """Keep a response.

        Args:
            key: the state by the matching rule.
            transition: the observed transition.
        """
        self._unused.setdefault((key, transition.action), deque()).append(transition)

    def take(self, key: Hashable, action: str, times: int) -> list[Transition]:
        """Remove and return the oldest unused responses, at most `times`."""
        unused = self._unused.get((key, action))
        return [unused.popleft() for _ in range(min(times, len(unused)))] if unused else []
