"""The experiments that come with the package: all of them can be played, and the study's are held out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from drift_agents.experiment.episode import make_setup
from drift_agents.experiment.loader import load_experiment, shipped_experiments
from drift_agents.experiment.logs import read_rows
from drift_agents.experiment.plan import Cell, plan_cells
from drift_agents.experiment.players import needs_model
from drift_agents.experiment.runner import run_experiment
from drift_agents.llm.service import Service

DOCS = Path(__file__).resolve().parents[3] / "docs"
FOR_MODELS = [name for name in shipped_experiments() if needs_model(load_experiment(name))]
"""Experiments that a language model has to be named for."""
DEVELOPMENT = ("desk", "glove-quick", "demo-llm", "repository")
"""Experiments on the instances that things are set on, and demonstrations."""
STUDY = [name for name in shipped_experiments() if name not in (*DEVELOPMENT, *FOR_MODELS)]

FOR_EXTRA = {
    "alfworld-adamem": "textworld",
    "alfworld-beliefmem": "textworld",
    "edv-tau2": "tau2",
    "minigrid": "minigrid",
    "stores": "chromadb",
    "web-pages": "miniwob",
}
"""Experiments of an extra, with the package that it needs."""

COUNTS = {"minigrid": 10, "web-pages": 5}
"""How many instances experiments have that do not have 30."""

DEBUGGED = (
    "house",
    "house-beliefmem",
    "adamem-effort",
    "alfworld-adamem",
    "alfworld-beliefmem",
    "edv-ablation",
    "tools",
)
"""Experiments whose instances begin at 1002: the planners of house and desk were debugged on 1000 and 1001."""

LARGE = ("tools",)
"""Experiments with the most parts and schedules; their parts are those of others too."""

SHORT = {"rounds": 1, "episodes": 3}
"""How much the slow test plays of each schedule: no experiment fills a phase or waits for a drift that comes later."""


def cover(cells: tuple[Cell, ...]) -> list[Cell]:
    """Few cells with every file of schedules, every memory, and each verifier, policy and team by environment."""
    seen: set[str] = set()
    kept = []
    for cell in cells:
        memory, verifier, policy = cell.labels
        environment = cell.schedule.partition("/")[0]
        place = cell.place.partition(":")[0]  # a variant differs from its file by a line
        names = {place, f"memory {memory}"} | {
            f"{environment} {label}" for label in (verifier, policy, *cell.decision.labels)
        }
        if not names <= seen:
            seen |= names
            kept.append(cell)
    return kept


@pytest.mark.integration
@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=[pytest.mark.slow] if one in LARGE else []) for one in shipped_experiments()]
)
def test_everything_in_it_can_be_made(name: str) -> None:
    if name in FOR_EXTRA:
        pytest.importorskip(FOR_EXTRA[name], reason="needs an extra")
    experiment = load_experiment(name, {"seeds": 1})
    service = None
    if name in FOR_MODELS:
        data, service = experiment.to_dict(), Service()
        for part in (part for block in data["agents"] for part in block["policy"]):
            part.setdefault("options", {})["model"] = "any"
        experiment = load_experiment(data)
    for cell in cover(plan_cells(experiment)):
        assert make_setup(cell, experiment.settings_of(cell.schedule), service).episodes


@pytest.mark.parametrize("name", STUDY)
def test_the_study_is_played_on_instances_that_nothing_was_set_on(name: str) -> None:
    experiment = load_experiment(name)
    first = 1002 if name in DEBUGGED else 1000
    assert experiment.seeds == tuple(range(first, first + COUNTS.get(name, 30)))
    for schedule in experiment.schedules:  # where instances are dear, the first of them
        found = experiment.seeds_of(schedule)
        assert found == tuple(range(first, first + len(found)))
        assert len(found) <= len(experiment.seeds)
    assert experiment.about


def test_every_experiment_is_documented() -> None:
    text = (DOCS / "experiments.md").read_text("utf-8")
    for name in shipped_experiments():
        assert f"`{name}`" in text


def shorten(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings of an experiment or of one of its schedules, with at most `SHORT` of each."""
    return {**settings, **{key: min(settings[key], most) for key, most in SHORT.items() if settings.get(key)}}


PARTS = [(name, schedule) for name in shipped_experiments() for schedule in load_experiment(name).schedules]
"""Experiments by schedule: one with every memory on all of them takes longer than a test may."""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "schedule"), PARTS)
def test_its_smallest_form_is_played_to_the_end(name: str, schedule: str, tmp_path: Path) -> None:
    if name in FOR_MODELS:
        pytest.skip("needs a language model")
    if name in FOR_EXTRA:
        pytest.importorskip(FOR_EXTRA[name], reason="needs an extra")
    data = shorten(load_experiment(name, {"seeds": 1}).to_dict())
    settings = data.get("environments", {})
    data["schedules"] = [schedule]
    data["environments"] = {
        key: shorten(settings[key]) for key in (schedule.partition(":")[0], schedule) if key in settings
    }
    experiment = load_experiment(data)
    cells = plan_cells(experiment)
    rows = read_rows(run_experiment(experiment, tmp_path / "run"))
    tested = [row for row in rows if row["stage"] == "test"]
    assert len(tested) == sum(len(make_setup(cell, experiment.settings_of(cell.schedule)).episodes) for cell in cells)
    assert {row["schedule"] for row in tested} == {cell.place for cell in cells}
