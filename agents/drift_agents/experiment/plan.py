"""What an experiment consists of: cells, and the episodes of each.

* `Cell` - one agent or reference on one schedule with one seed: played on its own, written to its own file
* `DecisionSetup` - how the agent of a cell decides: controller and team
* `with_overrides` - a part with what is different of it on one schedule
* `plan_cells` - the cells of an experiment, in the order of the merged log
* `PlannedEpisode` - one episode: its round, phase and tick as far as they are known beforehand
* `plan_episodes` - the episodes of a schedule
"""

from __future__ import annotations

import hashlib
import math
import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

from drift_agents.errors import ExperimentError
from drift_agents.experiment.config import (
    DIRECT,
    SOLO,
    Agents,
    Experiment,
    Options,
    PartSpec,
    ScheduleSettings,
    SweptValue,
)
from drift_envs.schedule.model import Schedule
from drift_envs.schedule.timeline import Timeline

NO_PART = PartSpec(name="none")
MOST_CELLS = 1_000_000
"""The most cells of an experiment, each with a file of its own."""

_LONGEST = 160  # file systems end at 255 bytes


class DecisionSetup(NamedTuple):
    """How an agent decides; by default one agent queries memory once and calls the policy once.

    Args:
        controller: how one decision is made.
        team: the team.
        labels: how lines call both.
    """

    controller: PartSpec = DIRECT
    team: PartSpec = SOLO
    labels: tuple[str, str] = (DIRECT.name, SOLO.name)

    @property
    def non_default_labels(self) -> tuple[str, ...]:
        """The labels that differ from the defaults, which files and tables leave out."""
        return tuple(label for label, usual in zip(self.labels, DecisionSetup().labels, strict=True) if label != usual)


DEFAULT_DECISION = DecisionSetup()


@dataclass(frozen=True)
class Cell:
    """One agent or reference on one schedule with one seed.

    Args:
        schedule: as the experiment names it.
        memory: what is remembered.
        verifier: the verifier; for the references `oracle_realign`, `oracle_reset` and
            `oracle_truth` it carries their name.
        policy: the policy; for `clairvoyant` it carries its name.
        seed: of the environment, the drift and the agent.
        labels: how lines call memory, verifier and policy.
        reference: the reference that this is, if it is one.
        change: what a sweep gives the schedule, if there is one.
        decision: how the agent decides.
    """

    schedule: str
    memory: PartSpec
    verifier: PartSpec
    policy: PartSpec
    seed: int
    labels: tuple[str, str, str]
    reference: str | None = None
    change: SweptValue | None = None
    decision: DecisionSetup = DEFAULT_DECISION

    @property
    def place(self) -> str:
        """What is played there: the schedule, and what a sweep makes of it."""
        return self.schedule if self.change is None else f"{self.schedule}/{self.change.label}"

    @property
    def agent_entropy(self) -> tuple[int, ...]:
        """What the agent's seed is made of: the cell's seed, and an environment that a sweep sets.

        Environments that are nearly alike, as pages of one kind, would otherwise repeat an agent's luck, and count as
        more instances than they are. Every other value is compared with equal luck.
        """
        if self.change is None or self.change.path != "env":
            return (self.seed,)
        return self.seed, zlib.crc32(str(self.change.value).encode())

    @property
    def key(self) -> str:
        """The name of its file, without the ending."""
        words = [self.place, *self.labels, *self.decision.non_default_labels]
        text = "--".join(re.sub(r"[^A-Za-z0-9_.=-]+", "-", word).strip("-.") for word in words)
        if len(text) > _LONGEST:
            text = f"{text[:_LONGEST]}-{hashlib.sha256('|'.join(words).encode()).hexdigest()[:8]}"
        return f"{text}--{self.seed}"


def plan_cells(experiment: Experiment) -> tuple[Cell, ...]:
    """The cells of an experiment: by schedule and sweep, then agent by agent as the file has them, then by seed.

    Args:
        experiment: a checked experiment.

    Raises:
        ExperimentError: if two cells would write the same file, or there are more than `MOST_CELLS`.
    """
    _check_size(experiment)
    cells = [
        Cell(
            schedule,
            memory,
            verifier,
            policy,
            seed,
            labels,
            reference,
            change,
            decision,
        )
        for schedule in experiment.schedules
        for change in experiment.changes(schedule)
        for memory, verifier, policy, labels, reference, decision in _players(
            experiment, experiment.settings_of(schedule)
        )
        for seed in experiment.seeds_of(schedule)
    ]
    seen: dict[str, Cell] = {}
    for cell in cells:
        other = seen.setdefault(cell.key.lower(), cell)
        if other is not cell:
            raise ExperimentError(
                f"{experiment.name}: two agents would be written to the same file {cell.key}.jsonl: "
                f"{other.place} {other.labels} and {cell.place} {cell.labels}"
            )
    return tuple(cells)


def _check_size(experiment: Experiment) -> None:
    """Refuse an experiment that is too large before its cells are made."""
    agents = sum(
        math.prod(len(getattr(block, axis)) for axis in type(block).model_fields) for block in experiment.agents
    )
    agents += len(experiment.references)
    count = sum(
        agents * len(experiment.changes(schedule)) * len(experiment.seeds_of(schedule))
        for schedule in experiment.schedules
    )
    if count > MOST_CELLS:
        raise ExperimentError(
            f"{experiment.name}: should have at most {MOST_CELLS} cells (agents times schedules times seeds). "
            f"Received {count}"
        )


class _Player(NamedTuple):
    """An agent or a reference, with fields as `Cell` has them."""

    memory: PartSpec
    verifier: PartSpec
    policy: PartSpec
    labels: tuple[str, str, str]
    reference: str | None
    decision: DecisionSetup


