"""Probing by replay: the actions that led to a state are executed again, then the probed action.

* `ReplayProber` - replays in a twin of the environment; every step is charged
* `ReplayLiveProber` - replays in the agent's own environment, between two episodes: its clock advances
* `step_text`, `episode_end_cost` - one step of a text environment, and what the end of a probe episode costs
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import gymnasium as gym

from drift_agents.matching import Exact, Matching
from drift_agents.text_env import check_text_env, read_outcome, to_env
from drift_agents.types import Experience, Outcome, ProbeCost, Transition
from drift_agents.verifier.base import Probed
from drift_agents.verifier.prober.transition_graph import TransitionGraph, UnusedResponses
from drift_envs.checks import check_count


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


MAX_STEPS = 1000
"""The default of `max_steps`: about three times the longest episode of the environments (300 steps)."""

LAG = 5
"""How often the last action is repeated without comparing states, for a twin that is behind the agent."""


class ReplayProber:
    """Replays the actions that led to a state in a twin of the environment, and repeats the action there.

    The twin is reset and the actions of the episode's beginning are executed. When it first reaches the
    target state (by the matching rule), which may be before the last of them, the probed action is executed
    and its outcome recorded; while the twin then still is in the target state, the action is repeated. A
    replay that misses the state, because the environment is stochastic or starts elsewhere, is followed by
    another one; after `attempts` misses in a row, or `max_steps` steps in a row without a response, the
    prober returns the responses it has. The only assumption is that a state's text determines the dynamics.

    Steps are saved as follows:

    * During the agent's episode the twin is not reset after a probe: it continues from its position if a
      path from there is known and no longer than from a reset.
    * Responses observed on the way are kept for the same time and answer later probes of the same
      state and action without cost, each once.
    * Where states recur as equal texts, the path follows observed transitions (`TransitionGraph`): those of
      this episode, or else all. Where they do not (a car with random start states), the actions are
      repeated without comparing states, the last one up to `LAG` times more.

    Both end with the agent's episode, since the environment may drift between episodes. In an environment
    that drifts within an episode a kept response may be as old as the episode.

    All steps and resets are charged, misses included. A probe episode that ends with a score counts as a
    purchase, one that ends without as a fall; one that is interrupted counts as neither.

    Args:
        twin: the second instance, a text environment at the same drift tick as the first
            (`drift_envs.twin(env)`), with a random stream of its own.
        matching: when two states count as the same; by default the agent's rule.
        attempts: the maximum number of misses in a row; positive.
        max_steps: the maximum number of steps in a row without a response; positive.

    Raises:
        ArgumentError: if `attempts` or `max_steps` is not positive.
    """

    privileged = False
    live = False

    def __init__(
        self,
        twin: gym.Env[Any, Any],
        *,
        matching: Matching | None = None,
        attempts: int = 20,
        max_steps: int = MAX_STEPS,
    ) -> None:
        self.attempts = check_count("attempts", attempts)
        self.max_steps = check_count("max_steps", max_steps)
        self._twin = twin
        self._own_rule = matching is not None
        self._matching: Matching = Exact() if matching is None else matching
        self._agent_path, self._unused = EpisodePath(), UnusedResponses()
        self._forget()

    def bind(self, matching: Matching) -> None:
        """Take the agent's matching rule, unless one was given, and clear all observations."""
        if not self._own_rule:
            self._matching = matching
        self._forget()

    def begin_episode(self) -> None:
        """Clear what may have drifted: the twin's position, the unused responses, the episode's graph."""
        self._agent_path.clear()
        self._unused.clear()
        self._position: TwinPosition | None = None
        self._episode_graph = TransitionGraph(self._matching.state_key)

    def follow(self, experience: Experience) -> None:
        """Record a step of the agent."""
        self._agent_path.follow(experience)
        self._note_step(experience.transition)

    def moved(self) -> None:
        """Do nothing."""

    def probe(self, state: str, action: str, prefix: Sequence[str], times: int, limit: int | None = None) -> Probed:
        """Execute `action` in `state` up to `times` times.

        Args:
            state: the target state, as text.
            action: the probed action.
            prefix: the actions that led there since the episode began.
            times: the maximum number of responses.
            limit: the maximum number of responses and of replays without one together.

        Returns:
            At most `times` transitions, with their cost.

        Raises:
            ArgumentError: if the twin does not show text.
        """
        key = self._matching.state_key(state)
        times = times if limit is None else min(times, limit)
        target = ProbeTarget(key, action, tuple(prefix), self._agent_path.states_along(prefix), times)
        found = self._unused.take(key, action, times)
        cost, missed, fruitless, misses = ProbeCost(), 0, 0, 0
        while len(found) < target.times and missed < self.attempts and fruitless < self.max_steps:
            before = len(found)
            spent = self._replay(target, found, self.max_steps - fruitless)
            cost += spent
            missed, fruitless = (0, 0) if len(found) > before else (missed + 1, fruitless + spent.steps)
            misses += len(found) == before
            if limit is not None:
                target = target._replace(times=min(times, limit - misses))
        return Probed(tuple(found), cost, misses)

    def _replay(self, target: ProbeTarget, found: list[Transition], limit: int) -> ProbeCost:
        """One replay, from the twin's position or from a reset; appends to `found`, returns the cost."""
        position, resets = self._position, 0
        if position is None or not self._is_worth_continuing(position, target):
            position, resets = self._reset(), 1
        self._position = None  # set again if the next replay can continue
        cost, fruitless, arrived = ProbeCost(resets=resets), 0, False
        plan: list[tuple[str, str]] = []
        limit = min(limit, len(target.prefix) + max(len(target.prefix), LAG))
        while len(found) < target.times:
            at_target = self._matching.state_key(position.state) == target.key
            doing = target.action if at_target else self._choose_action(position, target, plan, arrived)
            if doing is None or (fruitless >= limit and not at_target):
                break
            outcome, over = step_text(self._twin, doing)
            transition = Transition(position.state, doing, outcome)
            self._note_step(transition)
            cost += ProbeCost(steps=1)
            if at_target:
                found.append(transition)
                arrived, fruitless = True, 0
            else:
                self._unused.note(self._matching.state_key(position.state), transition)
                fruitless += 1
            if over:
                return cost + episode_end_cost(outcome)
            position = advance(position, doing, outcome.state, target, at_target)
        if arrived:
            self._position = position
        return cost

    def _reset(self) -> TwinPosition:
        observation, info = self._twin.reset()
        check_text_env(observation, info)
        return TwinPosition(str(observation), (), str(observation))

    def _choose_action(
        self, position: TwinPosition, target: ProbeTarget, plan: list[tuple[str, str]], arrived: bool
    ) -> str | None:
        """The next action of the path; `plan` is the rest of the path that was planned before."""
        if plan and plan[0][0] != position.state:
            plan.clear()
        if not plan:
            plan += self._find_path(position.state, target.key) or ()
        if plan:
            return plan.pop(0)[1]
        if arrived or not is_on_path(position, target):
            return None
        rest = target.prefix[len(position.walked or ()) :]
        if not rest and is_blind(position, target) and position.late < LAG:
            rest = target.prefix[-1:]
        return rest[0] if rest else None

    def _find_path(self, state: str, key: Hashable) -> list[tuple[str, str]] | None:
        """A path by the transitions of this episode, or else by all."""
        today = self._episode_graph.path(state, key)
        return self._full_graph.path(state, key) if today is None else today

    def _is_worth_continuing(self, position: TwinPosition, target: ProbeTarget) -> bool:
        """Whether a path from this position is known and not much longer than from a reset.

        A reset may be nearer, but loses the twin's progress on the agent's path, which the next probe, farther
        along, would have to repeat.
        """
        on = self._distance(position, target)
        again = self._distance(TwinPosition(position.start, (), position.start), target)
        gone = len(position.walked or ()) if is_on_path(position, target) else 0
        return on is not None and (again is None or on <= again + gone)

    def _distance(self, position: TwinPosition, target: ProbeTarget) -> int | None:
        """The expected number of steps to the target; `None` if no path is known."""
        path = self._find_path(position.state, target.key)
        if path is not None:
            return len(path)
        if not is_on_path(position, target):
            return None
        passed = len(position.walked or ())
        for distance, state in enumerate(target.states[passed:]):
            if self._matching.state_key(state) == target.key:
                return distance
        return len(target.prefix) - passed

    def _note_step(self, transition: Transition) -> None:
        state, action, outcome = transition
        after = None if outcome.ended else outcome.state
        self._episode_graph.note(state, action, after)
        self._full_graph.note(state, action, after)

    def _forget(self) -> None:
        self._full_graph = TransitionGraph(self._matching.state_key)
        self.begin_episode()


