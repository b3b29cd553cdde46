"""Where a coding agent works: a clone, a home, and what it keeps from episode to episode.

The place stands outside of the run's folder, so that no parent of the work tree holds lines, seeds or checks. It is
made anew for every episode from the maintainers' repository and from a copy of what was kept.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from drift_agents.experiment.coder.agents import CoderRun, CodingAgent
from drift_agents.experiment.coder.files import copy_files, measure_size, read_files, remove_folder
from drift_agents.experiment.coder.git import clone
from drift_agents.experiment.coder.process import CommandEnd, run_command

_HOMES = {
    "HOME": "", "XDG_CONFIG_HOME": ".config", "XDG_DATA_HOME": ".local/share", "XDG_STATE_HOME": ".local/state",
    "XDG_CACHE_HOME": ".cache", "XDG_RUNTIME_DIR": ".run", "CLAUDE_CONFIG_DIR": ".claude", "CODEX_HOME": ".codex",
}  # fmt: skip
"""Where programs keep files of a user: variables, and the folders of the run's home."""
_HANDED_ON = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TERM")
_NOT_SUBMITTED = (".git", "__pycache__")
_MOST_SUBMITTED, _MOST_MEMORY = 2**21, 2**22
"""Bytes of the files that are submitted, and of those in which statements are counted; what comes after is left out."""


class CoderPlace:
    """The place of an agent in one lifetime.

    Args:
        run: with the limits of the agent's command.
        agent: who works there.
        key: tells it from the places of other lifetimes; equal keys have equal paths, also when a run goes on, since
            agents keep memories by the path of a project.
        project: the name of the project, that of the clone's folder.
    """

    def __init__(self, run: CoderRun, agent: CodingAgent, key: str, project: str) -> None:
        digest = hashlib.sha256(key.encode()).hexdigest()[:12]
        self._run, self._agent = run, agent
        self._root = Path(tempfile.gettempdir()).resolve() / f"drift-coder-{digest}"
        self.work, self._home = self._root / project, self._root / "home"
        self._tmp, self._told = self._root / "tmp", self._root / "episode"

    def prepare(self, repository: Path, memory: Path) -> None:
        """Make everything anew: a clone of the maintainers' repository, and what `keep` has stored in a folder."""
        self._repository, self._memory = repository, memory
        self.remove()
        self._restore()
        copy_files(memory / "home", self._home)

    def _restore(self) -> None:
        """Have all folders, whatever an agent made of them."""
        self._restore_ours()
        if not _is_folder(self.work):
            remove_folder(self.work)
            clone(self._repository, self.work)
            copy_files(self._memory / "work", self.work)
            exclude = self.work / ".git" / "info"  # what is kept is not the project's
            exclude.mkdir(exist_ok=True)
            (exclude / "exclude").write_text("".join(f"/{name}\n" for name in self._agent.keep), "utf-8")
        self.work.chmod(0o700)

    def _restore_ours(self) -> None:
        """Have the folders beside the work tree: one that was replaced by a link is never entered."""
        for folder in (self._root, self._home, self._tmp, self._told):
            if not _is_folder(folder):
                remove_folder(folder)
                folder.mkdir(mode=0o700)
            folder.chmod(0o700)

    def work_on(self, task: str, log: str, output: IO[bytes]) -> CommandEnd:
        """Have the agent work."""
        remove_folder(self._told)
        self._restore()
        values = {"task": task, "log": log, "usage_file": f"{self._told}/usage.json"}
        for name in ("task", "log"):
            file = self._told / f"{name}.md"
            file.write_text(values[name], "utf-8")
            values[f"{name}_file"] = str(file)
        return self._run_command(self.fill_in(values), output)

    def fill_in(self, values: Mapping[str, str]) -> list[str]:
        """The agent's command with these values of its placeholders."""
        given = ""
        if self._agent.is_shell:
            # The values are variables of the shell, so that it reads none of them as a command.
            given = "".join(f"{name}={shlex.quote(value)}; " for name, value in values.items())
            values = {name: f"${{{name}}}" for name in values}
        words = [_replace(word, values) for word in self._agent.command]
        return [*self._wrap(), *(["sh", "-c", given + words[0]] if self._agent.is_shell else words)]

    def _wrap(self) -> list[str]:
        paths = {"place": str(self._root), "work": str(self.work), "home": str(self._home)}
        return [_replace(word, paths) for word in self._agent.wrap]

    def _run_command(self, command: Sequence[str], output: IO[bytes]) -> CommandEnd:
        names = (*_HANDED_ON, *self._agent.env, *(_HOMES if self._agent.has_own_home else ()))
        environment = {name: os.environ[name] for name in names if name in os.environ}
        if not self._agent.has_own_home:
            environment = {name: str(self._home / folder) for name, folder in _HOMES.items()} | environment
        end = run_command(
            command, self.work, environment | {"TMPDIR": str(self._tmp)}, output, self._run.time_limit,
            watched=(self.work, self._home, self._tmp, self._told), most_bytes=self._run.most_bytes,
            secrets=self._agent.secrets,
        )  # fmt: skip
        self._restore_ours()
        return end

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
                end = self._run_command([*self._wrap(), "sh", "-c", self._agent.memory_command], output)
                if end.words:
                    note(f"the memory's command: {end.words}")
                output.seek(0)
                found["memory command"] = output.read().decode(errors="replace")
        return found

    def keep(self, target: Path) -> bool:
        """Store what stays in a new folder; `False` if it is too large, and what was kept before stays."""
        part = target.with_suffix(".part")
        remove_folder(part)
        remove_folder(target)
        is_kept = measure_size([self.work, self._home], self._run.most_bytes) <= self._run.most_bytes
        if is_kept:
            copy_files(self.work, part / "work", self._agent.keeps)
            copy_files(self._home, part / "home")
        else:
            copy_files(self._memory, part)
        os.replace(part, target)
        return is_kept

    def remove(self) -> None:
        """Delete the place."""
        remove_folder(self._root)


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _replace(text: str, values: Mapping[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], found[0]), text)
