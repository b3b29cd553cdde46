"""A run of coding agents: what is played, its folder, and its lines.

Beside what every run has (`drift_agents.experiment.folder`) the folder holds `coder/`: for each agent `AGENT.jsonl`, a
line an episode as `import-lines` reads it, and by agent and seed the output of its commands, the steps, what it kept
after the last episode, and the maintainers' repository.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from drift_agents.errors import ArgumentError, ExperimentError
from drift_agents.experiment.coder.files import walk
from drift_agents.experiment.coder.git import git
from drift_agents.experiment.coder.lifetime import CoderRules, LifetimeFolder, play_lifetime
from drift_agents.experiment.coder.place import CodingAgent
from drift_agents.experiment.coder.process import CommandLimits
from drift_agents.experiment.coder.world import CoderWorld
from drift_agents.experiment.config import hash_content
from drift_agents.experiment.folder import CODER, RunFolder, describe_schedule, versions
from drift_agents.experiment.own_lines import OWN_LOOP, add_rows
from drift_agents.experiment.trace import TraceHeader
from drift_agents.interruption import interruptible, uninterrupted
from drift_envs.schedule.loader import load_schedule

CONTROL = " without memory"
"""The ending of an agent's name where memory is set back before each episode."""

_NAME = re.compile(r"[\w.+-]{1,40}")


@dataclass(frozen=True)
class CoderRun:
    """What is played.

    Args:
        agents: who plays; their names differ.
        schedule: the name of a shipped schedule of `DriftRepository-v0`, or a file.
        seeds: the instances: each is a repository of its own where the schedule names none.
        episodes: how many of each.
        attempts: submissions of an episode.
        time_limit: seconds of a command.
        most_bytes: of the folders that an agent writes to, together.
        has_control: whether each agent plays once more with memory set back before each episode.
        seed_memory: a folder whose files stand in the first work tree; `None` for nothing.
    """

    agents: tuple[CodingAgent, ...]
    schedule: str
    seeds: tuple[int, ...] = (0,)
    episodes: int = 40
    attempts: int = 3
    time_limit: float = 900.0
    most_bytes: int = 2**30
    has_control: bool = False
    seed_memory: Path | None = None

    def __post_init__(self) -> None:
        if not 0 < self.time_limit < math.inf:
            raise ArgumentError(f"`time_limit` should be above 0. Received {self.time_limit:g}")
        names = [agent.name for agent in self.agents]
        for name in names:
            if not _NAME.fullmatch(name) or names.count(name) > 1:
                raise ExperimentError(
                    "`name` of an agent should be up to 40 letters, digits and `.+-_`, another one for each agent. "
                    f"Received {name!r}"
                )
        for agent in self.agents:
            for pattern in agent.keep:
                if "/" in pattern or agent.keeps(".git"):
                    raise ExperimentError(
                        "`keep` should name files and folders at the top of the work tree, without `/`, and not .git. "
                        f"Received {pattern!r}"
                    )
        if self.seed_memory is not None:
            foreign = [file.path for file in walk(self.seed_memory) if not self.agents[0].keeps(file.path)]
            if not self.seed_memory.is_dir() or foreign:
                raise ExperimentError(
                    f"{self.seed_memory}: should be a folder of files that --keep names. "
                    f"Received {foreign[0] if foreign else 'no folder'}"
                )

    @property
    def players(self) -> list[tuple[CodingAgent, bool]]:
        """Who plays, and whether as a control, with the name of that row."""
        played = [(agent, False) for agent in self.agents]
        if self.has_control:
            played += [(agent._replace(name=f"{agent.name}{CONTROL}"), True) for agent in self.agents]
        return played

    def describe(self) -> dict[str, Any]:
        """The experiment as plain data: names of environment variables, and no values."""
        seeded = {}
        if self.seed_memory is not None:
            for file in walk(self.seed_memory):
                with file.open() as opened:
                    seeded[file.path] = hashlib.sha256(opened.read()).hexdigest()
        return {
            "coders": [json.loads(json.dumps(agent._asdict())) for agent in self.agents],
            "schedule": self.schedule, "seeds": list(self.seeds), "episodes": self.episodes,
            "attempts": self.attempts, "time_limit": self.time_limit, "most_bytes": self.most_bytes,
            "control": self.has_control, "seed_memory": seeded,
        }  # fmt: skip