class ReplayLiveProber(ReplayProber):
    """Replays the actions that led to a state in the agent's own environment, between two episodes.

    For agents without a twin. The environment has to be reset, so a verifier probes after the agent's
    episode. Each replay is an episode, and a drift whose clock counts episodes or steps advances: a response
    may be of a later tick than the surprise. It suits environments with equal start states; where each reset
    draws another task, the state is rarely reached again.

    Args:
        env: the environment in which the agent plays.
        matching: when two states count as the same; by default the agent's rule.
        attempts: the maximum number of misses in a row; positive.
        max_steps: the maximum number of steps in a row without a response; positive.

    Raises:
        ArgumentError: if `attempts` or `max_steps` is not positive.
    """

    live = True

    def __init__(
        self,
        env: gym.Env[Any, Any],
        *,
        matching: Matching | None = None,
        attempts: int = 20,
        max_steps: int = MAX_STEPS,
    ) -> None:
        super().__init__(env, matching=matching, attempts=attempts, max_steps=max_steps)

    def probe(self, state: str, action: str, prefix: Sequence[str], times: int, limit: int | None = None) -> Probed:
        """Execute `action` in `state` up to `times` times, from a reset, as `ReplayProber` does."""
        self._position = None
        self._unused.clear()
        return super().probe(state, action, prefix, times, limit)


def step_text(env: Any, action: str) -> tuple[Outcome, bool]:
    """One step: the outcome, and whether the episode is over (the time limit included)."""
    observation, _, terminated, truncated, info = env.step(to_env(env.action_space, action))
    return read_outcome(observation, terminated, info), bool(terminated or truncated)


def episode_end_cost(outcome: Outcome) -> ProbeCost:
    """The cost of the end of a probe episode; a truncated one is neither a fall nor a purchase."""
    return ProbeCost(
        falls=int(outcome.ended and outcome.score <= 0), purchases=int(outcome.ended and outcome.score > 0)
    )
