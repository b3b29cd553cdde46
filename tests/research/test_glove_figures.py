"""Figures 3 and 4 of the GLOVE paper: what is stored of a run, and the tables and pictures made from it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drift_agents.errors import ExperimentError
from drift_agents.experiment.config import Experiment
from drift_agents.experiment.folder import EPISODES
from drift_agents.experiment.loader import load_experiment
from drift_agents.experiment.logs import read_rows
from drift_agents.experiment.runner import run_experiment

from research import glove_figures
from research.glove_figures import BUDGET, PAGE, RECOVERY, store_figures, write_page

SMALL: dict[str, dict[str, Any]] = {
    RECOVERY: {"seeds": 2, "rounds": 5, "schedules": ["frozen_lake/explicit:family"]},
    BUDGET: {"seeds": 2, "rounds": 5, "sweep": {"base.slip": [0.0, 0.2]}},
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Short runs of both experiments, as if they were shipped so."""
    folder = tmp_path_factory.mktemp("glove")
    for name, changes in SMALL.items():
        run_experiment(load_experiment(name, changes), folder / name)
    return {name: folder / name for name in SMALL}


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str) -> Experiment:
        return load_experiment(name, SMALL[name])

    monkeypatch.setattr(glove_figures, "load_experiment", load)


def mean(rows: Sequence[Any], verifier: str, memory: str, field: str, rounds: range) -> float:
    own = [row for row in rows if (row["verifier"], row["memory"]) == (verifier, memory)]
    after = [row for row in own if row["phase"] != "source" and row["round"] in rounds]
    return float(np.mean([row[field] for row in after]))


@pytest.mark.integration
@pytest.mark.usefixtures("_small")
def test_the_page_has_the_figures_of_the_runs(runs: dict[str, Path], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for folder in runs.values():
        store_figures(folder, tmp_path)
    page = tmp_path / "page.md"
    page.write_text(PAGE.read_text("utf-8"))
    write_page(page, tmp_path, tmp_path)
    for name in ("glove_recovery", "glove_budget"):
        for ending in (".png", ".svg", "-narrow.svg"):
            assert (tmp_path / f"{name}{ending}").stat().st_size > 1000
    rows = read_rows(runs[RECOVERY] / EPISODES)
    (stored,) = json.loads((tmp_path / f"{RECOVERY}.json").read_text())["schedules"]
    assert stored["drifts"] == [[5, "drift-1"], [10, "drift-2"]]
    (line,) = [line for line in stored["lines"] if line["name"] == "MemoryBank + GLOVE"]
    for name, field, scale in (
        ("success", "success", 100),
        ("conflicts", "surprises", 1),
        ("probes", "probe_steps", 1),
    ):
        for when, rounds in (("shortly", range(1, 4)), ("later", range(4, 6))):
            found = scale * mean(rows, "glove", "memory_bank", field, rounds)
            assert line["measured"][f"{name} {when}"][0] == pytest.approx(found, abs=0.006)
    assert line["measured"]["conflicts shortly"][0] > line["measured"]["conflicts before"][0]
    at = [
        row["surprises"] for row in rows if (row["verifier"], row["memory"], row["episode"]) == ("glove", "vanilla", 5)
    ]
    (line,) = [line for line in stored["lines"] if line["name"] == "Vanilla + GLOVE"]
    assert line["curves"]["conflicts"]["middle"][5] == pytest.approx(np.mean(at), abs=0.006)


@pytest.mark.integration
@pytest.mark.usefixtures("_small")
def test_every_budget_has_a_row_with_its_probes(runs: dict[str, Path], tmp_path: Path) -> None:
    for folder in runs.values():
        store_figures(folder, tmp_path)
    table = [line.split("|")[1:-1] for line in glove_figures.make_tables(tmp_path)["budget"].splitlines()[2:]]
    assert [cells[0].strip() for cells in table[2:]] == [
        "none",
        *(f"alpha = {alpha}" for alpha in (1, 5, 20, 80)),
        "oracle reset",
        "clairvoyant",
    ]
    probes = [float(cells[4].replace(",", "")) for cells in table[2:7]]
    assert probes == sorted(set(probes)), "more probes at each surprise"
    assert probes[0] == 0


def test_another_run_is_refused(runs: dict[str, Path], tmp_path: Path) -> None:
    """A short run would replace the figures of the whole experiment."""
    with pytest.raises(ExperimentError, match="should be glove-recovery or glove-budget as shipped"):
        store_figures(runs[BUDGET], tmp_path)
    with pytest.raises(ExperimentError, match="is missing; `python -m research glove-figures RUN`"):
        glove_figures.make_tables(tmp_path)
