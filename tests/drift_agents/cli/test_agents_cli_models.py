"""`drift-agents run --policy llm --model NAME --base-url URL` is all that a user types."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from drift_agents.cli import main
from drift_agents.experiment.folder import REPLIES, read_manifest
from drift_agents.experiment.log import read_rows

pytest.importorskip("openai")

FILE = """\
name: short
about: two agents on a lake
schedules: frozen_lake/explicit
agents: {memory: [none, vanilla], policy: planner}
seeds: 1
rounds: 1
"""


def _load_chat() -> Any:
    path = Path(__file__).parents[1] / "llm" / "chat_server.py"
    spec = importlib.util.spec_from_file_location("cli_tests_chat_server", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    path = tmp_path / "short.yaml"
    path.write_text(FILE)
    return path


@pytest.fixture
def server() -> Iterator[Any]:
    chat = _load_chat()

    def answer(request: dict[str, Any]) -> Any:
        return chat.said(json.dumps({"action": "2" if request["model"] == "right" else "1"}), tokens=(50, 5))

    with chat.serve(answer) as running:
        yield running


def run(file: Path, out: str, *more: str) -> int:
    return main(["run", str(file), "--out", str(file.parent / out), "--policy", "llm", *more])


def test_models_play_and_the_bill_is_shown(file: Path, server: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(file, "run", "--model", "right,down", "--base-url", server.url, "--price", "1,10") == 0
    printed = capsys.readouterr()
    rows = read_rows(file.parent / "run" / "episodes.jsonl")
    assert {row["policy"] for row in rows} == {"llm(right)", "llm(down)"}
    assert all(row["invalid_actions"] == 0 for row in rows)
    assert "Language models over the whole run" in printed.out
    asked = len(server.requests)
    assert f"language models: {asked} asked, " in printed.err
    assert f"{55 * asked:,} tokens, cost {asked * 1e-4:.4f}" in printed.err
    assert (file.parent / "run" / REPLIES).exists()
    (part, _) = read_manifest(file.parent / "run")["experiment"]["agents"][0]["policy"]
    assert part == {"name": "llm", "options": {"base_url": server.url, "price": [1.0, 10.0], "model": "right"}}


def test_recorded_replies_are_played_again_by_somebody_without_a_key(
    file: Path, server: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    shipped = str(file.parent / "shipped.sqlite")
    named = ("--model", "right", "--base-url", server.url, "--replies", shipped)
    assert run(file, "run", *named) == 0
    asked = len(server.requests)
    report = capsys.readouterr().out
    assert run(file, "again", *named, "--replay") == 0
    printed = capsys.readouterr()
    assert len(server.requests) == asked
    assert "language models: 0 asked, " in printed.err
    assert printed.out.replace("again", "run") == report
    assert (file.parent / "again" / "episodes.jsonl").read_bytes() == (file.parent / "run/episodes.jsonl").read_bytes()


def test_a_spent_budget_says_how_to_go_on(file: Path, server: Any, capsys: pytest.CaptureFixture[str]) -> None:
    named = ("--model", "down", "--base-url", server.url)
    assert run(file, "run", *named, "--budget-tokens", "60") == 1
    error = capsys.readouterr().err
    assert "the budget of 60 tokens is spent" in error
    assert "What is done is kept; go on with: drift-agents run " in error
    assert "--resume" in error
    assert run(file, "run", *named, "--resume") == 0


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--model", "tiny", "--replay"), "`--replay` should stand with `--replies FILE`"),
        (("--policy", "random", "--model", "tiny"), "`--model` should stand with `--policy llm`"),
        (("--model", "tiny", "--base-url", "here"), "`base_url` should be an address"),
        (("--model", "tiny", "--price", "1"), "should be two numbers, as in 0.15,0.60. Received '1'"),
        (("--model", "tiny", "--budget", "-1"), "should be a positive number. Received '-1'"),
        ((), "the policy 'llm' needs the name of a model"),
    ],
)
def test_wrong_usage_is_told(file: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], told: str) -> None:
    assert run(file, "run", *more) in (1, 2)
    assert told in capsys.readouterr().err
    assert not (file.parent / "run" / "run.json").exists()
