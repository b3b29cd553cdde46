"""The episodes of one cell: the training phase first, if there is one, then the test."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from drift_agents.agent.agent import Agent
from drift_agents.agent.team_agent import TeamAgent
from drift_agents.controller.base import make_controller
from drift_agents.envs.base import find_environment
from drift_agents.envs.matching import Exact, Matching, make_matching
from drift_agents.errors import ExperimentError
from drift_agents.experiment.cell_environment import EvaluationWrapper, make_env, memory_dependencies, read_schedule
from drift_agents.experiment.config import SOLO, ScheduleSettings, TrainingSettings
from drift_agents.experiment.evaluator import EpisodeEvaluator
from drift_agents.experiment.logs import SUCCESS, TEST, TRAIN
from drift_agents.experiment.plan import Cell, PlannedEpisode, plan_episodes
from drift_agents.experiment.players import (
    Clairvoyant,
    OracleVerifier,
    make_player,
    make_policy_and_memory,
    make_policy_and_model,
    with_prober,
)
from drift_agents.llm.service import Service
from drift_agents.memory.base import Memory, NoMemory
from drift_agents.memory.views import freeze
from drift_agents.policy.base import Policy
from drift_agents.prompt.builder import Recall
from drift_agents.types import Episode, strongest_supervision
from drift_agents.verifier.base import Verifier, make_verifier
from drift_envs.errors import ArgumentError
from drift_envs.knobs import FrozenMapping
from drift_envs.schedule.model import Schedule

AGENT_STREAM = 0xA6E7
"""Separates the random streams of agents from those of episodes and drifts."""


@dataclass
class CellSetup:
    """The environment, the player and the stages of a cell.

    Args:
        schedule: the schedule.
        env: the environment; it is not seeded yet.
        agent: the agent, the team or the reference.
        memory: its memory.
        supervision: one of `drift_agents.types.SUPERVISION`.
        episodes: the episodes of the test.
        matching: when two states count as the same.
        training_phase: the episodes before the test, if there are any.
        training_policy: the policy of the training phase, where it is not the agent's own.
        frozen: whether memory's own write rule is off in the test.
        warnings: those of the agent.
        stage: the present stage.
        stream: the seed of the present episode.
    """

    schedule: Schedule
    env: EvaluationWrapper
    agent: Agent | TeamAgent | Clairvoyant
    memory: Memory
    supervision: str
    episodes: tuple[PlannedEpisode, ...]
    matching: Matching
    training_phase: TrainingPhase | None = None
    training_policy: Policy | None = None
    frozen: bool = False
    warnings: list[str] = field(default_factory=list)
    stage: str = TEST
    stream: int = 0

    @cached_property
    def schedule_hash(self) -> str:
        """The hash of the schedule's content; computed once, since it stands in every row."""
        return self.schedule.content_hash()


