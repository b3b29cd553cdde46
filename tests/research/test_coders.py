"""The study of reference coding agents."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
import yaml
from drift_agents.cli.check_coder import REFERENCES
from drift_agents.experiment.coder.agents import CoderRun, make_reference
from drift_agents.experiment.coder.lifetime import log_of
from drift_agents.experiment.coder.runner import run_coders

from drift_envs.schedule.loader import load_schedule
from drift_envs.schedule.model import Schedule
from research.coders import page, play

pytest.importorskip("pyarrow")

SHORT = {"version": 1, "name": "repository/short", "env": "DriftRepository-v0", "clock": "episode",
         "tasks": {"pool": 12}, "base": {"flaky": 0.4, "rerun_price": 0.08, "docs_lag": 1},
         "drifts": [{"name": "drift-1", "at": 2, "set": {"helper": 1, "rounding": 1}}]}  # fmt: skip


@pytest.mark.integration
def test_the_pages_have_the_numbers_of_the_lines() -> None:
    """`make tables` does not change them."""
    for path, text in page.render_coders().items():
        assert path.read_text("utf-8") == text, f"run `make tables`: {path.name} has other numbers"


def line(agent: str, seed: int, episode: int, **more: float) -> dict[str, float | str]:
    counts = {"first_try": 1, "one_rerun": 1, "success": 1, "corrections": 0, "reruns": 0}
    said = {"memory_size": 4, "present_statements": 3, "mixed_statements": 0, "still_believed": 0.0}
    return {"agent": agent, "seed": seed, "episode": episode, **counts, **said, **more}


def test_a_price_counts_reruns_and_no_score_is_below_zero() -> None:
    lines = pd.DataFrame([line("rerun", 0, 0, reruns=2), line("rerun", 0, 1, reruns=2, corrections=2)])
    assert page.score(1 / 4)(lines).tolist() == pytest.approx([50.0, 0.0])
    assert page.score(0.0)(lines.assign(success=0)).tolist() == [0.0, 0.0]


def test_differences_are_taken_in_pairs_after_the_drift() -> None:
    lines = [line(agent, seed, page.DRIFT, success=agent == "rerun" or seed) for agent in REFERENCES for seed in (0, 1)]
    lines += [line(agent, 0, 0, success=0) for agent in REFERENCES]
    found = page.compare(pd.DataFrame(lines), "rerun", "look", page.score())
    assert (found.mean, found.n) == (50.0, 2)
    assert page.find_best(pd.DataFrame(lines), page.score(), "rerun") != "rerun"


def test_what_is_stored_is_not_played_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what other programs played is dropped."""
    played = [line("look", seed, 0) for seed in (0, 1)]
    play.store("none", played, tmp_path)
    play.store("none", played[1:], tmp_path)
    assert len(play.read_lines("none", tmp_path)) == 2
    assert play.list_missing(2, tmp_path) == [
        (name, seed) for seed in (0, 1) for name in play.CONDITIONS if name != "none"
    ]
    monkeypatch.setattr(play, "describe_content", lambda condition: "other programs")
    assert ("none", 0) in play.list_missing(2, tmp_path)
    play.store("none", played[:1], tmp_path)
    assert set(play.read_lines("none", tmp_path)["seed"]) == {0}


@pytest.mark.integration
def test_lines_are_those_of_check_coder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The study calls the agents' programs in one process; the command starts each one in a clone."""
    file = tmp_path / "short.yaml"
    file.write_text(yaml.safe_dump(SHORT))

    class Short(play.Condition):
        def load(self) -> Schedule:
            return load_schedule(str(file))

    monkeypatch.setattr(play, "CONDITIONS", {"short": Short("short")})
    lines = play.play_instance("short", 3, 6)
    run = CoderRun(tuple(map(make_reference, REFERENCES)), str(file), (3,), 6)
    run_coders(run, tmp_path / "run")
    for name in REFERENCES:
        played = [json.loads(line) for line in log_of(tmp_path / "run", name).read_text("utf-8").splitlines()]
        found = [line for line in lines if line["agent"] == name]
        assert [{key: line[key] for key in (*play.COUNTS, "still_believed")} for line in played] == [
            {key: line[key] for key in (*play.COUNTS, "still_believed")} for line in found
        ], name
    assert any(line["reruns"] for line in lines)
    assert any(line["corrections"] for line in lines)
