"""The page about readers: aims, tables, and what it refuses."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from drift_agents.errors import ExperimentError
from drift_agents.experiment.loader import parse_experiment
from drift_agents.experiment.runner import run_experiment

from studies.readers import judge_aims, tabulate, write_readers


def row(verifier: str, phase: str, success: bool, seed: int = 0, loop_steps: int = 0) -> dict[str, Any]:
    """The fields of a line that the page uses."""
    return {
        "schedule": "lake",
        "policy": "message_reader",
        "verifier": verifier,
        "phase": phase,
        "seed": seed,
        "round": 1,
        "success": success,
        "steps": 10,
        "loop_steps": loop_steps,
    }


@pytest.mark.parametrize(("won", "is_met"), [(17, True), (16, False)])
def test_glove_keeps_a_share_of_oracle_reset(won: int, is_met: bool) -> None:
    """85 % exactly is enough."""
    rows = [row("oracle_reset", "drift-1", True) for _ in range(20)]
    rows += [row("glove", "drift-1", number < won) for number in range(20)]
    rows += [row(verifier, "source", True) for verifier in ("glove", "oracle_reset")]
    aims = {aim.phase: aim for aim in judge_aims(rows)}
    assert aims["drift-1"].is_met is is_met
    assert aims["drift-1"].found == f"{won / 20:.0%} ({won / 20:.1%} of 100.0%)"
    assert aims["source"].is_met


def test_tables_average_instances_and_count_loops() -> None:
    rows = [row("glove", "source", seed == 0, seed, loop_steps=5 * seed) for seed in (0, 1)]
    (table,) = tabulate(rows)
    ((cells, _),) = table.rows
    assert cells[:2] == ("`message_reader`", "glove")
    assert cells[2].startswith("50 [")
    assert cells[3] == "25"


def test_the_page_is_made_from_runs(tmp_path: Path) -> None:
    data = {
        "name": "readers",
        "schedules": ["frozen_lake/explicit-family"],
        "agents": {"memory": "vanilla", "verifier": ["none", "glove"], "policy": "message_reader"},
        "references": ["oracle_reset"],
        "seeds": 2,
        "rounds": 2,
        "trace": "none",
    }
    run_experiment(parse_experiment(data), tmp_path / "readers")
    text = write_readers([tmp_path / "readers"], tmp_path / "page.md")
    assert (tmp_path / "page.md").read_text("utf-8") == text
    assert "drift-agents run readers --trace none" in text
    assert "`frozen_lake/explicit-family`: 2 instances, 2 rounds of every phase." in text
    assert len(re.findall(r"^\| `message_reader` ", text, re.MULTILINE)) == 3


@pytest.mark.parametrize("names", [[], ["readers-kinds"], ["readers", "other"]])
def test_other_runs_are_refused(names: list[str]) -> None:
    with pytest.raises(ExperimentError, match="the runs should be `readers`"):
        write_readers([Path(name) for name in names])