@dataclass
class CoderProgress:
    """Callbacks while a run is played.

    Args:
        note: receives what is worth knowing.
        advance: called after each episode, with the agent's name.
    """

    note: Callable[[str], None] = field(default=lambda text: None)
    advance: Callable[[str], None] = field(default=lambda name: None)


def run_coders(
    run: CoderRun, folder: Path, *, resume: bool = False, fresh: bool = False, progress: CoderProgress
) -> None:
    """Play a run into a folder.

    Args:
        run: what is played.
        folder: where to; it is made if it does not exist.
        resume: continue an existing run: episodes that are finished are not played again.
        fresh: delete an existing run.
        progress: callbacks.

    Raises:
        ArgumentError: if the schedule is of another environment.
        ExperimentError: if the folder cannot be used, git is missing, or a command cannot be started.
    """
    schedule = load_schedule(run.schedule)
    if schedule.env != "DriftRepository-v0" or schedule.clock != "episode":
        raise ArgumentError(
            f"`schedule` should be a schedule of DriftRepository-v0 by episodes. Received {run.schedule!r}"
        )
    git("--version", folder=Path.cwd())
    experiment = run.describe()
    manifest: dict[str, Any] = {
        "name": "check-coder", "config_hash": hash_content(experiment), "versions": versions(),
        "experiment": experiment, "schedules": {schedule.name: describe_schedule(schedule, run.episodes)},
        "players": [],
    }  # fmt: skip
    for agent, _ in run.players:
        about = {"memory": agent.name, "verifier": "none", "controller": "direct", "team": "solo", "policy": OWN_LOOP}
        manifest["players"].append({"schedule": schedule.name, **about, "reference": None, "supervision": "none"})
    limits = CommandLimits(run.time_limit, run.most_bytes)
    with uninterrupted(), RunFolder(folder) as held:
        held.open(manifest, resume=resume, fresh=fresh)
        try:
            for agent, is_control in run.players:
                for seed in run.seeds:
                    stored = LifetimeFolder(folder / CODER, file_name(agent.name), seed)
                    world = CoderWorld(schedule, seed, run.attempts)
                    rules = CoderRules(run.episodes, limits, is_control, run.seed_memory)
                    with interruptible():
                        play_lifetime(agent, world, rules, stored, progress.note, partial(progress.advance, agent.name))
                    _write_trace(folder, agent.name, world, stored)
        except OSError as error:
            where = error.filename or f"{folder} or {tempfile.gettempdir()}"
            raise ExperimentError(f"{where}: cannot be used: {error.strerror or error}") from error
        rows: list[dict[str, Any]] = []
        for agent, _ in run.players:
            read = {"schedules": {}, "players": []} if not rows else {**manifest, "players": []}
            rows += add_rows([log_of(folder, agent.name)], agent.name, read, rows, schedule=run.schedule)
        held.write_rows(rows)


def file_name(agent: str) -> str:
    """What an agent is called in names of files."""
    return agent.replace(" ", "-")


def log_of(folder: Path, agent: str) -> Path:
    """The lines of an agent."""
    return folder / CODER / f"{file_name(agent)}.jsonl"


def _write_trace(folder: Path, name: str, world: CoderWorld, stored: LifetimeFolder) -> None:
    """The steps of a lifetime, for `inspect`."""
    schedule = world.schedule
    parts = (str(schedule.env), schedule.name, name, "none", OWN_LOOP, world.seed, "all", schedule.to_dict())
    header = json.dumps(TraceHeader(*parts)._asdict(), ensure_ascii=False)
    path = folder / "traces" / f"{file_name(name)}-{world.seed}.jsonl.gz"
    path.parent.mkdir(exist_ok=True)
    with open(path, "wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
        packed.write(f"{header}\n".encode())
        with open(stored.steps, "rb") as steps:
            shutil.copyfileobj(steps, packed)
