"""Mechanisms are compared with themselves switched off, episode by episode."""

from __future__ import annotations

import re
from typing import Any

import pytest
from drift_agents.errors import ExperimentError
from drift_agents.experiment.config import Experiment
from drift_agents.experiment.loader import load_experiment

from studies.mechanisms import MECHANISMS, Mechanism, count_changes

DAYS = Mechanism("memory_bank", "daily summaries", {"days": 0})


def rows(without: list[tuple[float, int]]) -> list[dict[str, Any]]:
    found = []
    for memory, episodes in (("memory_bank", [(1.0, 9), (0.0, 5), (1.0, 7)]), ("memory_bank(days=0)", without)):
        for number, (score, steps) in enumerate(episodes):
            row = {"schedule": "a", "seed": 0, "episode": number, "score": score, "steps": steps}
            found += [{**row, "memory": memory, "verifier": verifier} for verifier in ("none", "glove")]
    return found


def experiment(*memories: Any) -> Experiment:
    agents = {"memory": list(memories), "verifier": ["none", "glove"], "policy": "planner"}
    return Experiment.model_validate({"name": "m", "schedules": "a", "rounds": 1, "seeds": 1, "agents": agents})


def test_episodes_with_another_score_or_length_count() -> None:
    both = experiment("memory_bank", {"memory_bank": {"days": 0}})
    assert count_changes(both, rows([(1.0, 9), (0.0, 5), (1.0, 7)]), DAYS, "none") == (0, 3)
    assert count_changes(both, rows([(1.0, 8), (1.0, 5), (1.0, 7)]), DAYS, "glove") == (2, 3)


def test_both_agents_have_to_be_played() -> None:
    with pytest.raises(ExperimentError, match=re.escape("with and without daily summaries")):
        count_changes(experiment("memory_bank"), [], DAYS, "none")


def test_the_shipped_experiment_plays_every_mechanism() -> None:
    shipped = load_experiment("mechanisms")
    for mechanism in MECHANISMS:
        assert count_changes(shipped, [], mechanism, "glove") == (0, 0)
