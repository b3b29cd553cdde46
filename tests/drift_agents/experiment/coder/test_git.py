"""The maintainers' repository and its clones."""

from __future__ import annotations

from pathlib import Path

import pytest
from drift_agents.errors import ExperimentError
from drift_agents.experiment.coder.git import clone, git, make_repository

from drift_envs.envs.repository.lifetime import ProjectCommit

pytestmark = pytest.mark.integration

COMMITS = (
    ProjectCommit("Maintainers", "Start", {"README.md": "A project\n", "ledger/fees.py": "RATE = 3\n"}),
    ProjectCommit(
        "Maintainers",
        "Raise the fee\n\nAs agreed.",
        {"README.md": "Ä project\n", "ledger/fees.py": None, "ledger/costs.py": "RATE = 4\n"},
    ),
)


def test_equal_files_give_equal_commits(tmp_path: Path) -> None:
    heads = []
    for name in ("one", "two"):
        make_repository(tmp_path / name, COMMITS)
        heads.append(git("rev-parse", "main", folder=tmp_path / name))
    assert heads[0] == heads[1]


def test_a_clone_has_the_history_and_the_last_files(tmp_path: Path) -> None:
    make_repository(tmp_path / "repository", COMMITS)
    clone(tmp_path / "repository", tmp_path / "work")
    assert git("log", "--format=%s", folder=tmp_path / "work").splitlines() == ["Raise the fee", "Start"]
    assert (tmp_path / "work/README.md").read_text("utf-8") == "Ä project\n"
    assert not (tmp_path / "work/ledger/fees.py").exists()
    assert git("status", "--porcelain", folder=tmp_path / "work") == ""


def test_a_clone_shares_nothing_with_the_repository(tmp_path: Path) -> None:
    make_repository(tmp_path / "secret-place", COMMITS)
    clone(tmp_path / "secret-place", tmp_path / "work")
    files = [path for path in (tmp_path / "work").rglob("*") if path.is_file()]
    assert all(path.stat().st_nlink == 1 for path in files)
    assert not [path for path in files if b"secret-place" in path.read_bytes()]


def test_configuration_and_hooks_of_the_user_are_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marker = tmp_path / "marker"
    (tmp_path / "hooks").mkdir()
    hook = tmp_path / "hooks/post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {marker}\n")
    hook.chmod(0o755)
    (tmp_path / ".gitconfig").write_text(f"[core]\nhooksPath = {tmp_path}/hooks\nautocrlf = true\n[user]\nname = Me\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    make_repository(tmp_path / "repository", COMMITS)
    clone(tmp_path / "repository", tmp_path / "work")
    assert not marker.exists()
    assert b"\r" not in (tmp_path / "work/README.md").read_bytes()
    assert git("log", "-1", "--format=%an %ct", folder=tmp_path / "work") == "Maintainers 1767265200"


def test_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ExperimentError, match="`git` is not installed, or not in PATH"):
        make_repository(tmp_path / "repository", COMMITS)


def test_git_that_fails(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="git log: fatal"):
        git("log", folder=tmp_path)