def make_setup(
    cell: Cell,
    settings: ScheduleSettings,
    service: Service | None = None,
    env: EvaluationWrapper | None = None,
) -> CellSetup:
    """Make everything that a cell needs; its schedule is loaded and its environment is made once.

    Args:
        settings: the experiment's settings for the cell's schedule.
        service: the service of language models, if there are any.
        env: an environment of this place, reset with the cell's seed; of another cell for setups that play nothing.

    Raises:
        DriftAgentsError: if a part cannot be made.
        ScheduleError: if the schedule cannot be used.
    """
    schedule = read_schedule(cell.schedule, cell.change)
    if env is None:
        env = make_env(schedule)
        env.env.reset(seed=cell.seed)  # beneath the wrapper, which counts the agent's own episodes
    episodes = plan_episodes(env.timeline, settings)
    if cell.reference is not None and env.oracle is None:
        raise ExperimentError(f"{cell.schedule}: no oracle is known for {schedule.env}, which {cell.reference!r} needs")
    training, training_phase = settings.training, None
    if training is not None and has_training(cell, training):
        training_phase = plan_training(schedule, env, training, cell.seed)
    if cell.reference == "clairvoyant":
        return CellSetup(schedule, env, Clairvoyant(env), NoMemory(), "privileged", episodes, Exact())
    environment = find_environment(str(schedule.env))
    rule = settings.matching
    matching: Matching = environment.make("matching") if rule is None else make_matching(rule.name, **rule.options)
    seed = np.random.SeedSequence([*cell.agent_entropy, AGENT_STREAM])
    recall = {} if settings.recall is None else settings.recall.model_dump(exclude_none=True)
    defaults = {"matching": matching, **memory_dependencies(cell.memory, env, schedule, cell.seed)}
    policy, memory, meter = make_policy_and_memory(cell.policy, cell.memory, service, defaults)
    if cell.reference is not None:
        verifier: Verifier = OracleVerifier(cell.reference, env, memory)
    else:
        verifier = make_verifier(cell.verifier.name, **with_prober(cell.verifier, env.env))
    options: dict[str, Any] = {
        "controller": make_controller(cell.decision.controller.name, **cell.decision.controller.options),
        "matching": matching,
        "recall": Recall(**{**environment.recall, **recall}),
        "environment": environment,
        "seed": seed,
        "meter": meter,
    }
    agent = make_player(cell.decision.team, policy, memory, verifier, service, **options)
    warnings: list[str] = []
    (agent.agent if isinstance(agent, TeamAgent) else agent).warn = warnings.append
    return CellSetup(
        schedule,
        env,
        agent,
        memory,
        strongest_supervision(memory.supervision, verifier.supervision),
        episodes,
        matching,
        training_phase,
        None if training_phase is None else _make_training_policy(cell, training, service),
        frozen=settings.learning == "frozen",
        warnings=warnings,
    )


def _make_training_policy(cell: Cell, training: TrainingSettings | None, service: Service | None) -> Policy | None:
    """The policy of the training phase, if it is not the agent's own.

    Raises:
        ExperimentError: if a team would play it.
    """
    if training is None or training.policy is None:
        return None
    if cell.decision.team.name != SOLO.name:
        raise ExperimentError(
            f"`train: {{policy: {training.policy.name}}}` needs the team 'solo': a team's members train themselves. "
            f"Received {cell.decision.labels[1]!r}"
        )
    return make_policy_and_model(training.policy, service)[0]


OnEpisode = Callable[[CellSetup, int, Episode], None]
"""Called with the setup, the number and the result of every episode that has ended."""


def play(
    cell: Cell,
    settings: ScheduleSettings,
    on_episode: OnEpisode | None = None,
    service: Service | None = None,
    env: EvaluationWrapper | None = None,
    evaluator: type[EpisodeEvaluator] = EpisodeEvaluator,
) -> Generator[dict[str, Any], None, None]:
    """Play a cell: the training phase first, if there is one, then the test.

    The environment is seeded once a stage, for maps and drift; every episode then begins with its own random stream.

    Args:
        settings: the experiment's settings for the cell's schedule.
        on_episode: called after every episode.
        service: the service of language models, if there are any.
        env: an environment of this place, reset with the cell's seed; made if not given, closed in any case.
        evaluator: makes what measures the episodes; a third of the time of a shop goes into it.

    Yields:
        One row an episode, with the fields of `drift_agents.experiment.logs.FIELDS`; those that need the oracle are
        what `evaluator` returns.
    """
    setup = make_setup(cell, settings, service, env)
    try:
        measures = evaluator(setup.env, setup.matching)
        for index, played in enumerate(chain(_train(setup), _test(setup, cell.seed))):
            if on_episode is not None:
                on_episode(setup, index, played.episode)
            yield _row(cell, setup, played, index, measures)
    finally:
        setup.env.close()  # a browser, if there is one


class _PlayedEpisode(NamedTuple):
    """An episode that has just ended, its stage, and its number in its phase."""

    stage: str
    round: int
    episode: Episode


def _train(setup: CellSetup) -> Iterator[_PlayedEpisode]:
    """Play the training phase; a team may play a task several times."""
    if setup.training_phase is None or isinstance(setup.agent, Clairvoyant):
        return
    setup.env.env.reset(seed=setup.training_phase.env_seed)
    with _training_policy(setup):
        for task in setup.training_phase.tasks:
            setup.stage, setup.stream = TRAIN, task.seed
            options = {"drift_clock": "continue", "drift_tick": 0, **task.options}
            for episode in setup.agent.train_episode(setup.env, seed=task.seed, options=options):
                yield _PlayedEpisode(TRAIN, task.round, episode)


