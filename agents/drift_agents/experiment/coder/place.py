"""Where a coding agent works: a clone, a home, and what it keeps from episode to episode.

The place stands outside of the run's folder, so that no parent of the work tree holds lines, seeds or checks. It is
made anew for every episode from the maintainers' repository and from a copy of what was kept.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from importlib import resources
from pathlib import Path
from typing import IO, NamedTuple

from drift_agents.errors import ExperimentError, UnknownNameError
from drift_agents.experiment.coder.files import copy_files, measure_size, read_files, remove_folder
from drift_agents.experiment.coder.git import clone
from drift_agents.experiment.coder.process import CommandEnd, CommandLimits, run_command

KEEP = ("CLAUDE.md", "AGENTS.md", "GEMINI.md", "MEMORY.md", ".claude", ".codex", ".memory")
"""What stays of the work tree, by default."""

PLACEHOLDERS = ("task", "task_file", "log", "log_file", "usage_file")
WRAP_PLACEHOLDERS = ("place", "work", "home")

_PLACEHOLDER = re.compile(r"\{(" + "|".join(PLACEHOLDERS) + r")\}")
_WRAP_PLACEHOLDER = re.compile(r"\{(" + "|".join(WRAP_PLACEHOLDERS) + r")\}")
_HOMES = {
    "HOME": "", "XDG_CONFIG_HOME": ".config", "XDG_DATA_HOME": ".local/share", "XDG_STATE_HOME": ".local/state",
    "XDG_CACHE_HOME": ".cache", "XDG_RUNTIME_DIR": ".run", "CLAUDE_CONFIG_DIR": ".claude", "CODEX_HOME": ".codex",
}  # fmt: skip
"""Where programs keep files of a user: variables, and the folders of the run's home."""
_HANDED_ON = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TERM")
_NOT_SUBMITTED = (".git", "__pycache__")
_SHORTEST_KEY = 6
_MOST_SUBMITTED, _MOST_MEMORY = 2**21, 2**22
"""Bytes of the files that are submitted, and of those in which statements are counted; what comes after is left out."""


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

    @property
    def reads_log(self) -> bool:
        """Whether the command gets the log of a refusal by itself; else it stands with the task."""
        return any(f"{{{name}}}" in word for word in self.command for name in ("log", "log_file"))

    @property
    def secrets(self) -> list[str]:
        """The values of the variables that are handed on; shorter ones, as `1`, are no keys."""
        return [os.environ[name] for name in self.env if len(os.environ.get(name, "")) >= _SHORTEST_KEY]


def make_reference(name: str) -> CodingAgent:
    """A reference agent.

    Args:
        name: of its program in `drift_agents/envs/repository/coders/`.
    """
    program = resources.files("drift_agents.envs") / "repository" / "coders" / f"{name}.py"
    return CodingAgent(name, (sys.executable, "-s", str(program), "{task_file}", "{log_file}"))


def find_program(command: Sequence[str], wrap: Sequence[str] = ()) -> tuple[str, ...]:
    """The words of a command; those that are files of the current folder become absolute paths, but for Markdown.

    Args:
        command: the command.
        wrap: the words before it; where there are some, the command's program may exist in a container alone.

    Raises:
        ExperimentError: if there is no such program.
    """
    words = [os.path.abspath(one) if not one.endswith(".md") and os.path.isfile(one) else one for one in command]
    program = [*wrap, *words][0]
    if shutil.which(program) is None:
        raise ExperimentError(f"{program}: there is no such program in PATH")
    return tuple(words)


def check_placeholders(words: Sequence[str], known: Sequence[str]) -> None:
    """Refuse a word in braces that is nearly a placeholder.

    Args:
        words: of a command.
        known: the placeholders that it can have.

    Raises:
        UnknownNameError: if there is one.
    """
    for name in re.findall(r"(?<!\$)\{(\w+)\}", " ".join(words)):
        if name not in known and get_close_matches(name, known):
            raise UnknownNameError("placeholder", name, known)


