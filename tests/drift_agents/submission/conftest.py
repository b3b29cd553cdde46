"""A finished run of two agents on a lake and a house, its submission, and the example's package as an installed one."""

from __future__ import annotations

import hashlib
import importlib
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from drift_agents.experiment.loader import parse_experiment
from drift_agents.experiment.runner import run_experiment
from drift_agents.submission.bundle import STATEMENT, hash_file
from drift_agents.submission.prepare import prepare_submission

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "submission"
PLAIN = (EXAMPLE / "plain" / "agent.py").read_text("utf-8")
PROGRAMS: list[dict[str, Any]] = [
    {name: {"command": [sys.executable, "-I", "-S", "agent.py"], "files": {"agent.py": text}}}
    for name, text in (("plain", PLAIN), ("wanderer", PLAIN.replace("best or rng", "rng")))
]
"""Two agents whose processes start at once: the example, and one that makes no use of what it knows."""


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of agents in processes of their own, with a reference, a clock of steps and a swept schedule."""
    folder = tmp_path_factory.mktemp("run") / "small"
    experiment = parse_experiment(
        {
            "name": "small",
            "schedules": ["frozen_lake/implicit:family", "frozen_lake/explicit:mid-episode"],
            "agents": {"memory": "none", "policy": PROGRAMS},
            "references": ["clairvoyant"],
            "seeds": 2,
            "rounds": 2,
            "isolated": True,
            "environments": {"frozen_lake/explicit:mid-episode": {"episodes": 3, "sweep": {"base.slip": [0.1]}}},
        }
    )
    run_experiment(experiment, folder)
    return folder


@pytest.fixture(scope="session")
def prepared(run: Path) -> Path:
    """The submission of the run; tests copy it before they change it."""
    folder = run.parent / "submission"
    prepare_submission(run, folder, about="a test")
    return folder


@pytest.fixture
def submission(prepared: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(prepared, tmp_path / "submission"))


def reseal(folder: Path) -> None:
    """State hashes anew, as a forger would after changing a file."""
    lines = (folder / "episodes.jsonl").read_bytes().split(b"\n")[:-1]
    who = ("schedule", "memory", "verifier", "controller", "team", "policy", "seed")
    cells: dict[tuple[Any, ...], list[bytes]] = {}
    for line in lines:
        row = json.loads(line)
        cells.setdefault(tuple(row[field] for field in who), []).append(line)
    keys = [json.loads(line)["cell"] for line in (folder / "finished.jsonl").read_text().splitlines()]
    notes = [
        {"cell": key, "sha256": hashlib.sha256(b"".join(line + b"\n" for line in own)).hexdigest()}
        for key, own in zip(keys, cells.values(), strict=False)
    ]
    (folder / "finished.jsonl").write_text("".join(json.dumps(note) + "\n" for note in notes))
    statement = json.loads((folder / STATEMENT).read_text())
    statement["files"] = {name: hash_file(folder / name) for name in statement["files"]}
    (folder / STATEMENT).write_text(json.dumps(statement))


@pytest.fixture(name="reseal")
def _reseal() -> Callable[[Path], None]:
    return reseal


@pytest.fixture
def newest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The example's package as if it were installed: a folder on the path with its files and its metadata."""
    site = tmp_path / "site"
    shutil.copytree(EXAMPLE / "drift_newest", site / "drift_newest", ignore=shutil.ignore_patterns("__pycache__"))
    info = site / "drift_newest-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: drift-newest\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text("[drift_envs.memories]\nnewest = drift_newest:NewestMemory\n")
    monkeypatch.syspath_prepend(str(site))
    importlib.invalidate_caches()
    yield site
    sys.modules.pop("drift_newest", None)
