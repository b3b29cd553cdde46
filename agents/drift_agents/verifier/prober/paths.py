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

    Args:
        position: the twin's position.
        target: the probe's target.

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
    """Whether the twin's episode began in another state than the agent's, so that states cannot be compared.

    Args:
        position: the twin's position.
        target: the probe's target.
    """
    return bool(target.states) and target.states[0] != position.start


def advance(position: TwinPosition, action: str, state: str, target: ProbeTarget, at_target: bool) -> TwinPosition:
    """The position after a step.

    A probe takes the place of the agent's own action. Whether the path continues from there is visible in the
    states, or the difference is small, as for a car; the path is left if the agent's states are unknown.

    Args:
        position: the position before.
        action: the action.
        state: the state after.
        target: the probe's target.
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