@contextmanager
def _training_policy(setup: CellSetup) -> Iterator[None]:
    """Replace the agent's policy by the policy of the training phase, if there is one."""
    if setup.training_policy is None or not isinstance(setup.agent, Agent):
        yield
        return
    own, setup.agent.policy = setup.agent.policy, setup.training_policy
    try:
        yield
    finally:
        setup.agent.policy = own


def _test(setup: CellSetup, seed: int) -> Iterator[_PlayedEpisode]:
    """Play the schedule."""
    if setup.frozen and isinstance(setup.agent, (Agent, TeamAgent)):
        agent = setup.agent.agent if isinstance(setup.agent, TeamAgent) else setup.agent
        agent.memory = freeze(setup.memory)
    env = setup.env
    env.env.reset(seed=seed)
    phase, number = None, 0
    for planned in setup.episodes:
        options: dict[str, Any] = {"drift_clock": "continue"}
        if planned.tick is not None or planned.episode == 0:
            options["drift_tick"] = planned.tick or 0
        setup.stage, setup.stream = TEST, episode_seed(seed, planned.episode)
        episode = setup.agent.run_episode(env, seed=setup.stream, options=options)
        number = number + 1 if env.phase == phase else 1
        phase = env.phase
        yield _PlayedEpisode(TEST, number, episode)
        if planned.tick is None and setup.schedule.clock == "episode":
            next_tick = int(env.get_wrapper_attr("drift_state").tick) + 1
            if next_tick >= len(setup.episodes):
                # Probes in the environment itself have passed the time of the episodes that are left.
                return


def _row(
    cell: Cell, setup: CellSetup, played: _PlayedEpisode, index: int, evaluator: EpisodeEvaluator
) -> dict[str, Any]:
    """The row of an episode that has just ended."""
    episode = played.episode
    return {
        "env": setup.schedule.env,
        "schedule": setup.schedule.name,
        "schedule_hash": setup.schedule_hash,
        **cell.who,
        "seed": cell.seed,
        "stage": played.stage,
        "episode": index,
        "round": played.round,
        "phase": setup.env.phase.id,
        "tick": setup.env.start,
        "success": episode.score >= SUCCESS,
        "score": episode.score,
        "steps": episode.steps,
        "probe_steps": episode.probes.steps,
        "probe_resets": episode.probes.resets,
        "probe_falls": episode.probes.falls,
        "probe_purchases": episode.probes.purchases,
        "surprises": episode.surprises,
        "realignments": episode.realignments,
        **evaluator.evaluate(episode, setup.memory),
        "rewritten": getattr(setup.memory, "rewritten", 0),
        "invalid_actions": episode.invalid_actions,
        **episode.usage._asdict(),
        "refreshes": episode.refreshes,
        "tokens_estimated": episode.tokens_estimated,
        "loop_steps": episode.loop_steps,
    }


TASK_STREAM, ENV_STREAM = 0xC025, 0xC03D
"""What keeps the streams of the training phase apart from those of the test, of agents and of drifts."""

_SEEDS = 100
"""How many seeds are looked at for a map that is not the test's."""


class TrainingTask(NamedTuple):
    """One task of the training phase.

    Args:
        round: its number, from 1; epochs are counted on.
        seed: of the episode's own stream.
        options: which task it is, for the environment's `reset`.
    """

    round: int
    seed: int
    options: Mapping[str, Any]


class TrainingPhase(NamedTuple):
    """What is played before the test.

    Args:
        env_seed: what the environment is seeded with: it decides maps that are drawn.
        tasks: one after the other.
    """

    env_seed: int
    tasks: tuple[TrainingTask, ...]


def has_training(cell: Cell, training: TrainingSettings | None) -> bool:
    """Whether a cell has a training phase: an agent that learns, and tasks to learn from.

    Args:
        training: the experiment's settings of the training phase.
    """
    if training is None or not training.episodes or cell.reference == "clairvoyant":
        return False
    return cell.memory.name != "none" or cell.decision.team.name != SOLO.name or cell.reference is not None


