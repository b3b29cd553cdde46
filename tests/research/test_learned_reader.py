"""The tables of the page about the learned reader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from drift_agents.errors import ExperimentError
from drift_agents.experiment.loader import load_experiment
from drift_agents.experiment.runner import run_experiment

from research.learned_reader import (
    AGENT,
    EXPERIMENTS,
    PAGE,
    make_tables,
    store_figures,
    summarise,
    write_page,
)
from research.readers import find_experiment


def row(verifier: str, seed: int, phase: str, success: bool) -> dict[str, Any]:
    agent = {"schedule": "lake", "policy": "learned_reader", "memory": "vanilla", "verifier": verifier}
    return {
        **agent,
        "seed": seed,
        "phase": phase,
        "success": success,
        "steps": 10,
        "loop_steps": 4,
        "invalid_actions": 0,
    }


ROWS = [
    row(verifier, seed, phase, phase == "source" or (verifier == "glove" and (seed == 1 or number == 0)))
    for verifier in ("none", "glove")
    for seed in (0, 1)
    for phase in ("source", "drift-1")
    for number in range(2)
]
KEYS = list(dict.fromkeys(tuple(one[name] for name in AGENT) for one in ROWS))


def test_the_gain_is_paired_by_lake() -> None:
    """GLOVE wins half of the episodes after the drift on one lake, all on the other; without it none is won."""
    tables = make_tables([summarise(ROWS, key) for key in KEYS])
    assert "| `learned_reader` | +75 [" in " ".join(tables["gains"].split())
    lines = [" ".join(line.split()) for line in tables["success"].splitlines()]
    assert "| `learned_reader` | `vanilla` | `none` | 100 [100, 100] | 0 [0, 0] | 40 | 0 of 80 |" in lines


def test_the_page_names_tables_that_there_are(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE.read_text("utf-8"))
    for experiment in EXPERIMENTS:
        with pytest.raises(ExperimentError, match=f"{experiment}.json: is missing"):
            write_page(page, tmp_path)
        file = tmp_path / f"{experiment}.json"
        file.write_text(json.dumps({"agents": [summarise(ROWS, key) for key in KEYS]}))
    text = write_page(page, tmp_path).read_text("utf-8")
    assert text.count("+75 [") == len(EXPERIMENTS)
    assert write_page(page, tmp_path).read_text("utf-8") == text


def test_a_run_of_one_instance_replaces_nothing(tmp_path: Path) -> None:
    agents = {"memory": "none", "policy": "random"}
    whole = load_experiment(find_experiment("learned-reader")).to_dict()
    data = {**whole, "agents": agents, "seeds": 1, "rounds": 1, "references": []}
    run_experiment(load_experiment({**data, "schedules": data["schedules"][:1], "environments": {}}), tmp_path / "run")
    with pytest.raises(
        ExperimentError, match=r"other options: drift-agents run research/experiments/learned-reader\.yaml"
    ):
        store_figures(tmp_path / "run", tmp_path / "figures")
    assert not (tmp_path / "figures").exists()
