"""The page about readers: tables, the stored figures, and what it refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from drift_agents.errors import ExperimentError
from drift_agents.experiment.loader import load_experiment, parse_experiment
from drift_agents.experiment.runner import run_experiment

from research.readers import (
    EXPERIMENTS,
    PAGE,
    RESULTS,
    TEMPERS,
    find_experiment,
    short_form,
    store_figures,
    summarise,
    tabulate_formats,
    tabulate_phases,
    tabulate_verifiers,
    write_readers,
)
from tests.research.parts import READER


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


def test_phases_have_the_mean_over_instances() -> None:
    rows = [row("glove", "source", seed == 0, seed) for seed in (0, 1)]
    (table,) = tabulate_phases(summarise(rows))
    ((cells, _),) = table.rows
    assert cells[0] == "glove"
    assert cells[1].startswith("50 [")


def test_verifiers_have_one_figure_each_after_the_drifts() -> None:
    phases = ("source", "drift-1", "drift-2")
    rows = [row("none", phase, phase == "source", seed) for phase in phases for seed in (0, 1)]
    rows += [row("glove", phase, phase != "drift-1" or seed == 0, seed) for phase in phases for seed in (0, 1)]
    rows += [row("oracle_reset", phase, True, seed, loop_steps=5) for phase in phases for seed in (0, 1)]
    (table,) = tabulate_verifiers(summarise(rows))
    ((cells, _),) = table.rows
    assert list(cells) == ["`message_reader`", "0, 75, 100", "17"]


def test_formats_are_compared_instance_by_instance() -> None:
    rows = [
        {**row("glove", phase, form == "brief" and phase == "drift-1", seed), "policy": policy}
        for form in ("brief", "ranked")
        for policy in (f"message_reader(format={form}, temper={temper})" for temper in TEMPERS)
        for phase in ("source", "drift-1", "drift-2")
        for seed in (0, 1)
    ]
    (table,) = tabulate_formats(summarise(rows))
    cells = [list(cells) for cells, _ in table.rows]
    assert cells[0] == ["eager", "before the drifts", "+0.0 [+0.0, +0.0]"]
    assert cells[1] == ["eager", "after the drifts", "+50.0 [+50.0, +50.0]"]
    assert len(cells) == 2 * len(TEMPERS)


SHORT = {
    "schedules": ["frozen_lake/explicit:family"],
    "agents": {"memory": "vanilla", "verifier": ["none", "glove"], "policy": READER},
    "references": ["oracle_reset"],
    "seeds": 2,
    "rounds": 2,
    "trace": "none",
}


def play(name: str, folder: Path) -> Path:
    run_experiment(parse_experiment(SHORT | {"name": name}), folder)
    return folder


def test_the_page_is_made_from_the_figures_of_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("research.readers.load_experiment", lambda path: parse_experiment(SHORT | {"name": path.stem}))
    monkeypatch.setattr("research.readers.EXPERIMENTS", ("readers",))
    store_figures([play("readers", tmp_path / "any")], tmp_path / "figures")
    page = tmp_path / "page.md"
    page.write_text("<!-- table readers -->\n<!-- end -->\n<!-- table other -->\nkept\n<!-- end -->\n", "utf-8")
    text = write_readers(page, tmp_path / "figures").read_text("utf-8")
    assert "`frozen_lake/explicit:family`: 2 instances, 2 rounds a phase." in text
    assert len(re.findall(r"^\| *(none|glove|oracle_reset) ", text, re.MULTILINE)) == 3
    assert "kept" in text


def test_other_runs_and_missing_figures_are_refused(tmp_path: Path) -> None:
    """A run of fewer instances too, whose figures would replace those of all."""
    with pytest.raises(ExperimentError, match=r"the run should be one of readers.*Received a run of other"):
        store_figures([play("other", tmp_path / "run")], tmp_path / "figures")
    with pytest.raises(
        ExperimentError, match="would replace those of the whole experiment readers, which was changed here"
    ):
        store_figures([play("readers", tmp_path / "short")], tmp_path / "figures")
    assert not (tmp_path / "figures").exists()
    with pytest.raises(ExperimentError, match="has no figures of `readers`"):
        write_readers(results=tmp_path / "figures")


def test_the_document_shows_the_stored_figures(tmp_path: Path) -> None:
    page = tmp_path / "readers.md"
    page.write_bytes(PAGE.read_bytes())
    assert write_readers(page).read_bytes() == PAGE.read_bytes()


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_stored_figures_are_those_of_the_shipped_experiments(name: str) -> None:
    stored = json.loads((RESULTS / f"{name}.json").read_text("utf-8"))
    assert stored["config_hash"] == short_form(load_experiment(find_experiment(name))).config_hash()
