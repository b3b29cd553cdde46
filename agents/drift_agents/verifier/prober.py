"""Probers: how a verifier repeats an action in a state that the environment has left.

By replay the actions that led to the state are executed again, then the probed action. By a saved state, which is
privileged: no agent can restore the state of its environment.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol

import gymnasium as gym

from drift_agents.envs.base import check_text_env, read_outcome, to_env
from drift_agents.envs.matching import Exact, Matching
from drift_agents.errors import ArgumentError
from drift_agents.types import Experience, Outcome, ProbeCost, Transition
from drift_agents.verifier.base import Probed
from drift_agents.verifier.paths import (
    EpisodePath,
    ProbeTarget,
    TransitionGraph,
    TwinPosition,
    UnusedResponses,
    advance,
    is_blind,
    is_on_path,
)
from drift_envs.checks import check_count

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
        attempts: the maximum number of misses in a row; positive.
        max_steps: the maximum number of steps in a row without a response; positive.

    Raises:
        ArgumentError: if `attempts` or `max_steps` is not positive.
    """

    privileged = False
    live = False

    def __init__(self, twin: gym.Env[Any, Any], *, attempts: int = 20, max_steps: int = MAX_STEPS) -> None:
        self.attempts = check_count("attempts", attempts)
        self.max_steps = check_count("max_steps", max_steps)
        self._twin = twin
        self._agent_path, self._unused = EpisodePath(), UnusedResponses()
        self.bind(Exact())

    def bind(self, matching: Matching) -> None:
        """Take the agent's matching rule, and clear all observations."""
        self._matching = matching
        self._full_graph = TransitionGraph(matching.state_key)
        self.begin_episode()

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
            observation, info = self._twin.reset()
            check_text_env(observation, info)
            position, resets = TwinPosition(str(observation), (), str(observation)), 1
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


class ReplayLiveProber(ReplayProber):
    """Replays the actions that led to a state in the agent's own environment, between two episodes.

    For agents without a twin. The environment has to be reset, so a verifier probes after the agent's
    episode. Each replay is an episode, and a drift whose clock counts episodes or steps advances: a response
    may be of a later tick than the surprise. It suits environments with equal start states; where each reset
    draws another task, the state is rarely reached again.

    Args:
        env: the environment in which the agent plays.
        attempts: the maximum number of misses in a row; positive.
        max_steps: the maximum number of steps in a row without a response; positive.

    Raises:
        ArgumentError: if `attempts` or `max_steps` is not positive.
    """

    live = True

    def __init__(self, env: gym.Env[Any, Any], *, attempts: int = 20, max_steps: int = MAX_STEPS) -> None:
        super().__init__(env, attempts=attempts, max_steps=max_steps)

    def probe(self, state: str, action: str, prefix: Sequence[str], times: int, limit: int | None = None) -> Probed:
        """Execute `action` in `state` up to `times` times, from a reset, as `ReplayProber` does."""
        self._position = None
        self._unused.clear()
        return super().probe(state, action, prefix, times, limit)


class SnapshotProber:
    """Restores the saved state of the agent's environment: privileged, an ablation of `ReplayProber`.

    It measures the cost of verification without replay: one step and one reset a probe.

    Args:
        twin: the second instance, as for `ReplayProber`.
        save: saves the present state of the agent's environment, as
            `functools.partial(snapshot, env)` does, with `drift_envs.wrappers.twin.snapshot`.

    Raises:
        ArgumentError: if `save` cannot be called.
    """

    privileged = True
    live = False

    def __init__(self, twin: gym.Env[Any, Any], save: Callable[[], Saved]) -> None:
        if not callable(save):
            raise ArgumentError(f"`save` should be a function that saves the environment's state. Received {save!r}")
        self._twin, self._save = twin, save
        self._saved: Saved | None = None

    def bind(self, matching: Matching) -> None:
        """Do nothing: the state is restored exactly."""

    def begin_episode(self) -> None:
        """Save the first state of the episode."""
        self._saved = self._save()

    def moved(self) -> None:
        """Save the state before the next step."""
        self._saved = self._save()

    def probe(self, state: str, action: str, prefix: Sequence[str], times: int, limit: int | None = None) -> Probed:
        """Execute `action` `times` times in the state before the agent's last step.

        Args:
            state: that state, as text.
            prefix: ignored.
            limit: the maximum number of responses.

        Returns:
            The transitions, with their cost; none before the first episode.
        """
        found: list[Transition] = []
        cost = ProbeCost()
        if self._saved is None:
            return Probed()
        for _ in range(times if limit is None else min(times, limit)):
            self._twin.reset()
            self._saved.restore(self._twin)
            outcome, _ = step_text(self._twin, action)
            found.append(Transition(state, action, outcome))
            cost += ProbeCost(steps=1, resets=1) + episode_end_cost(outcome)
        return Probed(tuple(found), cost)


class Saved(Protocol):
    """A saved state of the agent's environment."""

    def restore(self, into: Any) -> None:
        """Put another instance of the environment into that state; its random stream stays its own."""


def step_text(env: Any, action: str) -> tuple[Outcome, bool]:
    """One step: the outcome, and whether the episode is over (the time limit included)."""
    observation, _, terminated, truncated, info = env.step(to_env(env.action_space, action))
    return read_outcome(observation, terminated, info), bool(terminated or truncated)


def episode_end_cost(outcome: Outcome) -> ProbeCost:
    """The cost of the end of a probe episode; a truncated one is neither a fall nor a purchase."""
    return ProbeCost(
        falls=int(outcome.ended and outcome.score <= 0), purchases=int(outcome.ended and outcome.score > 0)
    )
