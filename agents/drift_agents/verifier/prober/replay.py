"""Probing by replay: the actions that led to a state are executed again, then the probed action.

* `ReplayProber` - replays in a twin of the environment; every step is charged
* `ReplayLiveProber` - replays in the agent's own environment, between two episodes: its clock advances
* `step_text`, `episode_end_cost` - one step of a text environment, and what the end of a probe episode costs
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import gymnasium as gym

from drift_agents.checks import check_integer
from drift_agents.matching.base import Exact, Matching
from drift_agents.types import Experience, Outcome, ProbeCost, Transition
from drift_agents.verifier.base import Probed
from drift_agents.verifier.prober.paths import EpisodePath, ProbeTarget, TwinPosition, advance, is_blind, is_on_path
from drift_agents.verifier.prober.transition_graph import TransitionGraph, UnusedResponses
from drift_agents.world import check_text_world, read_outcome, to_env

MAX_STEPS = 1000
"""Steps in a row without an answer: some three of the longest ways that our worlds know (300 steps)."""

LAG = 5
"""How often a twin that goes blindly repeats the last action of the way, when it is a little behind the agent."""


class ReplayProber:
    """Replays the actions that led to a state in a twin of the environment, and repeats the action there.

    The twin is reset and the actions of the episode's beginning are executed. The first time that
    it stands in the wanted state (by the matching rule), be it before the last of them, the action
    is executed and its outcome recorded; while it then still stands in the wanted state, it is
    executed again. A replay that misses the state, because the world answers by chance or starts
    elsewhere, is followed by another one; after `attempts` misses in a row, or `max_steps` steps
    in a row without an answer, the prober gives up and hands back what it has. Nothing is assumed
    about the world but that a state, as it is shown, says all that matters.

    It does no step twice that it can do once:

    * The twin is not thrown away after a probe. While the agent's episode lasts, it goes on from where
      it stands if the way from there is known and no longer than from a reset.
    * What the twin answers on the way is kept for as long, and answers later probes of the same kind
      at no further cost, each answer once.
    * Where states come back as the same text, the way is walked with open eyes: a twin that was
      carried elsewhere takes a way on which actions have led there before (`ways.Chart`), by what this
      episode has shown or else by all that was seen. Where they do not (a car starts elsewhere each time), the
      actions are repeated blindly, the last one up to `LAG` times more.

    Both ends with the agent's episode, since the world may be another one in the next. In a world
    that drifts within an episode a kept answer may be as old as the episode.

    Every step and every reset is charged, misses included. A probe episode that ends with a score
    is a purchase, one that ends without is a fall; one that is left in the middle is neither.

    Args:
        twin: the second instance, a text world at the same drift tick as the first
            (`drift_envs.twin(world)`); it draws from a random stream of its own.
        matching: when two states count as the same; the agent's own rule if not given.
        attempts: how many replays in a row may miss the state; positive.
        max_steps: how many steps in a row may bring no answer; positive.

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
        self.attempts = check_integer("attempts", attempts)
        self.max_steps = check_integer("max_steps", max_steps)
        self._twin = twin
        self._own_rule = matching is not None
        self._matching: Matching = Exact() if matching is None else matching
        self._way, self._answers = EpisodePath(), UnusedResponses()
        self._forget_all()

    def bind(self, matching: Matching) -> None:
        """Take the agent's matching rule, unless one was given; what was seen is forgotten."""
        if not self._own_rule:
            self._matching = matching
        self._forget_all()

    def begin_episode(self) -> None:
        """The world may be another one now: a replay starts from a reset, and old answers count no more."""
        self._way.clear()
        self._answers.clear()
        self._stand: TwinPosition | None = None
        self._today = TransitionGraph(self._matching.state_key)

    def follow(self, experience: Experience) -> None:
        """Note a step of the agent: it tells how one gets about."""
        self._way.follow(experience)
        self._note_step(experience.transition)

    def moved(self) -> None:
        """Nothing to note."""

    def probe(self, state: str, action: str, prefix: Sequence[str], times: int) -> Probed:
        """Execute `action` in `state` up to `times` times.

        Args:
            state: the wanted state, as the world showed it.
            action: what is done there.
            prefix: the actions that led there since the episode began.
            times: how many outcomes are wanted.

        Returns:
            As many transitions as could be had, at most `times`, with what they cost.

        Raises:
            ArgumentError: if the twin does not show text.
        """
        key = self._matching.state_key(state)
        goal = ProbeTarget(key, action, tuple(prefix), self._way.states_along(prefix), times)
        found = self._answers.take(key, action, times)
        cost, missed, vain = ProbeCost(), 0, 0
        while len(found) < times and missed < self.attempts and vain < self.max_steps:
            before = len(found)
            spent = self._go(goal, found, self.max_steps - vain)
            cost += spent
            missed, vain = (0, 0) if len(found) > before else (missed + 1, vain + spent.steps)
        return Probed(tuple(found), cost)

    def _go(self, goal: ProbeTarget, found: list[Transition], room: int) -> ProbeCost:
        """One replay, on from where the twin stands or from the start; appends to `found`, returns the cost."""
        stand, resets = self._stand, 0
        if stand is None or not self._is_near(stand, goal):
            stand, resets = self._reset(), 1
        self._stand = None  # unless it can go on from here another time
        cost, vain, arrived = ProbeCost(resets=resets), 0, False
        ahead: list[tuple[str, str]] = []
        room = min(room, len(goal.prefix) + max(len(goal.prefix), LAG))
        while len(found) < goal.times:
            here = self._matching.state_key(stand.state) == goal.key
            doing = goal.action if here else self._next(stand, goal, ahead, arrived)
            if doing is None or (vain >= room and not here):
                break
            outcome, over = step_text(self._twin, doing)
            transition = Transition(stand.state, doing, outcome)
            self._note_step(transition)
            cost += ProbeCost(steps=1)
            if here:
                found.append(transition)
                arrived, vain = True, 0
            else:
                self._answers.note(self._matching.state_key(stand.state), transition)
                vain += 1
            if over:
                return cost + episode_end_cost(outcome)
            stand = advance(stand, doing, outcome.state, goal, here)
        if arrived:
            self._stand = stand
        return cost

    def _reset(self) -> TwinPosition:
        observation, info = self._twin.reset()
        check_text_world(observation, info)
        return TwinPosition(str(observation), (), str(observation))

    def _next(self, stand: TwinPosition, goal: ProbeTarget, ahead: list[tuple[str, str]], arrived: bool) -> str | None:
        """What to do next on the way; `ahead` is the rest of the way that was planned before."""
        if ahead and ahead[0][0] != stand.state:
            ahead.clear()
        if not ahead:
            ahead += self._path(stand.state, goal.key) or ()
        if ahead:
            return ahead.pop(0)[1]
        if arrived or not is_on_path(stand, goal):
            return None
        rest = goal.prefix[len(stand.walked or ()) :]
        if not rest and is_blind(stand, goal) and stand.late < LAG:
            rest = goal.prefix[-1:]
        return rest[0] if rest else None

    def _path(self, state: str, key: Hashable) -> list[tuple[str, str]] | None:
        """A way by what was seen in this episode, or else by what was ever seen."""
        today = self._today.path(state, key)
        return self._ever.path(state, key) if today is None else today

    def _is_near(self, stand: TwinPosition, goal: ProbeTarget) -> bool:
        """Whether going on from here is known to lead there, and is worth it.

        A reset may stand nearer, but gives up how far the twin has come on the agent's way: the next surprise will
        be farther along, and all of the way would have to be walked again.
        """
        on = self._distance(stand, goal)
        again = self._distance(TwinPosition(stand.start, (), stand.start), goal)
        gone = len(stand.walked or ()) if is_on_path(stand, goal) else 0
        return on is not None and (again is None or on <= again + gone)

    def _distance(self, stand: TwinPosition, goal: ProbeTarget) -> int | None:
        """How many steps it should take to get there; `None` if no way is known."""
        path = self._path(stand.state, goal.key)
        if path is not None:
            return len(path)
        if not is_on_path(stand, goal):
            return None
        passed = len(stand.walked or ())
        for ahead, state in enumerate(goal.states[passed:]):
            if self._matching.state_key(state) == goal.key:
                return ahead
        return len(goal.prefix) - passed

    def _note_step(self, transition: Transition) -> None:
        state, action, outcome = transition
        after = None if outcome.ended else outcome.state
        self._today.note(state, action, after)
        self._ever.note(state, action, after)

    def _forget_all(self) -> None:
        self._ever = TransitionGraph(self._matching.state_key)
        self.begin_episode()


