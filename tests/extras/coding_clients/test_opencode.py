"""opencode, a real coding agent, through a whole run of `check-coder`, driven by a model that follows a script."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from drift_agents.experiment.coder.agents import CoderRun, CodingAgent, make_reference
from drift_agents.experiment.coder.lifetime import log_of
from drift_agents.experiment.coder.runner import run_coders

from tests.extras.coding_clients.scripted_model import ScriptedModel


@pytest.fixture(scope="session")
def opencode() -> str:
    """The program, which is installed once."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    folder = Path(sys.prefix) / "coding-clients"
    folder.mkdir(exist_ok=True)
    shutil.copy(Path(__file__).with_name("package.json"), folder)
    program = folder / "node_modules" / ".bin" / "opencode"
    if not program.exists():
        subprocess.run([npm, "install", "--no-audit", "--no-fund", "--silent"], cwd=folder, check=True, timeout=600)
    return str(program)


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    program = shlex.join(make_reference("verify").command[:3])
    with ScriptedModel(program) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_opencode_plays_its_episodes_and_keeps_its_memory(
    tmp_path: Path, opencode: str, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": model.url, "apiKey": "sesame-12345"},
        "models": {"scripted": {"name": "Scripted"}},
    }
    config = {
        "provider": {"local": provider}, "model": "local/scripted", "small_model": "local/scripted",
        "autoupdate": False, "share": "disabled",
    }  # fmt: skip
    monkeypatch.setenv("OPENCODE_CONFIG_CONTENT", json.dumps(config))
    prompt = "The task is in {task_file}, and what continuous integration said last in {log_file}. Solve the issue."
    agent = CodingAgent("opencode", (opencode, "run", "--auto", prompt), env=("OPENCODE_CONFIG_CONTENT",))
    notes: list[str] = []
    run = CoderRun((agent,), "repository/explicit", episodes=2, time_limit=120)
    run_coders(run, tmp_path / "run", note=notes.append)
    lines = [json.loads(line) for line in log_of(tmp_path / "run", "opencode").read_text().splitlines()]
    output = (tmp_path / "run/coder/opencode/0/output/1.txt").read_text()
    assert [line["success"] for line in lines] == [True, True], output
    assert lines[1]["present_statements"] >= 6
    assert (tmp_path / "run/coder/opencode/0/memory/2/home/.local/share/opencode").is_dir()
    assert len(model.requests) >= 4
    assert "sesame" not in output
