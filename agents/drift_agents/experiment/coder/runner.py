"""A run of coding agents: its folder and its lines.

Beside what every run has (`drift_agents.experiment.folder`) the folder holds `coder/`: for each agent `AGENT.jsonl`, a
line an episode as `import-lines` reads it, and by agent and seed the output of its commands, the steps, what it kept
after the last episode, and the maintainers' repository.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from drift_agents.errors import ArgumentError, ExperimentError
from drift_agents.experiment.coder.agents import CoderRun
from drift_agents.experiment.coder.git import git
from drift_agents.experiment.coder.lifetime import CoderLifetime, log_of
from drift_agents.experiment.coder.world import CoderWorld
from drift_agents.experiment.config import hash_content
from drift_agents.experiment.folder import RunFolder, describe_schedule, versions
from drift_agents.experiment.own_lines import OWN_LOOP, add_rows
from drift_agents.interruption import interruptible, uninterrupted
from drift_envs.schedule.loader import load_schedule


def run_coders(
    run: CoderRun,
    folder: Path,
    *,
    resume: bool = False,
    fresh: bool = False,
    note: Callable[[str], None] = lambda text: None,
    advance: Callable[[str], None] = lambda name: None,
) -> None:
    """Play a run into a folder.

    Args:
        run: what is played.
        folder: where to; it is made if it does not exist.
        resume: continue an existing run: episodes that are finished are not played again.
        fresh: delete an existing run.
        note: receives what is worth knowing.
        advance: called after each episode, with the agent's name.

    Raises:
        ArgumentError: if the schedule is of another environment.
        ExperimentError: if the folder cannot be used, git is missing, or a command cannot be started.
    """
    schedule = load_schedule(run.schedule)
    if schedule.env != "DriftRepository-v0" or schedule.clock != "episode":
        raise ArgumentError(
            f"`schedule` should be a schedule of DriftRepository-v0 by episodes. Received {run.schedule!r}"
        )
    for path in CoderWorld(schedule, run.seeds[0], run.attempts).files:
        if any(agent.keeps(path) for agent in run.agents):
            raise ExperimentError(f"`keep` should name nothing that the project has itself. Received a name of {path}")
    git("--version", folder=Path.cwd())
    experiment = run.describe()
    manifest: dict[str, Any] = {
        "name": "check-coder", "config_hash": hash_content(experiment), "versions": versions(),
        "experiment": experiment, "schedules": {schedule.name: describe_schedule(schedule, run.episodes)},
        "players": [],
    }  # fmt: skip
    for agent in run.players:
        about = {"memory": agent.name, "verifier": "none", "controller": "direct", "team": "solo", "policy": OWN_LOOP}
        manifest["players"].append({"schedule": schedule.name, **about, "reference": None, "supervision": "none"})
    with uninterrupted(), RunFolder(folder) as held:
        held.open(manifest, resume=resume, fresh=fresh)
        try:
            for agent in run.agents:
                if not agent.reads_task:
                    note(f"{agent.name}: the command has neither {{task}} nor {{task_file}}: it is not told its issue")
            for agent in run.players:
                for seed in run.seeds:
                    lifetime = CoderLifetime(run, agent, schedule, seed, held, note)
                    with interruptible():
                        lifetime.play(partial(advance, agent.name))
        except OSError as error:
            where = error.filename or f"{folder} or {tempfile.gettempdir()}"
            raise ExperimentError(f"{where}: cannot be used: {error.strerror or error}") from error
        rows: list[dict[str, Any]] = []
        for agent in run.players:
            read = {"schedules": {}, "players": []} if not rows else {**manifest, "players": []}
            rows += add_rows([log_of(folder, agent.name)], agent.name, read, rows, schedule=run.schedule)
        held.write_rows(rows)