class ReplayLiveProber(ReplayProber):
    """Replays the actions that led to a state in the agent's own environment, between two episodes.

    The world has to be reset for that, so a verifier calls it when the agent's episode is over. Every
    replay is an episode of its own, and a drift whose clock counts episodes or steps goes on meanwhile:
    what is found may be the answer of a later time than that of the surprise. It fits worlds whose
    episodes begin alike; where every reset brings another task, the state is hardly met again.

    Args:
        world: the world in which the agent plays.
        matching: when two states count as the same; the agent's own rule if not given.
        attempts: how many replays in a row may miss the state; positive.

    Raises:
        ArgumentError: if `attempts` is not positive.
    """

    live = True

    def __init__(
        self,
        world: gym.Env[Any, Any],
        *,
        matching: Matching | None = None,
        attempts: int = 20,
        max_steps: int = MAX_STEPS,
    ) -> None:
        super().__init__(world, matching=matching, attempts=attempts, max_steps=max_steps)

    def probe(self, state: str, action: str, prefix: Sequence[str], times: int) -> Probed:
        """Execute `action` in `state` up to `times` times, from a reset, as `ReplayProber` does."""
        self._stand = None
        self._answers.clear()
        return super().probe(state, action, prefix, times)


def step_text(world: Any, action: str) -> tuple[Outcome, bool]:
    """One step: what the world answered, and whether the episode is over (the time limit included)."""
    observation, _, terminated, truncated, info = world.step(to_env(world.action_space, action))
    return read_outcome(observation, terminated, info), bool(terminated or truncated)


def episode_end_cost(outcome: Outcome) -> ProbeCost:
    """What the end of a probe episode counts as; running out of time is neither a fall nor a purchase."""
    return ProbeCost(
        falls=int(outcome.ended and outcome.score <= 0), purchases=int(outcome.ended and outcome.score > 0)
    )
