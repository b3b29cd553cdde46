"""The maintainers' repository, written with git, and clones of it.

No configuration but git's defaults is in force, and no hook runs. Authors and dates are fixed, so that equal files give
equal commits. Git never runs in a folder that an agent could write to.
"""

from __future__ import annotations

import os
import shutil
import subprocess  # nosec B404
from collections.abc import Sequence
from pathlib import Path

from drift_agents.errors import ExperimentError
from drift_envs.envs.repository.lifetime import ProjectCommit

BRANCH = "main"
_ADDRESS = "maintainers@example.org"
_FIRST_DATE = 1_767_258_000  # 1 January 2026, 09:00 UTC
_INTERVAL = 2 * 3600  # seconds between two commits
_CONFIG = """[core]
\trepositoryformatversion = 0
\tbare = false
\tlogallrefupdates = true
[user]
\tname = Agent
\temail = agent@example.org
"""


def git(*words: str, folder: Path, stdin: bytes = b"") -> str:
    """Run git and return what it prints.

    Raises:
        ExperimentError: if it is not installed, or fails.
    """
    environment = {
        "PATH": os.environ.get("PATH", os.defpath), "HOME": os.devnull, "LC_ALL": "C", "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull, "GIT_TERMINAL_PROMPT": "0", "GIT_CEILING_DIRECTORIES": str(folder.parent),
    }  # fmt: skip
    command = ["git", "-c", f"core.hooksPath={os.devnull}", "-c", "init.templateDir=", *words]
    try:
        done = subprocess.run(command, cwd=folder, env=environment, input=stdin, capture_output=True, check=False)  # nosec B603
    except FileNotFoundError as error:
        raise ExperimentError("`git` is not installed, or not in PATH") from error
    if done.returncode:
        raise ExperimentError(f"git {words[0]}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout.decode(errors="replace").strip()


def make_repository(path: Path, commits: Sequence[ProjectCommit]) -> None:
    """Write a bare repository with these commits on one branch into a new folder."""
    path.mkdir(parents=True)
    git("init", "--quiet", "--bare", "-b", BRANCH, ".", folder=path)
    stream = []
    for number, commit in enumerate(commits):
        author = f"{commit.author} <{_ADDRESS}> {_FIRST_DATE + number * _INTERVAL} +0000"
        stream += [f"commit refs/heads/{BRANCH}\ncommitter {author}\n".encode(), _data(commit.message)]
        for file, text in sorted(commit.files.items()):
            stream += [f'D "{file}"\n'.encode()] if text is None else [f'M 644 inline "{file}"\n'.encode(), _data(text)]
    git("fast-import", "--quiet", folder=path, stdin=b"".join(stream))


def _data(text: str) -> bytes:
    content = text.encode()
    return b"data %d\n%s\n" % (len(content), content)


def clone(repository: Path, target: Path) -> None:
    """Make a work tree with a copy of the repository, which shares no file with it and does not name its path."""
    shutil.copytree(repository, target / ".git")
    (target / ".git" / "config").write_text(_CONFIG, "utf-8")
    git("reset", "--quiet", "--hard", folder=target)
