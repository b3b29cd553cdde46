"""One cell, episode by episode.

* `CellSetup` - who plays a cell: its world, its agent and what an evaluator notes
* `make_setup` - everything that a cell needs
* `play` - the rows of a cell: construction first, if there is one, then the test
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from drift_agents.agent import Agent, Recall
from drift_agents.controller.base import make_controller
from drift_agents.errors import ExperimentError
from drift_agents.experiment.config import SOLO, PartSpec, ScheduleSettings
from drift_agents.experiment.detection_tracker import DetectionTracker
from drift_agents.experiment.evaluation_wrapper import EvaluationWrapper
from drift_agents.experiment.extra_episodes import ExtraEpisodes, read_like
from drift_agents.experiment.item_audit import ItemAudit
from drift_agents.experiment.logs import CONSTRUCT, TEST
from drift_agents.experiment.memory_dependencies import memory_dependencies
from drift_agents.experiment.models import make_decider, make_parts
from drift_agents.experiment.plan import Cell, PlannedEpisode, plan_episodes
from drift_agents.experiment.references import Clairvoyant, OracleVerifier
from drift_agents.experiment.stages import (
    Construction,
    constructs,
    episode_seed,
    plan_construction,
)
from drift_agents.experiment.teams import make_player
from drift_agents.experiment.truth import GroundTruth
from drift_agents.experiment.worlds import agent_side, make_prober, make_world, read_schedule
from drift_agents.learner.base import Learner, make_learner
from drift_agents.llm.service import Service
from drift_agents.matching.base import make_matching
from drift_agents.memory.base import Memory
from drift_agents.memory.frozen import freeze
from drift_agents.memory.none import NoMemory
from drift_agents.policy.base import Policy
from drift_agents.registry import LEARNERS, VERIFIERS
from drift_agents.team_agent import TeamAgent
from drift_agents.types import Episode
from drift_agents.verifier.base import Verifier, make_verifier
from drift_envs.schedule.model import Schedule

AGENT_STREAM = 0xA6E7
"""What keeps the streams of agents apart from those of episodes and drifts."""

SUCCESS = 1.0
"""The score from which an episode counts as a success: all that there is to get."""

SUPERVISION = ("none", "own reward", "judge", "privileged")
"""What an agent is told beyond its own observations, from nothing to the truth."""


@dataclass
class CellSetup:
    """Who plays a cell, and where.

    Args:
        schedule: the schedule.
        world: the world.
        agent: the agent or the reference.
        extra: the extra episodes of the control `base+extra`.
        memory: the agent's memory.
        supervision: what the agent is told beyond its own observations.
        episodes: what the test plays.
        construction: what is played before it, if anything is.
        constructor: who plays that, if it is not the agent's own policy.
        frozen: whether memory's own rule is off in the test.
        stage: the present stage.
        stream: the seed of the present episode.
    """

    schedule: Schedule
    world: EvaluationWrapper
    agent: Agent | TeamAgent | Clairvoyant | Learner
    memory: Memory
    supervision: str
    episodes: tuple[PlannedEpisode, ...]
    extra: ExtraEpisodes | None = None
    construction: Construction | None = None
    constructor: Policy | None = None
    frozen: bool = False
    stage: str = TEST
    stream: int = 0

    @property
    def length(self) -> int:
        """How many tasks are played, those of the construction included."""
        return len(self.episodes) + (0 if self.construction is None else len(self.construction.tasks))


class EpisodeEvaluator:
    """What evaluators keep track of while a cell is played.

    Args:
        setup: who plays, and where.
    """

    def __init__(self, setup: CellSetup) -> None:
        self.truth = GroundTruth(setup.world)
        agent = setup.agent
        self.audit = ItemAudit(setup.world)
        self.noticing = DetectionTracker(setup.world, agent.matching if isinstance(agent, (Agent, TeamAgent)) else None)


def make_setup(cell: Cell, settings: ScheduleSettings, service: Service | None = None) -> CellSetup:
    """Everything that a cell needs, freshly made.

    Args:
        cell: the cell.
        settings: what the experiment says about its schedule.
        service: through which language models are asked, if there are any.

    Raises:
        DriftAgentsError: if a part cannot be made.
        ScheduleError: if the schedule cannot be used.
    """
    schedule = read_schedule(cell.schedule, cell.change)
    world = make_world(schedule)
    world.reset(seed=cell.seed)
    episodes = plan_episodes(schedule, world.timeline, settings)
    is_told = cell.reference is not None and cell.reference not in LEARNERS.names()
    if is_told and world.oracle is None:
        raise ExperimentError(f"{cell.schedule}: no oracle is known for {schedule.env}, which {cell.reference!r} needs")
    asked = settings.construction
    construction = None
    if asked is not None and constructs(cell, asked):
        construction = plan_construction(schedule, world, asked, cell.seed)
    world = make_world(schedule)
    if cell.reference == "clairvoyant":
        return CellSetup(schedule, world, Clairvoyant(world), NoMemory(), "privileged", episodes)
    side = agent_side(str(schedule.env))
    rule = settings.matching or side.matching
    matching = make_matching(rule.name, **rule.options)
    seed = np.random.SeedSequence([cell.seed, AGENT_STREAM])
    if cell.reference in LEARNERS.names():
        learner = make_learner(str(cell.reference), matching=matching, seed=seed)
        return CellSetup(schedule, world, learner, NoMemory(), learner.supervision, episodes, construction=construction)
    recall = side.recall
    if settings.recall is not None:
        recall = Recall(**{**vars(recall), **settings.recall.model_dump(exclude_none=True)})
    defaults = {"matching": matching, **memory_dependencies(cell.memory, world, schedule, cell.seed)}
    policy, memory, meter = make_parts(cell.policy, cell.memory, service, defaults)
    if cell.reference is not None:
        verifier: Verifier = OracleVerifier(cell.reference, world, memory)
    else:
        verifier = make_verifier(cell.verifier.name, **_with_prober(cell.verifier, world))
    controller = make_controller(cell.way.controller.name, **cell.way.controller.options)
    rest: dict[str, Any] = {
        "controller": controller,
        "matching": matching,
        "recall": recall,
        "seed": seed,
        "meter": meter,
    }
    agent = make_player(cell.way.team, policy, memory, verifier, service, **rest)
    constructor = None
    if construction is not None and asked is not None and asked.policy is not None:
        if cell.way.team.name != SOLO.name:
            raise ExperimentError(
                f"`construct: {{policy: {asked.policy.name}}}` needs the team 'solo': a team's members construct "
                f"themselves. Received {cell.way.labels[1]!r}"
            )
        constructor, _ = make_decider(asked.policy, service)
    return CellSetup(
        schedule,
        world,
        agent,
        memory,
        max(memory.supervision, verifier.supervision, key=SUPERVISION.index),
        episodes,
        _make_extra(cell, settings, world, service),
        construction,
        constructor,
        frozen=settings.learning == "frozen",
    )


def _make_extra(
    cell: Cell, settings: ScheduleSettings, world: EvaluationWrapper, service: Service | None
) -> ExtraEpisodes | None:
    """The extra episodes of `base+extra`, which plays the cell of the verifier that it is compared with beside its own.

    So no cell waits for another one, and a cell that was torn off can be replayed from its seed.
    """
    if cell.verifier.name != "base+extra":
        return None
    like = read_like(cell.verifier, settings)
    other = replace(cell, verifier=like, labels=(cell.labels[0], like.name, cell.labels[2]))
    make_setup(other, settings, service)  # refuses what cannot be made before anything is played
    return ExtraEpisodes((row["probe_steps"] for row in play(other, settings, service=service)), world)


def _with_prober(part: PartSpec, world: EvaluationWrapper) -> dict[str, Any]:
    """The options of a verifier, with the prober itself where they name one, or where it needs one."""
    options = dict(part.options)
    if "prober" in inspect.signature(VERIFIERS.load(part.name)).parameters:
        options["prober"] = make_prober(PartSpec.model_validate(options.get("prober", "replay")), world)
    return options


def play(
    cell: Cell,
    settings: ScheduleSettings,
    watch: Callable[[CellSetup, int, Episode], None] | None = None,
    service: Service | None = None,
) -> Iterator[dict[str, Any]]:
    """Play a cell: construction first, if there is one, then the test.

    The world is seeded once a stage, for maps and drift; every episode then begins with a stream of its own.

    Args:
        cell: the cell.
        settings: what the experiment says about its schedule.
        watch: told about every episode when it is over, with its number.
        service: through which language models are asked, if there are any.

    Yields:
        One row an episode, with the fields of `drift_agents.experiment.logs.FIELDS`.
    """
    setup = make_setup(cell, settings, service)
    judge = EpisodeEvaluator(setup)
    for index, lived in enumerate(chain(_construct(setup), _test(setup, cell.seed))):
        episode = lived.episode
        if setup.extra is not None and isinstance(setup.agent, (Agent, TeamAgent)):
            probes = setup.extra.play(setup.agent)
            episode = replace(episode, probes=probes, usage=episode.usage + setup.extra.meter.take())
        if watch is not None:
            watch(setup, index, episode)
        yield _row(cell, setup, lived._replace(episode=episode), index, judge)


class _Lived(NamedTuple):
    """An episode that has just ended, its stage and its number in its phase."""

    stage: str
    round: int
    episode: Episode


def _construct(setup: CellSetup) -> Iterator[_Lived]:
    """Play the construction; an agent may play a task several times."""
    if setup.construction is None:
        return
    setup.world.env.reset(seed=setup.construction.world_seed)
    with _other_policy(setup):
        for task in setup.construction.tasks:
            setup.stage, setup.stream = CONSTRUCT, task.seed
            options = {"drift_clock": "continue", "drift_tick": 0, **task.options}
            if isinstance(setup.agent, TeamAgent):
                episodes = setup.agent.construct_episode(setup.world, seed=task.seed, options=options)
            else:
                episodes = [setup.agent.run_episode(setup.world, seed=task.seed, options=options)]
            for episode in episodes:
                yield _Lived(CONSTRUCT, task.round, episode)


@contextmanager
def _other_policy(setup: CellSetup) -> Iterator[None]:
    """Let somebody else decide, where memory is to be built by another policy."""
    if setup.constructor is None or not isinstance(setup.agent, Agent):
        yield
        return
    own, setup.agent.policy = setup.agent.policy, setup.constructor
    try:
        yield
    finally:
        setup.agent.policy = own


def _test(setup: CellSetup, seed: int) -> Iterator[_Lived]:
    """Play the schedule."""
    if setup.frozen and isinstance(setup.agent, (Agent, TeamAgent)):
        agent = setup.agent.agent if isinstance(setup.agent, TeamAgent) else setup.agent
        agent.memory = freeze(setup.memory)
    world = setup.world
    world.env.reset(seed=seed)
    phase, number = None, 0
    for planned in setup.episodes:
        options: dict[str, Any] = {"drift_clock": "continue"}
        if planned.tick is not None or planned.episode == 0:
            options["drift_tick"] = planned.tick or 0
        setup.stage, setup.stream = TEST, episode_seed(seed, planned.episode)
        episode = setup.agent.run_episode(world, seed=setup.stream, options=options)
        number = number + 1 if world.phase == phase else 1
        phase = world.phase
        yield _Lived(TEST, number, episode)


def _row(cell: Cell, setup: CellSetup, lived: _Lived, index: int, judge: EpisodeEvaluator) -> dict[str, Any]:
    """The row of an episode that has just ended."""
    memory, verifier, policy = cell.labels
    controller, team = cell.way.labels
    episode = lived.episode
    audited = judge.audit.note(episode, setup.memory)
    judged, noticed = judge.truth.judge(episode, setup.memory), judge.noticing.note(episode, setup.memory)
    return {
        "env": setup.schedule.env,
        "schedule": setup.schedule.name,
        "schedule_hash": setup.schedule.content_hash(),
        "memory": memory,
        "verifier": verifier,
        "controller": controller,
        "team": team,
        "policy": policy,
        "seed": cell.seed,
        "stage": lived.stage,
        "episode": index,
        "round": lived.round,
        "phase": setup.world.phase.id,
        "tick": setup.world.start,
        "success": episode.score >= SUCCESS,
        "score": episode.score,
        "steps": episode.steps,
        "probe_steps": episode.probes.steps,
        "probe_resets": episode.probes.resets,
        "probe_falls": episode.probes.falls,
        "probe_purchases": episode.probes.purchases,
        "surprises": episode.surprises,
        "realignments": episode.realignments,
        "false_realignments": judged.false_realignments,
        "detected": noticed.phase,
        "detection_delay": noticed.delay,
        "exposures": noticed.exposures,
        "memory_size": judged.memory_size,
        "memory_truth_rate": judged.memory_truth_rate,
        "items": audited.items,
        "item_truth_rate": audited.truth,
        "shared_hits": audited.shared,
        "private_hits": audited.private,
        "invalid_actions": episode.invalid_actions,
        **episode.usage._asdict(),
        "refreshes": episode.refreshes,
        "tokens_estimated": episode.tokens_estimated,
        "regret": judged.regret,
    }
