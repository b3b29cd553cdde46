"""The environment of a cell: its schedule, an evaluator's notes around it, probers, and what memories need of it."""

from __future__ import annotations

import inspect
import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np

from drift_agents.envs.base import read_outcome, to_env
from drift_agents.errors import ExperimentError
from drift_agents.experiment.config import PartSpec, SweptValue
from drift_agents.experiment.logs import SUCCESS
from drift_agents.registry.tables import MEMORIES, PROBERS
from drift_agents.types import AgentClock, Episode, Experience, Outcome, Record, StepTrace, Verdict
from drift_agents.verifier.base import Prober
from drift_envs.envs.make import make_from_schedule
from drift_envs.errors import ArgumentError, NoOracleError
from drift_envs.schedule.loader import load_schedule
from drift_envs.schedule.model import Schedule
from drift_envs.schedule.timeline import NEVER, Phase, Timeline
from drift_envs.wrappers.twin import snapshot, twin

NO_PHASE = Phase("", -1, 0, None, NEVER)
"""The phase before the first reset."""


class EvaluationWrapper(gym.Wrapper[str, Any, str, Any]):
    """An environment that notes the tick of every interaction.

    It hands everything on unchanged; agents use it as the environment that it wraps. Interactions are
    counted as an agent's own clock counts them, so that a record's time says at which tick it was
    written.

    Args:
        env: a drifting environment that shows text.

    Example:
        >>> import gymnasium as gym
        >>> import drift_envs
        >>> env = EvaluationWrapper(gym.make("DriftFrozenLake-v0", text=True))
        >>> _ = env.reset(seed=0, options={"drift_tick": 20})
        >>> _ = env.step(1)
        >>> env.phase.id, env.tick, env.tick_of(0)
        ('drift-1', 20, 20)
    """

    def __init__(self, env: gym.Env[str, Any]) -> None:
        super().__init__(env)
        schedule = env.get_wrapper_attr("schedule")
        self._runs = schedule is not None and schedule.clock != "episode"
        self._steps = 0
        self._begins: list[int] = []
        self._ticks: list[int] = []
        self.start = 0
        """The tick at which this episode began."""
        self._of: Timeline | None = None
        self._since = 0
        self.phase = NO_PHASE
        self._oracle: Any = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Begin an episode and note its tick."""
        result = self.env.reset(seed=seed, options=options)
        tick = self.env.get_wrapper_attr("drift_state").tick
        if self.timeline is not self._of:
            self._of, self._since = self.timeline, self._steps
        self.phase = self.timeline.phase(tick)
        self._begins.append(self._steps)
        self._ticks.append(tick)
        self.start = tick
        return result

    def step(self, action: Any) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        """Step, and count it."""
        self._steps += 1
        return self.env.step(action)

    @property
    def steps(self) -> int:
        """The interactions so far."""
        return self._steps

    @property
    def tick(self) -> int:
        """The tick of the next interaction."""
        return self.tick_of(self._steps)

    def tick_of(self, step: int) -> int:
        """The tick of an interaction.

        Args:
            step: its number, counted over all episodes from 0; the next one is counted to this episode.
        """
        index = max(bisect_right(self._begins, step) - 1, 0)
        return self._ticks[index] + (step - self._begins[index] if self._runs else 0)

    def changed(self, record: Record, tick: int) -> bool:
        """Whether a record is answered otherwise at a tick than when it was written.

        What was written in another environment (`drift_agents.experiment.episode`) has no tick in this one:
        there the question is whether this environment could answer so.
        """
        if self.is_of_another(record):
            return not self.holds(record, tick)
        return bool(self.oracle.changed(record.state, record.action, self.tick_of(record.now.step), tick))

    def is_of_another(self, record: Record) -> bool:
        """Whether a record was written in another environment, before this one was seeded."""
        return record.now.step < self._since

    def holds(self, record: Record, tick: int) -> bool:
        """Whether one of a record's outcomes is a possible true response at a tick."""
        return any(self.could_answer(record.state, record.action, outcome, tick) for outcome, _ in record.outcomes)

    def true_share(self, record: Record, tick: int) -> float:
        """The share of what a record says that the environment could answer at a tick: 1 if all of it, 0 if nothing."""
        true = (p for outcome, p in record.outcomes if self.could_answer(record.state, record.action, outcome, tick))
        return float(sum(true))

    def could_answer(self, state: str, action: str, outcome: Outcome, tick: int) -> bool:
        """Whether an outcome is a possible true response at a tick."""
        return bool(self.oracle.holds(state, action, outcome.state, outcome.ended, tick, outcome.score))

    @property
    def timeline(self) -> Timeline:
        """What the schedule means with the present seed."""
        timeline: Timeline = self.env.get_wrapper_attr("timeline")
        return timeline

    def knobs(self, tick: int) -> Mapping[str, Any]:
        """The values of the driven knobs at a tick; the same object while nothing changes."""
        return self.timeline.values(tick)

    @property
    def oracle(self) -> Any:
        """The oracle, or `None` for an environment that has none."""
        if self._oracle is None:
            try:
                self._oracle = self.env.get_wrapper_attr("oracle")
            except (AttributeError, NoOracleError):
                return None
        return self._oracle


def read_schedule(source: str, change: SweptValue | None = None) -> Schedule:
    """The schedule of that name or path.

    Args:
        source: the name or the path.
        change: what a sweep gives it.

    Raises:
        ExperimentError: if it names no environment, or has no such place.
        ScheduleError: if it cannot be used.
    """
    schedule = load_schedule(source)
    if schedule is None or not schedule.env:
        raise ExperimentError(f"{source}: a schedule in an experiment should name its environment under `env`")
    return schedule if change is None else sweep_schedule(schedule, change)


