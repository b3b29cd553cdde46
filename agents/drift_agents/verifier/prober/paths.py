"""The path of the agent's episode, and the position of a prober's twin relative to it; pure bookkeeping.

* `EpisodePath` - the states and actions of the agent's present episode
* `ProbeTarget` - the state, action and number of responses that a probe needs
* `TwinPosition` - the position of the twin in its episode
* `is_on_path`, `is_blind` - whether the agent's path continues from there, and whether states can be compared
* `advance` - the position after a step
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from drift_agents.types import Experience


class EpisodePath:
    """The agent's way through its present episode: its states as the world showed them, and its actions.

    Example:
        >>> from drift_agents.types import AgentClock, Outcome
        >>> way = EpisodePath()
        >>> way.follow(Experience("a", "1", Outcome("b", 0.0, False), 0.0, AgentClock()))
        >>> way.states_along(["1"]), way.states_along([]), way.states_along(["0"])
        (['a', 'b'], ['a'], [])
    """

    def __init__(self) -> None:
        self._states: list[str] = []
        self._actions: list[str] = []

    def clear(self) -> None:
        """Begin a new episode."""
        self._states, self._actions = [], []

    def follow(self, experience: Experience) -> None:
        """Note one step of the agent."""
        if not self._states:
            self._states.append(experience.state)
        self._actions.append(experience.action)
        self._states.append(experience.outcome.state)

    def states_along(self, prefix: Sequence[str]) -> list[str]:
        """The states in which these actions were done, and the one that they led to.

        Args:
            prefix: actions since the episode began.

        Returns:
            One state more than actions; none when the agent did not go this way in this episode.
        """
        if self._actions[: len(prefix)] != list(prefix):
            return []
        return self._states[: len(prefix) + 1]


class TwinPosition(NamedTuple):
    """Where a twin stands in an episode that is not over.

    Args:
        state: what it shows.
        walked: the actions of the agent's way that brought it there; `None` when it has left that way.
        start: what it showed after its reset.
        late: how often it has repeated the last action of the way, since the agent was faster.
    """

    state: str
    walked: tuple[str, ...] | None
    start: str
    late: int = 0


class ProbeTarget(NamedTuple):
    """What a probe is after.

    Args:
        key: the wanted state by the matching rule.
        action: what is done there.
        prefix: the actions that led there since the agent's episode began.
        states: the states of that way, as far as they are known: one more than actions, or none.
        times: how many answers are wanted.
    """

    key: Hashable
    action: str
    prefix: tuple[str, ...]
    states: list[str]
    times: int


def is_on_path(stand: TwinPosition, goal: ProbeTarget) -> bool:
    """Whether the rest of the agent's way leads on from here.

    Where the twin's episode began in the very state in which the agent's did, that can be seen.

    Args:
        stand: where the twin stands.
        goal: what it is after.

    Example:
        >>> goal = ProbeTarget("c", "1", ("0", "0"), ["a", "b", "c"], 1)
        >>> is_on_path(TwinPosition("b", ("0",), "a"), goal), is_on_path(TwinPosition("x", ("0",), "a"), goal)
        (True, False)
    """
    if stand.walked is None or goal.prefix[: len(stand.walked)] != stand.walked:
        return False
    if goal.states and goal.states[0] == stand.start:
        return goal.states[len(stand.walked)] == stand.state
    return True


def is_blind(stand: TwinPosition, goal: ProbeTarget) -> bool:
    """Whether the twin's episode began elsewhere than the agent's, so that states cannot be compared.

    Args:
        stand: where the twin stands.
        goal: what it is after.
    """
    return bool(goal.states) and goal.states[0] != stand.start


def advance(stand: TwinPosition, doing: str, state: str, goal: ProbeTarget, here: bool) -> TwinPosition:
    """Where the twin stands after a step.

    A probe takes the place of the agent's own action. Whether the way leads on from there can be seen, or it hardly
    matters, as for a car; it is left where the agent's states are not known.

    Args:
        stand: where it stood.
        doing: the action.
        state: what it shows now.
        goal: what it is after.
        here: whether it stood in the wanted state, so that the action was a probe.
    """
    if not is_on_path(stand, goal):
        return TwinPosition(state, None, stand.start)
    done = stand.walked or ()
    usual = goal.prefix[len(done) :][:1]
    if not usual and not here:
        return TwinPosition(state, done, stand.start, stand.late + 1)
    walked = (*done, *(usual or (doing,))) if goal.states or usual in ((), (doing,)) else None
    return TwinPosition(state, walked, stand.start)
