"""The control `base+extra`: what GLOVE spends on probes, spent on ordinary episodes.

* `ExtraEpisodes` - the extra episodes of one cell
* `read_like` - the verifier whose probe steps are spent

A file of its own, since it plays a second cell beside the one of `drift_agents.experiment.episode`.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
from pydantic import ValidationError

from drift_agents.agent import Agent
from drift_agents.errors import ArgumentError, ExperimentError
from drift_agents.experiment.config import PartSpec, ScheduleSettings
from drift_agents.experiment.evaluation_wrapper import EvaluationWrapper
from drift_agents.llm.budget import Meter
from drift_agents.registry import VERIFIERS
from drift_agents.team_agent import TeamAgent
from drift_agents.types import ProbeCost
from drift_envs.wrappers.twin import twin


def read_like(part: PartSpec, settings: ScheduleSettings) -> PartSpec:
    """The verifier whose probe steps are spent, with what the experiment says about it on this schedule.

    Args:
        part: `base+extra` with its options; `like` names the verifier, `glove` if not given.
        settings: what the experiment says about the schedule.

    Raises:
        ArgumentError: if `like` does not name a verifier that probes.
        UnknownNameError: if there is no verifier of that name.

    Example:
        >>> part = PartSpec(name="base+extra", options={"like": {"glove": {"budget": 3}}})
        >>> read_like(part, ScheduleSettings(verifier={"glove": {"epsilon": 0.2}})).options
        {'budget': 3, 'epsilon': 0.2}
    """
    given = part.options.get("like", "glove")
    try:
        like = PartSpec.model_validate(given)
    except ValidationError as error:
        raise ArgumentError(
            f"`like` should be a verifier's name, or one with its options. Received {given!r}"
        ) from error
    if "prober" not in inspect.signature(VERIFIERS.load(like.name)).parameters:
        raise ArgumentError(f"`like` should name a verifier that probes. Received {like.name!r}")
    return PartSpec(name=like.name, options={**like.options, **settings.verifier.get(like.name, {})})


class ExtraEpisodes:
    """The extra episodes of one cell.

    They are played in a twin of the environment, as GLOVE's probes are, so they do not move time. After
    every ordinary episode the agent gets as many steps there as the probing verifier took for its
    probes during that episode, to the step: the last extra episode is cut off where they end.

    Args:
        budgets: how many steps the probing verifier took, episode by episode.
        env: where the agent plays.
    """

    def __init__(self, budgets: Iterator[int], env: EvaluationWrapper) -> None:
        self._budgets = budgets
        self.meter = Meter()
        """What language models cost in the extra episodes."""
        self._env = env
        spec = env.env.spec
        self._room = _Room(twin(env.env), None if spec is None else spec.max_episode_steps)

    def play(self, agent: Agent | TeamAgent) -> ProbeCost:
        """Play the extra episodes that belong to the ordinary one that has just ended.

        Args:
            agent: the agent.

        Returns:
            What they took, in the terms of probes: their ends are falls and purchases likewise.

        Raises:
            ExperimentError: if the probing verifier has played fewer episodes.
        """
        budget = next(self._budgets, None)
        if budget is None:
            raise ExperimentError("`base+extra` has played more episodes than the verifier that it is compared with")
        cost = ProbeCost()
        while cost.steps < budget:
            self._room.left = budget - cost.steps
            episode = agent.run_episode(self._room)
            self.meter.add(episode.usage)
            cost += ProbeCost(
                steps=episode.steps,
                resets=1,
                falls=int(episode.terminated and episode.score <= 0),
                purchases=int(episode.terminated and episode.score > 0),
            )
        self._env.note_elsewhere(cost.steps)
        return cost


class _Room(gym.Wrapper[str, Any, str, Any]):
    """A twin with the environment's step limit, which also ends an episode when no step is left.

    Args:
        second: the twin, which has no limit of its own.
        limit: the step limit, if there is one.
    """

    def __init__(self, second: gym.Env[str, Any], limit: int | None) -> None:
        super().__init__(second)
        self._limit = limit
        self._steps = 0
        self.left = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Begin an episode."""
        self._steps = 0
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        """Step, and say whether it was the last one that there is."""
        state, reward, terminated, truncated, info = self.env.step(action)
        self._steps += 1
        self.left -= 1
        return state, reward, terminated, truncated or self._steps == self._limit or self.left <= 0, info
