"""What an experiment consists of: the cells, the members of their teams, and the episodes of each cell.

Without a language model, "heterogeneous" members are planners with different declared options: they take different
risks, resolve contradictions differently, and inspect more or fewer articles.
"""

from __future__ import annotations

import hashlib
import math
import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

from pydantic import ValidationError

from drift_agents.errors import ArgumentError, ExperimentError, UnknownNameError
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
    def who(self) -> dict[str, str]:
        """The label of every part."""
        labels = (*self.labels, *self.decision.labels)
        return dict(zip(("memory", "verifier", "policy", "controller", "team"), labels, strict=True))

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

    Raises:
        ExperimentError: if two cells would write the same file, or there are more than `MOST_CELLS`.
    """
    _check_size(experiment)
    cells = [
        replace(player, change=change, seed=seed)
        for schedule in experiment.schedules
        for change in experiment.changes(schedule)
        for player in _players(experiment, schedule)
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


def _players(experiment: Experiment, schedule: str) -> list[Cell]:
    """A cell of each player: each memory's agents and its references, then those without memory."""
    settings, seed = experiment.settings_of(schedule), experiment.seeds_of(schedule)[0]
    beside = {axis: parts_of(experiment.agents, axis) for axis in Agents.model_fields}
    players: dict[tuple[str, ...], Cell] = {}

    def add(
        memory: PartSpec, verifier: PartSpec, policy: PartSpec, reference: str | None, decision: DecisionSetup
    ) -> None:
        labels = (
            memory.label(beside["memory"]),
            verifier.label(beside["verifier"]),
            policy.label(beside["policy"]),
        )
        parts = (
            with_overrides(memory, settings.memory, labels[0]),
            with_overrides(verifier, settings.verifier, labels[1]),
            with_overrides(policy, settings.policy, labels[2]),
        )
        cell = Cell(schedule, *parts, seed, labels, reference, decision=decision)
        players.setdefault((*labels, *decision.labels), cell)

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


def plan_episodes(timeline: Timeline, settings: ScheduleSettings) -> tuple[PlannedEpisode, ...]:
    """The episodes of a schedule.

    With `rounds` the first so many episodes of every phase are played; each is jumped to, so that a
    phase of fifty episodes can be played for twenty. With `episodes` time goes on as it does.

    Args:
        timeline: of the schedule.
        settings: says how long it is played.

    Raises:
        ExperimentError: if the schedule's phases have no fixed episodes, or a phase holds fewer.
    """
    if settings.episodes is not None:
        return tuple(PlannedEpisode(episode) for episode in range(settings.episodes))
    try:
        found = timeline.rounds(settings.rounds or 0)
    except ArgumentError as error:
        name = timeline.schedule.name
        raise ExperimentError(f"{name}: {error}. In the file: environments: {{{name}: {{episodes: N}}}}") from error
    return tuple(
        PlannedEpisode(number, 1 + tick - phase.start, phase.id, tick) for number, (phase, tick) in enumerate(found)
    )


MEMBERS = "members"
"""The option of a team that names who belongs to it; all its other options are the team's own."""

_KEYS = {"name", "policy", "errs"}


class MemberSpec(NamedTuple):
    """One of a team.

    Args:
        name: how the team calls it.
        policy: who acts.
        errs: how often a judgement of its turns out the wrong way round, where rules judge.
    """

    name: str
    policy: PartSpec
    errs: float = 0.0


def read_members(team: PartSpec) -> tuple[MemberSpec, ...]:
    """All members that a team names; none where the cell's policy is the only one.

    Args:
        team: its option `members` is a list, or the name of a pool (`drift_agents.experiment.plan`);
            each entry is a policy (a name, or one name with its
            options), or `{policy: ..., name: ..., errs: ...}`, where `name` and `errs` may be left out.

    Raises:
        ArgumentError: if an entry is neither, or there is none.
        UnknownNameError: if there is no pool of that name.

    Example:
        >>> members = ["random", {"policy": "planner", "name": "p", "errs": 0.1}]
        >>> team = PartSpec(name="judge", options={"members": members})
        >>> [(spec.name, spec.policy.name, spec.errs) for spec in read_members(team)]
        [('random', 'random', 0.0), ('p', 'planner', 0.1)]
    """
    entries = team.options.get(MEMBERS, [])
    if isinstance(entries, str):
        if entries not in POOLS:
            raise UnknownNameError("pool of members", entries, POOLS)
        entries = POOLS[entries]
    if not isinstance(entries, (list, tuple)) or (MEMBERS in team.options and not entries):
        raise ArgumentError(
            f"`members` of the team {team.name!r} should be a list of policies, or one of {', '.join(POOLS)}. "
            f"Received {entries!r}"
        )
    plain = [entry if is_spec(entry) else {"policy": entry} for entry in entries]
    try:
        parts = [PartSpec.model_validate(entry["policy"]) for entry in plain]
    except ValidationError as error:
        raise ArgumentError(
            f"`members` of the team {team.name!r} should be policies, or `{{policy: ..., name: ..., errs: ...}}`. "
            f"Received {entries!r}"
        ) from error
    distinct = [part for index, part in enumerate(parts) if part not in parts[:index]]
    return tuple(
        MemberSpec(str(entry.get("name", part.label(distinct))), part, entry.get("errs", 0.0))
        for entry, part in zip(plain, parts, strict=True)
    )


def is_spec(entry: object) -> bool:
    """Whether an entry says more of a member than its policy.

    Args:
        entry: of the option `members`.

    Example:
        >>> is_spec({"policy": "random", "name": "r"}), is_spec({"planner": {"conflict": "newest"}}), is_spec("random")
        (True, False, False)
    """
    return isinstance(entry, Mapping) and "policy" in entry and set(entry) <= _KEYS


ERRS = 0.3
"""How often a judgement of the pool `erring` turns out the wrong way round; declared, not measured."""

_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "bold": {
        "frozen_lake": {"risk": 0.9},
        "webshop": {"looks": 1},
        "house": {"explores": False},
        "tools": {"checks": False},
        "tau2": {"checks": False},
    },
    "careful": {"frozen_lake": {"risk": 0.4}, "webshop": {"looks": 6}},
    "newest": {"conflict": "newest"},
    "literal": {"frozen_lake": {"generalise": False}, "webshop": {"looks": 2}, "house": {"common_sense": False}},
}
_BLIND: Mapping[str, Any] = {
    "frozen_lake": {"risk": 0.2, "generalise": False, "aspiration": False},
    "webshop": {"looks": 0},
}


def _planners(errs: float = 0.0) -> list[dict[str, Any]]:
    return [{"name": name, "policy": {"planner": dict(own)}, "errs": errs} for name, own in _OPTIONS.items()]


POOLS: Mapping[str, list[dict[str, Any]]] = {
    "planners": _planners(),
    "erring": _planners(ERRS),
    "alike": [{"name": f"blind-{number}", "policy": {"planner": dict(_BLIND)}} for number in (1, 2, 3, 4)],
    "weak": [*_planners()[:3], {"name": "weak", "policy": "random", "errs": 0.5}],
}
"""`planners`: four different ones whose judgement does not err. `erring`: the same, and each judgement
errs with probability `ERRS`. `alike`: four that share every failure (EDV, appendix G: consensus bias).
`weak`: three and one who acts and votes at random (appendix G: interference from low-quality agents)."""


DEFAULT_POOL = "planners"
"""The pool of a team that names no members, where the policy is the planner."""
