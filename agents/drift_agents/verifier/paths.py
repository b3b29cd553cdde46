"""How a prober that replays reaches a state again: paths, positions, and the responses that it observes on the way.

`EpisodePath` is the agent's own path; a twin follows it (`TwinPosition`, `advance`), or a path through observed
transitions (`TransitionGraph`). `drift_agents.verifier.prober` decides between them and charges the steps.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

from drift_agents.types import Experience, Transition


class EpisodePath:
    """The states and actions of the agent's present episode.

    Example:
        >>> from drift_agents.types import AgentClock, Outcome
        >>> path = EpisodePath()
        >>> path.follow(Experience("a", "1", Outcome("b", 0.0, False), 0.0, AgentClock()))
        >>> path.states_along(["1"]), path.states_along([]), path.states_along(["0"])
        (['a', 'b'], ['a'], [])
    """

    def __init__(self) -> None:
        self._states: list[str] = []
        self._actions: list[str] = []

    def clear(self) -> None:
        """Begin a new episode."""
        self._states, self._actions = [], []

    def follow(self, experience: Experience) -> None:
        """Record a step of the agent."""
        if not self._states:
            self._states.append(experience.state)
        self._actions.append(experience.action)
        self._states.append(experience.outcome.state)

    def states_along(self, prefix: Sequence[str]) -> list[str]:
        """The states before these actions, and the one after the last.

        Args:
            prefix: actions since the episode began.

        Returns:
            One state more than actions; none if the episode does not begin with these actions.
        """
        if self._actions[: len(prefix)] != list(prefix):
            return []
        return self._states[: len(prefix) + 1]


class TwinPosition(NamedTuple):
    """The position of a twin in an episode that is not over.

    Args:
        state: its present state.
        walked: the actions of the agent's path that led there; `None` if it has left that path.
        start: its state after the reset.
        late: how often it has repeated the last action of the path, being behind the agent.
    """

    state: str
    walked: tuple[str, ...] | None
    start: str
    late: int = 0


class ProbeTarget(NamedTuple):
    """The state, action and number of responses that a probe needs.

    Args:
        key: the target state by the matching rule.
        action: the probed action.
        prefix: the actions that led there since the agent's episode began.
        states: the states of that path, if known: one more than actions, or none.
        times: the maximum number of responses.
    """

    key: Hashable
    action: str
    prefix: tuple[str, ...]
    states: list[str]
    times: int


def is_on_path(position: TwinPosition, target: ProbeTarget) -> bool:
    """Whether the rest of the agent's path continues from this position.

    States are compared only if the twin's episode began in the same state as the agent's.

    Example:
        >>> target = ProbeTarget("c", "1", ("0", "0"), ["a", "b", "c"], 1)
        >>> is_on_path(TwinPosition("b", ("0",), "a"), target), is_on_path(TwinPosition("x", ("0",), "a"), target)
        (True, False)
    """
    if position.walked is None or target.prefix[: len(position.walked)] != position.walked:
        return False
    if target.states and target.states[0] == position.start:
        return target.states[len(position.walked)] == position.state
    return True


def is_blind(position: TwinPosition, target: ProbeTarget) -> bool:
    """Whether the twin's episode began in another state than the agent's, so that states cannot be compared."""
    return bool(target.states) and target.states[0] != position.start


def advance(position: TwinPosition, action: str, state: str, target: ProbeTarget, at_target: bool) -> TwinPosition:
    """The position after a step.

    A probe takes the place of the agent's own action. Whether the path continues from there is visible in the
    states, or the difference is small, as for a car; the path is left if the agent's states are unknown.

    Args:
        at_target: whether the twin was in the target state, so that the action was a probe.
    """
    if not is_on_path(position, target):
        return TwinPosition(state, None, position.start)
    done = position.walked or ()
    usual = target.prefix[len(done) :][:1]
    if not usual and not at_target:
        return TwinPosition(state, done, position.start, position.late + 1)
    walked = (*done, *(usual or (action,))) if target.states or usual in ((), (action,)) else None
    return TwinPosition(state, walked, position.start)


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
        """
        self._unused.setdefault((key, transition.action), deque()).append(transition)

    def take(self, key: Hashable, action: str, times: int) -> list[Transition]:
        """Remove and return the oldest unused responses, at most `times`."""
        unused = self._unused.get((key, action))
        return [unused.popleft() for _ in range(min(times, len(unused)))] if unused else []