class CoderPlace:
    """The place of an agent in one lifetime.

    Args:
        agent: who works there.
        key: tells it from the places of other lifetimes; equal keys have equal paths, also when a run goes on, since
            agents keep memories by the path of a project.
        project: the name of the project, that of the clone's folder.
        limits: of the agent's command.
    """

    def __init__(self, agent: CodingAgent, key: str, project: str, limits: CommandLimits) -> None:
        digest = hashlib.sha256(key.encode()).hexdigest()[:12]
        self._agent, self._limits = agent, limits
        self._root = Path(tempfile.gettempdir()).resolve() / f"drift-coder-{digest}"
        self.work, self._home = self._root / project, self._root / "home"
        self._tmp, self._told = self._root / "tmp", self._root / "episode"

    def prepare(self, repository: Path, memory: Path) -> None:
        """Make everything anew: the clone, and what was kept.

        Args:
            repository: of the maintainers.
            memory: the folder with what was kept, see `keep`.
        """
        remove_folder(self._root)
        self._root.mkdir(mode=0o700)
        for folder in (self._home, self._tmp, self._told):
            folder.mkdir()
        self._fill(repository, memory / "work")
        copy_files(memory / "home", self._home)

    def _fill(self, repository: Path, kept: Path) -> None:
        clone(repository, self.work)
        copy_files(kept, self.work)
        exclude = self.work / ".git" / "info"  # what is kept is not the project's
        exclude.mkdir(exist_ok=True)
        (exclude / "exclude").write_text("".join(f"/{name}\n" for name in self._agent.keep), "utf-8")

    def run(self, task: str, log: str, output: IO[bytes], repository: Path, memory: Path) -> CommandEnd:
        """Have the agent work."""
        if not self.work.is_dir() or self.work.is_symlink():  # deleted in an attempt before
            remove_folder(self.work)
            self._fill(repository, memory / "work")
        told = {"task": task, "log": log}
        remove_folder(self._told)
        self._told.mkdir()
        for name in told:
            (self._told / f"{name}.md").write_text(told[name], "utf-8")
        values = {**told, "task_file": f"{self._told}/task.md", "log_file": f"{self._told}/log.md"}
        values["usage_file"] = f"{self._told}/usage.json"
        return self._run(self.fill_in(values), output)

    def fill_in(self, values: Mapping[str, str]) -> list[str]:
        """The agent's command with these values of its placeholders."""
        agent = self._agent
        if agent.is_shell:
            # The values are variables of the shell, so that it reads none of them as a command.
            given = "".join(f"{name}={shlex.quote(value)}; " for name, value in values.items())
            return [*self._wrap(), "sh", "-c", given + _PLACEHOLDER.sub(r"${\1}", agent.command[0])]
        return [*self._wrap(), *(_PLACEHOLDER.sub(lambda found: values[found[1]], word) for word in agent.command)]

    def _wrap(self) -> list[str]:
        paths = {"place": self._root, "work": self.work, "home": self._home}
        return [_WRAP_PLACEHOLDER.sub(lambda found: str(paths[found[1]]), word) for word in self._agent.wrap]

    def _run(self, command: Sequence[str], output: IO[bytes]) -> CommandEnd:
        names = (*_HANDED_ON, *self._agent.env, *(_HOMES if self._agent.has_own_home else ()))
        environment = {name: os.environ[name] for name in names if name in os.environ}
        if not self._agent.has_own_home:
            environment = {name: str(self._home / folder) for name, folder in _HOMES.items()} | environment
        environment["TMPDIR"] = str(self._tmp)
        watched = [self.work, self._home, self._tmp, self._told]
        secrets = self._agent.secrets
        return run_command(command, self.work, environment, output, self._limits, watched=watched, secrets=secrets)

    def read_usage(self) -> str:
        """The content of the file that the agent may write its usage to."""
        return read_files(self._told, lambda path: path == "usage.json", 2**16).get("usage.json", "")

    def read_submission(self) -> dict[str, str]:
        """The files of the work tree that are not kept, by path."""

        def is_submitted(path: str) -> bool:
            return path.rpartition("/")[2] not in _NOT_SUBMITTED and not self._agent.keeps(path)

        return read_files(self.work, is_submitted, _MOST_SUBMITTED)

    def read_memory(self, note: Callable[[str], None]) -> dict[str, str]:
        """The texts of what is kept: files of the work tree, Markdown of the home, what the memory's command prints.

        Args:
            note: receives how the memory's command failed, if it did.
        """
        found = read_files(self.work, self._agent.keeps, _MOST_MEMORY)
        if not self._agent.has_own_home:
            at_home = read_files(self._home, lambda path: "node_modules" not in path, _MOST_MEMORY, ending=".md")
            found |= {f"~/{path}": text for path, text in at_home.items()}
        if self._agent.memory_command:
            with tempfile.TemporaryFile() as output:
                end = self._run([*self._wrap(), "sh", "-c", self._agent.memory_command], output)
                if end.stopped or end.status:
                    note(f"the memory's command: {end.stopped or f'exit status {end.status}'}")
                output.seek(0)
                found["memory command"] = output.read().decode(errors="replace")
        return found

    def keep(self, target: Path) -> bool:
        """Copy what stays to a new folder, unless it is too large; returns whether it was copied."""
        if measure_size([self.work, self._home], self._limits.most_bytes) > self._limits.most_bytes:
            return False
        copy_files(self.work, target / "work", self._agent.keeps)
        copy_files(self._home, target / "home")
        return True

    def remove(self) -> None:
        """Delete the place."""
        remove_folder(self._root)
