"""Correct executions, for memories that begin with some, or whose wrong ones are replaced; privileged.

* `Demonstrator` - the clairvoyant as a teacher
* `memory_dependencies` - what a memory is given beside the options of the file
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from drift_agents.errors import ExperimentError
from drift_agents.experiment.config import PartSpec
from drift_agents.experiment.environments import make_env
from drift_agents.experiment.evaluation_wrapper import EvaluationWrapper
from drift_agents.registry import MEMORIES
from drift_agents.text_env import read_outcome, to_env
from drift_agents.types import AgentClock, Episode, Experience, StepTrace, Verdict
from drift_envs.schedule.model import Schedule
from drift_envs.wrappers.twin import twin

TRIES = 10
"""How often the clairvoyant tries a task in which chance has a hand; the best execution counts."""

STREAM = 0xDE30
"""Keeps the tasks that are shown first apart from those of the run."""


class Demonstrator:
    """The clairvoyant as a teacher: it plays, and its steps become records.

    What it shows first is played at the schedule's first tick in an environment of its own with the seed of
    the cell, so that maps and goals are those of the run. What it corrects is played in a twin of the
    agent's environment, at the tick of the episode that has just ended; both leave the agent's environment alone.

    Args:
        env: where the agent plays.
        schedule: its schedule.
        seed: the cell's.

    Raises:
        ExperimentError: if no oracle is known for that environment.
    """

    def __init__(self, env: EvaluationWrapper, schedule: Schedule, seed: int) -> None:
        if env.oracle is None:
            raise ExperimentError(
                f"{schedule.name}: no oracle is known for {schedule.env}, which correct executions need"
            )
        self._env, self._schedule, self._seed = env, schedule, seed
        self._limit = None if env.env.spec is None else env.env.spec.max_episode_steps
        self._second: gym.Env[str, Any] | None = None

    def show(self, count: int) -> Sequence[Episode]:
        """So many correct executions from before the first episode.

        Args:
            count: how many.
        """
        env = make_env(self._schedule)
        env.env.reset(seed=self._seed)
        shown = []
        for number in range(count):
            seed = int(np.random.SeedSequence([self._seed, STREAM, number]).generate_state(1)[0])
            options = {"drift_clock": "continue", "drift_tick": 0}
            # The oracle of this environment: the agent's own has not been seeded yet.
            shown.append(self._play(env, env.oracle, 0, [AgentClock()], seed, options))
        return shown

    def correct(self, result: Episode) -> Episode:
        """The correct execution of the task that has just been tried; an episode without steps stays as it is.

        Args:
            result: the episode with its steps.
        """
        if not result.trace:
            return result
        if self._second is None:
            self._second = twin(self._env.env)
        clocks = [step.experience.now for step in result.trace]
        tick = self._env.tick_of(clocks[0].step)
        best = None
        for _ in range(TRIES):
            found = self._play(self._second, self._env.oracle, tick, clocks)
            if best is None or found.score > best.score:
                best = found
            if best.score >= 1.0:
                break
        return result if best is None else best

    def _play(
        self,
        env: gym.Env[str, Any],
        oracle: Any,
        tick: int,
        clocks: Sequence[AgentClock],
        seed: int | None = None,
        options: dict[str, Any] | None = None,
    ) -> Episode:
        """Play one episode, at the times of another one's steps."""
        observation, info = env.reset(seed=seed, options=options)
        task, score = str(info["task"]), float(info["score"])
        steps: list[StepTrace] = []
        ended = truncated = False
        while not (ended or truncated) and (self._limit is None or len(steps) < self._limit):
            left = None if self._limit is None else self._limit - len(steps)
            chosen = oracle.action(observation, tick, left)
            action = told_action(env.action_space, info["actions"], chosen)
            state = str(observation)
            observation, reward, ended, truncated, info = env.step(chosen)
            outcome = read_outcome(observation, ended, info)
            now = clocks[min(len(steps), len(clocks) - 1)]
            experience = Experience(state, action, outcome, float(reward), now)
            steps.append(StepTrace(experience, "", action, (), Verdict()))
            score = outcome.score
        return Episode(task, score, len(steps), bool(ended), trace=tuple(steps))


def told_action(space: gym.Space[Any], actions: Sequence[str], chosen: Any) -> str:
    """How agents would name an action.

    Args:
        space: the environment's action space.
        actions: the admissible actions as text.
        chosen: the action, as the environment takes it.

    Example:
        >>> told_action(gym.spaces.Discrete(4), ["0", "1", "2", "3"], 2)
        '2'
    """
    if isinstance(chosen, str):
        return chosen
    named = (action for action in actions if np.array_equal(to_env(space, action), chosen))
    return next(named, json.dumps(np.asarray(chosen).tolist()))


def memory_dependencies(part: PartSpec, env: EvaluationWrapper, schedule: Schedule, seed: int) -> Mapping[str, Any]:
    """What a memory is given beside the options of the file: its seed, and a teacher where it needs one.

    Args:
        part: the memory.
        env: where the agent plays.
        schedule: its schedule.
        seed: the cell's.

    Raises:
        ExperimentError: if it needs a teacher, and no oracle is known for that environment.
    """
    takes = inspect.signature(MEMORIES.load(part.name)).parameters
    given: dict[str, Any] = {"seed": seed} if "seed" in takes else {}
    if "teacher" in takes and (part.options.get("initial") or part.options.get("error_free")):
        given["teacher"] = Demonstrator(env, schedule, seed)
    return given