def make_env(schedule: Schedule) -> EvaluationWrapper:
    """A schedule's environment as agents see it, with an evaluator's notes around it.

    Raises:
        ExperimentError: if its environment does not exist.
        ScheduleError: if the schedule cannot be used.
    """
    try:
        env = make_from_schedule(schedule, text=True)
        env.set_wrapper_attr("warns_of_end", False)  # the number of episodes is the experiment's
        return EvaluationWrapper(env)
    except (gym.error.Error, ArgumentError) as error:
        raise ExperimentError(f"{schedule.name}: {error}") from error


def share_left_at_once(env: EvaluationWrapper, seeds: Iterable[int], episodes: int) -> float | None:
    """The share of the played tasks that score 1 if the conversation is left at once.

    A mean over seeds and over the phases that begin within `episodes`, each with the same weight.

    Args:
        env: the environment; it is seeded anew for each of `seeds`.
        seeds: those of the instances.
        episodes: of an instance.

    Returns:
        0 to 1; `None` where the environment has no conversations (see `PackageToolsEnv.share_left_at_once`).
    """
    if not hasattr(env.unwrapped, "share_left_at_once"):
        return None
    shares = []
    for seed in seeds:
        env.env.reset(seed=seed)
        for phase in env.timeline.phases(episodes if env.timeline.schedule.clock == "episode" else 1):
            env.env.reset(options={"drift_tick": phase.start})
            shares.append(env.unwrapped.share_left_at_once())
    return float(np.mean(shares))


def make_prober(name: str, options: Mapping[str, Any], env: gym.Env[Any, Any]) -> Prober:
    """Make a prober.

    Args:
        name: one of `registry.PROBERS`; those of other packages are given the twin.
        env: the environment in which the agent plays, beneath an evaluator's notes, which follow the agent's own
            interactions.

    Raises:
        UnknownNameError: if there is no such prober.
        ArgumentError: if it does not take one of the options, or gets it here.
    """
    if name == "replay_live":
        given: dict[str, Any] = {"env": env}
    elif name == "snapshot":
        given = {"twin": twin(env), "save": partial(snapshot, env)}
    else:
        given = {"twin": twin(env)}
    if twice := [key for key in options if key in given]:
        raise ArgumentError(f"the prober {name!r} gets `{twice[0]}` from the agent. Received {dict(options)!r}")
    prober: Prober = PROBERS.make(name, **given, **options)
    return prober


def sweep_schedule(schedule: Schedule, change: SweptValue) -> Schedule:
    """A schedule with another value in one place; its name says which.

    Args:
        change: the place, its words joined by dots, and the value. `*` stands for every drift. All
            words but the last one must be there.

    Raises:
        ExperimentError: if the schedule has no such place.
        ScheduleError: if the value is not allowed there.

    Example:
        >>> reversed_ = load_schedule("mountain_car/reversed")
        >>> weak = sweep_schedule(reversed_, SweptValue("drifts.reversed.set.force", -0.0008))
        >>> weak.name, dict(weak.drifts[0].set)
        ('mountain_car/reversed/force--0.0008', {'force': -0.0008})
    """
    data = schedule.to_dict()
    *way, last = change.path.split(".")
    places = list(_places(data, way))
    if not places or not all(isinstance(place, dict) for place in places):
        raise ExperimentError(f"{schedule.name}: `sweep` should name a place of the schedule. Received {change.path!r}")
    for place in places:
        place[last] = change.value
    data["name"] = f"{schedule.name}/{change.label}"
    swept: Schedule = load_schedule(data)
    return swept


def _places(data: Any, way: list[str]) -> Iterator[Any]:
    """What stands at the end of a way; `*` leads to all items of a list, a name to the item of that name."""
    if not way:
        yield data
        return
    step, *rest = way
    if isinstance(data, list):
        for item in data:
            if step == "*" or (isinstance(item, dict) and item.get("name") == step):
                yield from _places(item, rest)
    elif isinstance(data, dict) and step in data:
        yield from _places(data[step], rest)


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
        options = {"drift_clock": "continue", "drift_tick": 0}
        # The oracle of this environment: the agent's own has not been seeded yet.
        return [
            _best(
                self._play(env, env.oracle, 0, [AgentClock()], self._stream(number, attempt), options)
                for attempt in range(TRIES)
            )
            for number in range(count)
        ]

    def _stream(self, number: int, attempt: int) -> int:
        """The seed of an attempt at an execution that is shown."""
        words = [self._seed, STREAM, number, *([attempt] if attempt else ())]
        return int(np.random.SeedSequence(words).generate_state(1)[0])

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
        second = self._second
        return _best(self._play(second, self._env.oracle, tick, clocks) for _ in range(TRIES))

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


def _best(executions: Iterator[Episode]) -> Episode:
    """The execution of the highest score, the first of equals; none is played after one that succeeds."""
    best = next(executions)
    while best.score < SUCCESS and (other := next(executions, None)) is not None:
        best = max(best, other, key=lambda execution: execution.score)
    return best


def told_action(space: gym.Space[Any], actions: Sequence[str], chosen: Any) -> str:
    """How agents would name an action.

    Args:
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

    Raises:
        ExperimentError: if it needs a teacher, and no oracle is known for that environment.
    """
    takes = inspect.signature(MEMORIES.load(part.name)).parameters
    given: dict[str, Any] = {"seed": seed} if "seed" in takes else {}
    if "teacher" in takes and (part.options.get("initial") or part.options.get("error_free")):
        given["teacher"] = Demonstrator(env, schedule, seed)
    return given
