"""The fine-tuning set of a run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from drift_agents.cli.app import main
from drift_agents.errors import ArgumentError, ExperimentError
from drift_agents.experiment.finetuning import export, pick, read_samples
from drift_agents.experiment.loader import load_experiment
from drift_agents.experiment.runner import run_experiment

TINY = {
    "name": "tiny-effort",
    "schedules": ["frozen_lake/explicit"],
    "agents": [
        {
            "memory": "adamem",
            "controller": ["direct", {"adamem": {"effort": "high"}}, {"adamem": {"effort": "low"}}],
            "policy": "planner",
        }
    ],
    "seeds": [0],
    "rounds": 8,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("effort") / "run"
    run_experiment(load_experiment(TINY), out, jobs=1, trace="all")
    return out


def test_the_dual_filter_keeps_strategies_that_changed_the_action_of_a_success(folder: Path, tmp_path: Path) -> None:
    samples = list(read_samples(folder))
    kept = pick(samples)
    assert 0 < len(kept) < len(samples)
    assert all(one.score == 1 and one.action != one.thought.baseline for one in kept)
    outcome_only = pick(samples, outcome_only=True)
    assert len(outcome_only) == len(kept)
    assert all(one.score == 1 for one in outcome_only)
    assert any(one.action == one.thought.baseline for one in outcome_only)
    assert pick(samples, outcome_only=True) == outcome_only


def test_the_command_writes_chats(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = []
    for flags in ([], ["--outcome-only"]):
        out = tmp_path / "sets" / f"data{len(flags)}.jsonl"
        assert main(["export-stepmft", str(folder), "--out", str(out), *flags]) == 0
        chats = [json.loads(line)["messages"] for line in out.read_text("utf-8").splitlines()]
        sizes.append(len(chats))
        for chat in chats:
            assert [turn["role"] for turn in chat] == ["system", "user", "assistant"]
            assert "synthesize contextualized" in chat[0]["content"]
            assert "Retrieved experiences:\nExperience 1" in chat[1]["content"]
            assert json.loads(chat[2]["content"])["strategy"]
    assert sizes[0] == sizes[1] > 0
    assert f"{sizes[0]} of" in capsys.readouterr().out


def test_runs_without_steps_or_strategies_are_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="holds no run"):
        export(tmp_path, tmp_path / "out.jsonl")
    (tmp_path / "run.json").write_bytes((folder / "run.json").read_bytes())
    with pytest.raises(ExperimentError, match="play the experiment with --trace all"):
        export(tmp_path, tmp_path / "out.jsonl")
    bare = tmp_path / "bare"
    (bare / "traces").mkdir(parents=True)
    direct = sorted((folder / "traces").iterdir())[0]
    (bare / "traces" / direct.name).write_bytes(direct.read_bytes())
    with pytest.raises(ArgumentError, match=re.escape("none of its 0 strategies")):
        export(bare, tmp_path / "out.jsonl")
