"""A small traced run and its page."""

from __future__ import annotations

from pathlib import Path

import pytest
from drift_agents.analysis.inspect.page import write_page
from drift_agents.experiment.loader import load_experiment
from drift_agents.experiment.runner import run_experiment


@pytest.fixture(scope="session")
def traced_run(puddle: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run that kept all of its steps; shared, so it is not written to."""
    folder = tmp_path_factory.mktemp("traced")
    schedule = folder / "puddle.yaml"
    schedule.write_text(puddle, encoding="utf-8")
    experiment = load_experiment(
        {
            "name": "puddle",
            "about": "a lake of nine tiles & a <car>",
            "schedules": [str(schedule), "mountain_car/reversed"],
            "agents": {"memory": ["none", "vanilla"], "verifier": ["none", "glove"], "policy": "planner"},
            "references": ["clairvoyant"],
            "seeds": 2,
            "rounds": 4,
            "environments": {"mountain_car/reversed": {"rounds": 1}},
        }
    )
    run_experiment(experiment, folder / "run", trace="all")
    return folder / "run"


@pytest.fixture(scope="session")
def page(traced_run: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of its page."""
    return write_page(traced_run, tmp_path_factory.mktemp("page") / "page.html").as_uri()