def plan_training(schedule: Schedule, env: EvaluationWrapper, training: TrainingSettings, seed: int) -> TrainingPhase:
    """The tasks played before the test; always in the source phase, at its first tick.

    Args:
        env: an environment of its own, seeded with the cell's seed; it is seeded anew.
        training: the experiment's settings of the training phase.

    Raises:
        ExperimentError: if the schedule begins with a drift, its first phase ends within an episode, or it
            has no other tasks than those of the test.
    """
    _check_source(schedule, env)
    other = training.where == "other"
    pool: tuple[int, ...] | None = None
    env_seed = seed
    shop = getattr(env.unwrapped, "other_tasks", None)
    if training.where == "elsewhere":
        elsewhere = getattr(env.unwrapped, "tasks_elsewhere", None)
        if elsewhere is None:
            raise ExperimentError(
                f"{schedule.name}: `train: {{where: elsewhere}}` needs an environment of several houses"
            )
        pool = elsewhere(training.episodes)
    elif shop is not None:
        test = env.unwrapped.task_pool  # type: ignore[attr-defined]
        size = min(training.episodes, len(test) if test is not None else training.episodes)
        pool = _draw_others(shop, size) if other or test is None else test[:size]
    elif "map" in env.timeline.names or hasattr(env.unwrapped, "desc"):
        env_seed = _other_map(schedule, env, seed) if other else seed
    # Where the start is the task, an epoch plays the same starts, and `same` those of the test's first episodes.
    starts = pool is None and env_seed == seed and not hasattr(env.unwrapped, "desc")
    tasks = []
    for number in range(training.episodes * training.epochs):
        place = number % training.episodes
        stream = _seed(seed, TASK_STREAM, place if starts else number)
        if starts and not other:
            stream = episode_seed(seed, place)
        options = {} if pool is None else {"goal_index": pool[place % len(pool)]}
        tasks.append(TrainingTask(number + 1, stream, FrozenMapping(options)))
    return TrainingPhase(env_seed, tuple(tasks))


def _draw_others(draw: Callable[[int], tuple[int, ...]], count: int) -> tuple[int, ...]:
    """So many tasks outside the test's pool; as many as there are where a drawn place has fewer."""
    for fewer in range(count, 1, -1):
        try:
            return draw(fewer)
        except ArgumentError:
            continue
    return draw(1)


EPISODE_STREAM = 0xE915
"""What keeps the streams of the test's episodes apart from those of agents and drifts."""


def episode_seed(seed: int, episode: int) -> int:
    """The seed of an episode's own stream: the same for all agents, whatever they did before.

    Args:
        episode: its number in the test.

    Example:
        >>> episode_seed(0, 0) == episode_seed(0, 0), episode_seed(0, 0) == episode_seed(0, 1)
        (True, False)
    """
    return _seed(seed, EPISODE_STREAM, episode)


def _seed(*words: int) -> int:
    return int(np.random.SeedSequence(words).generate_state(1)[0])


def _check_source(schedule: Schedule, env: EvaluationWrapper) -> None:
    source = env.timeline.phase(0)
    limit = None if env.spec is None else env.spec.max_episode_steps
    if source.index != 0 or source.drift is not None:
        raise ExperimentError(f"{schedule.name}: `train` needs a phase before any drift, but tick 0 has a drift")
    if schedule.clock != "episode" and limit is not None and source.stop < limit:
        raise ExperimentError(
            f"{schedule.name}: `train` needs a first phase as long as an episode. "
            f"Received {source.stop} steps, an episode takes up to {limit}"
        )


def _other_map(schedule: Schedule, env: EvaluationWrapper, seed: int) -> int:
    """A seed with which the schedule draws another map than the test's."""
    written = schedule.base.get("map")
    if not isinstance(written, Mapping) or schedule.seed is not None:
        raise ExperimentError(
            f"{schedule.name}: has one map, so that there is none to train on but the test's. Say "
            "`train: {where: same}`, or play a schedule that draws its maps from the seed"
        )
    test = env.knobs(0)["map"]
    for number in range(_SEEDS):
        found = _seed(seed, ENV_STREAM, number)
        env.env.reset(seed=found)
        if env.knobs(0)["map"] != test:
            return found
    raise ExperimentError(f"{schedule.name}: draws the test's map from every one of {_SEEDS} other seeds")
