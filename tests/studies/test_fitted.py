"""Agents with fitted constants are compared with the same agents and other constants, instance by instance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from drift_agents.analysis.runs import Player, Runs
from drift_agents.errors import ExperimentError
from drift_agents.experiment.loader import load_experiment
from drift_agents.experiment.runner import run_experiment

from studies.fitted import ASPIRATION, DEPTHS, MATCHING, FittedPair, compare, write_fitted


def runs(scores: dict[int, tuple[float, float]]) -> Runs:
    """One episode in the source phase and one after the drift."""
    rows = tuple(
        tuple(
            {"phase": phase, "tick": tick, "score": score}
            for tick, (phase, score) in enumerate(zip(("source", "drift-1"), pair, strict=True))
        )
        for pair in scores.values()
    )
    return Runs(Player("vanilla", "none", "planner"), tuple(scores), rows, is_one_run=False)


def test_scores_before_the_drift_do_not_count_and_instances_are_paired() -> None:
    shipped = runs({1000: (0.0, 1.0), 1001: (0.0, 0.5), 1002: (0.0, 0.0)})
    changed = runs({1001: (1.0, 0.5), 1000: (1.0, 0.0)})
    before, after, change = compare(FittedPair("a", shipped, changed))
    assert (before.mean, after.mean, change.mean) == (50.0, 25.0, -50.0)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("fitted")
    found = []
    for name in ("fitted", "unfitted"):
        schedules = ["webshop/explicit", *(["frozen_lake/implicit:family"] if name == "fitted" else [])]
        worlds = {key: load_experiment(name).worlds[key] for key in schedules if key in load_experiment(name).worlds}
        overrides: dict[str, Any] = {"seeds": [1000], "rounds": 1, "schedules": schedules, "worlds": worlds}
        run_experiment(load_experiment(name, overrides), folder / name)
        found.append(folder / name)
    return found[0], found[1]


def test_the_page_compares_every_constant(folders: tuple[Path, Path], tmp_path: Path) -> None:
    text = write_fitted(*folders, tmp_path / "fitted.md")
    assert (tmp_path / "fitted.md").read_text() == text
    aspiration, depths, matching = (text.split(title)[1].split("**")[1] for title in (ASPIRATION, DEPTHS, MATCHING))
    assert aspiration.count("| Vanilla + GLOVE") == 1
    assert depths.count("`webshop/explicit/ad_depth-3`") == depths.count("`webshop/explicit/ad_depth-10`") == 6
    assert matching.count("`webshop/explicit/ad_depth-") == 18
    assert "Clairvoyant" not in text


def test_runs_without_a_pair_are_refused(folders: tuple[Path, Path]) -> None:
    with pytest.raises(ExperimentError, match="as shipped and changed"):
        write_fitted(folders[1], folders[1], None)