def _players(experiment: Experiment, settings: ScheduleSettings) -> list[_Player]:
    """All players of a schedule: each memory's agents and its references, then those without memory."""
    beside = {axis: parts_of(experiment.agents, axis) for axis in Agents.model_fields}
    players: dict[tuple[str, ...], _Player] = {}

    def add(
        memory: PartSpec, verifier: PartSpec, policy: PartSpec, reference: str | None, decision: DecisionSetup
    ) -> None:
        labels = (
            memory.label(beside["memory"]),
            verifier.label(beside["verifier"]),
            policy.label(beside["policy"]),
        )
        player = _Player(
            with_overrides(memory, settings.memory, labels[0]),
            with_overrides(verifier, settings.verifier, labels[1]),
            with_overrides(policy, settings.policy, labels[2]),
            labels,
            reference,
            decision,
        )
        players.setdefault((*labels, *decision.labels), player)

    for agents in experiment.agents:
        for policy, team, controller in product(agents.policy, agents.team, agents.controller):
            decided_by = (controller.label(beside["controller"]), team.label(beside["team"]))
            decision = DecisionSetup(
                with_overrides(controller, settings.controller, decided_by[0]),
                with_overrides(team, settings.team, decided_by[1]),
                decided_by,
            )
            for memory in agents.memory:
                for verifier in agents.verifier if memory.name != "none" else [NO_PART]:
                    add(memory, verifier, policy, None, decision)
                if memory.name != "none":
                    for name in ("oracle_realign", "oracle_reset", "oracle_truth"):
                        if name in experiment.references:
                            add(memory, PartSpec(name=name), policy, name, decision)
    if "clairvoyant" in experiment.references:
        add(NO_PART, NO_PART, PartSpec(name="clairvoyant"), "clairvoyant", DecisionSetup())
    return list(players.values())


def parts_of(blocks: Iterable[Agents], axis: str) -> list[PartSpec]:
    """The distinct parts of one axis in all blocks of agents; their labels tell them apart.

    Args:
        blocks: the blocks.
        axis: `memory`, `verifier`, `controller`, `team` or `policy`.
    """
    parts = [part for agents in blocks for part in getattr(agents, axis)]
    return [part for index, part in enumerate(parts) if part not in parts[:index]]


def with_overrides(part: PartSpec, changes: Mapping[str, Options], label: str) -> PartSpec:
    """A part with what is different of it on one schedule.

    Args:
        part: as a block of agents names it.
        changes: name or label -> options, as a schedule's `environments` entry gives them; options given for the label
            are laid over those given for the name.
        label: the part's label.

    Example:
        >>> part = PartSpec(name="forget", options={"persistence": 2})
        >>> changes = {"forget": {"minimum": 4, "epsilon": 0.2}, "forget(persistence=2)": {"minimum": 9}}
        >>> with_overrides(part, changes, "forget(persistence=2)").options
        {'persistence': 2, 'minimum': 9, 'epsilon': 0.2}
    """
    changed = {**changes.get(part.name, {}), **changes.get(label, {})}
    return PartSpec(name=part.name, options={**part.options, **changed}) if changed else part


class PlannedEpisode(NamedTuple):
    """One episode.

    Args:
        episode: its number in the cell, from 0.
        round: its number in its phase, from 1; `None` if only playing shows it.
        phase: the phase's id; `None` if only playing shows it.
        tick: the tick to jump to; `None` where time simply goes on.
    """

    episode: int
    round: int | None = None
    phase: str | None = None
    tick: int | None = None


def plan_episodes(schedule: Schedule, timeline: Timeline, settings: ScheduleSettings) -> tuple[PlannedEpisode, ...]:
    """The episodes of a schedule.

    With `rounds` the first so many episodes of every phase are played; each is jumped to, so that a
    phase of fifty episodes can be played for twenty. With `episodes` time goes on as it does.

    Args:
        schedule: the schedule.
        timeline: its timeline.
        settings: says how long it is played.

    Raises:
        ExperimentError: if the schedule's phases have no fixed episodes, or a phase holds fewer.
    """
    if settings.episodes is not None:
        return tuple(PlannedEpisode(episode) for episode in range(settings.episodes))
    rounds = settings.rounds or 0
    odd = [f"its clock is `{schedule.clock}`"] if schedule.clock != "episode" else []
    odd += [f"the drift {drift.name!r} has {_odd_keys(drift)}" for drift in schedule.drifts if _odd_keys(drift)]
    if odd:
        raise ExperimentError(
            f"{schedule.name}: `rounds` needs phases with fixed episodes, that is `clock: episode` and drifts with "
            f"a plain `at`, but {odd[0]}. Give this schedule `episodes` instead: "
            f"environments: {{{schedule.name}: {{episodes: N}}}}"
        )
    stop = max((drift.at or 0 for drift in schedule.drifts), default=0) + 1
    planned: list[PlannedEpisode] = []
    for phase in timeline.phases(stop):
        if phase.stop - phase.start < rounds:
            raise ExperimentError(
                f"{schedule.name}: `rounds` should be at most the episodes of the shortest phase. "
                f"Received {rounds}, phase {phase.id!r} holds {phase.stop - phase.start}"
            )
        for index in range(rounds):
            planned.append(PlannedEpisode(len(planned), index + 1, phase.id, phase.start + index))
    return tuple(planned)


def _odd_keys(drift: Any) -> str:
    keys = [("every", drift.every), ("rate", drift.rate), ("for", drift.duration), ("jitter", drift.jitter or None)]
    return " and ".join(f"`{name}`" for name, value in keys if value is not None)
