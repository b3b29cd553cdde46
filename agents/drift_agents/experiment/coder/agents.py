"""What is played: coding agents, by their commands, and a run of several."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from drift_agents.errors import ArgumentError, ExperimentError, UnknownNameError
from drift_agents.experiment.coder.files import walk

KEEP = ("CLAUDE.md", "AGENTS.md", "GEMINI.md", "MEMORY.md", ".claude", ".codex", ".memory")
"""What stays of the work tree, by default."""

CONTROL = " without memory"
"""The ending of an agent's name where memory is set back before each episode."""

PLACEHOLDERS = ("task", "task_file", "log", "log_file", "usage_file")
WRAP_PLACEHOLDERS = ("place", "work", "home")

_NAME = re.compile(r"[\w.+-]{1,40}")
_SHORTEST_KEY = 6


class CodingAgent(NamedTuple):
    """A coding agent.

    Args:
        name: in tables.
        command: the program and its arguments; `PLACEHOLDERS` in braces are replaced.
        is_shell: whether the command is one text for a shell.
        wrap: words that stand before the command, with `{place}`, `{work}` and `{home}`.
        memory_command: a shell command that prints what a memory service holds; empty without one.
        env: names of environment variables that are handed on.
        has_own_home: whether `HOME` and the like are the user's.
        keep: names, or patterns of names, in the work tree that stay from episode to episode.
    """

    name: str
    command: tuple[str, ...]
    is_shell: bool = False
    wrap: tuple[str, ...] = ()
    memory_command: str = ""
    env: tuple[str, ...] = ()
    has_own_home: bool = False
    keep: tuple[str, ...] = KEEP

    def keeps(self, path: str) -> bool:
        """Whether a path of the work tree stays."""
        top = path.partition("/")[0]
        return any(fnmatchcase(top, pattern) for pattern in self.keep)

    def check(self) -> None:
        """Refuse an agent that cannot be played.

        Raises:
            UnknownNameError: if a word in braces is nearly a placeholder.
            ExperimentError: if its name, or a name in `keep`, cannot be used.
        """
        for words, known in ((self.command, PLACEHOLDERS), (self.wrap, WRAP_PLACEHOLDERS)):
            for name in re.findall(r"(?<!\$)\{([\w-]+)\}", " ".join(words)):
                # Other braces are the command's own.
                if name not in known and get_close_matches(name.lower().replace("-", "_"), known):
                    raise UnknownNameError("placeholder", name, known)
        if not _NAME.fullmatch(self.name):
            raise ExperimentError(
                f"`name` of an agent should be up to 40 letters, digits and `.+-_`. Received {self.name!r}"
            )
        for pattern in self.keep:
            if "/" in pattern or self.keeps(".git"):
                raise ExperimentError(
                    "`keep` should name files and folders at the top of the work tree, without `/`, and not .git. "
                    f"Received {pattern!r}"
                )

    @property
    def is_control(self) -> bool:
        """Whether memory is set back before each episode."""
        return self.name.endswith(CONTROL)

    @property
    def reads_task(self) -> bool:
        """Whether the command gets the issue."""
        return any(f"{{{name}}}" in word for word in self.command for name in ("task", "task_file"))

    @property
    def reads_log(self) -> bool:
        """Whether the command gets the log of a refusal by itself; else it stands with the task."""
        return any(f"{{{name}}}" in word for word in self.command for name in ("log", "log_file"))

    @property
    def secrets(self) -> list[str]:
        """The values of the variables that are handed on; shorter ones, as `1`, are no keys."""
        return [os.environ[name] for name in self.env if len(os.environ.get(name, "")) >= _SHORTEST_KEY]


def make_reference(name: str) -> CodingAgent:
    """A reference agent, by the name of its program in `drift_agents/envs/repository/coders/`."""
    program = resources.files("drift_agents.envs") / "repository" / "coders" / f"{name}.py"
    return CodingAgent(name, (sys.executable, "-s", str(program), "{task_file}", "{log_file}"))


def find_program(command: Sequence[str], wrap: Sequence[str] = ()) -> tuple[str, ...]:
    """The words of a command; those that are files of the current folder become absolute paths, but for Markdown.

    Args:
        command: the command.
        wrap: the words before it: with them the command's program may exist in a container alone.

    Raises:
        ExperimentError: if there is no such program.
    """
    words = [os.path.abspath(one) if not one.endswith(".md") and os.path.isfile(one) else one for one in command]
    program = [*wrap, *words][0]
    if shutil.which(program) is None:
        hint = ". A command in one text needs --shell" if " " in program else ""
        raise ExperimentError(f"{program}: there is no such program in PATH{hint}")
    return tuple(words)


@dataclass(frozen=True)
class CoderRun:
    """A run of coding agents.

    Args:
        agents: who plays; their names differ.
        schedule: the name of a shipped schedule of `DriftRepository-v0`, or a file.
        seeds: the instances: each is a repository of its own where the schedule names none.
        episodes: how many of each.
        attempts: submissions of an episode.
        time_limit: seconds of a command.
        most_bytes: of the folders that an agent writes to, together; a file counts as at least a block.
        has_control: whether each agent plays once more with memory set back before each episode.
        seed_memory: a folder whose files stand in the first work tree; `None` for nothing.

    Raises:
        ArgumentError: if the limit of time is not above 0.
        ExperimentError: if two agents have one name, or the folder of memory cannot be used.
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
        names = [agent.name.replace(" ", "-") for agent in self.players]  # as they stand in names of files
        for agent in self.agents:
            agent.check()
            if names.count(agent.name) > 1:
                raise ExperimentError(f"`name` of an agent should be that of no other one. Received {agent.name!r}")
        if self.seed_memory is not None:
            kept = {file.path for file in walk(self.seed_memory) if self.agents[0].keeps(file.path)}
            there = [one for one in sorted(self.seed_memory.rglob("*")) if one.is_symlink() or not one.is_dir()]
            foreign = [path for one in there if (path := str(one.relative_to(self.seed_memory))) not in kept]
            if foreign or not self.seed_memory.is_dir():
                raise ExperimentError(
                    f"{self.seed_memory}: should be a folder of files that --keep names, and no links. "
                    f"Received {foreign[0] if foreign else 'no folder'}"
                )

    @property
    def players(self) -> tuple[CodingAgent, ...]:
        """Who plays: the agents, and those that are controls."""
        controls = (agent._replace(name=f"{agent.name}{CONTROL}") for agent in self.agents)
        return (*self.agents, *(controls if self.has_control else ()))

    def describe(self) -> dict[str, Any]:
        """The run as plain data: names of environment variables, and no values."""
        seeded = {}
        for file in [] if self.seed_memory is None else walk(self.seed_memory):
            with file.open() as opened:
                seeded[file.path] = hashlib.sha256(opened.read()).hexdigest()
        data = {
            "coders": [agent._asdict() for agent in self.agents], "schedule": self.schedule, "seeds": self.seeds,
            "episodes": self.episodes, "attempts": self.attempts, "time_limit": self.time_limit,
            "most_bytes": self.most_bytes, "control": self.has_control, "seed_memory": seeded,
        }  # fmt: skip
        described: dict[str, Any] = json.loads(json.dumps(data))
        return described
