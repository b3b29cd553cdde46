"""Sweeps: the same schedule with one value after the other."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from drift_agents.errors import ExperimentError
from drift_agents.experiment.cell_environment import sweep_schedule
from drift_agents.experiment.config import SweptValue
from drift_agents.experiment.loader import load_experiment, parse_experiment
from drift_agents.experiment.logs import read_rows
from drift_agents.experiment.plan import plan_cells
from drift_agents.experiment.runner import run_experiment

from drift_envs.errors import ScheduleError
from drift_envs.schedule.loader import load_schedule


@pytest.mark.integration
def test_every_value_is_a_schedule_of_its_own(data: dict[str, Any], tmp_path: Path) -> None:
    experiment = parse_experiment({**data, "sweep": {"base.slip": [0.0, 0.5]}, "seeds": 1})
    cells = plan_cells(experiment)
    assert len({cell.key for cell in cells}) == len(cells) == 2 * 6
    path = run_experiment(experiment, tmp_path / "run")
    rows = read_rows(path)
    assert list(dict.fromkeys(row["schedule"] for row in rows)) == ["puddle/slip-0.0", "puddle/slip-0.5"]
    assert len({row["schedule_hash"] for row in rows}) == 2
    steps = {
        name: [row["steps"] for row in rows if row["schedule"] == name and row["policy"] == "clairvoyant"]
        for name in ("puddle/slip-0.0", "puddle/slip-0.5")
    }
    assert steps["puddle/slip-0.0"] == [4] * 8
    assert steps["puddle/slip-0.5"] != [4] * 8
    schedules = json.loads((tmp_path / "run" / "run.json").read_text())["schedules"]
    assert schedules["puddle/slip-0.5"]["sweep"] == {"of": "puddle", "path": "base.slip", "value": 0.5}


@pytest.mark.integration
def test_the_value_in_place_changes_nothing(data: dict[str, Any], tmp_path: Path) -> None:
    plain = read_rows(run_experiment(parse_experiment(data), tmp_path / "plain"))
    swept = read_rows(run_experiment(parse_experiment({**data, "sweep": {"base.slip": 0.0}}), tmp_path / "swept"))
    names = ("schedule", "schedule_hash")
    assert [{**row, **dict.fromkeys(names)} for row in swept] == [{**row, **dict.fromkeys(names)} for row in plain]


def test_agents_draw_their_luck_anew_in_each_environment_of_a_sweep(data: dict[str, Any]) -> None:
    lakes = {**data, "sweep": {"env": ["DriftFrozenLake-v0", "DriftFrozenLake8x8-v0"]}, "seeds": 2}
    assert len({cell.agent_entropy for cell in plan_cells(parse_experiment(lakes))}) == 4
    slips = {**data, "sweep": {"base.slip": [0.0, 0.5]}, "seeds": 2}
    assert {cell.agent_entropy for cell in plan_cells(parse_experiment(slips))} == {(0,), (1,)}


def test_an_environment_may_have_a_sweep_of_its_own_or_none(data: dict[str, Any], schedule_file: Path) -> None:
    own = {**data, "sweep": {"base.slip": [0.0, 0.5]}, "environments": {str(schedule_file): {"sweep": {}}}}
    assert {cell.change for cell in plan_cells(parse_experiment(own))} == {None}
    own["environments"] = {str(schedule_file): {"sweep": {"base.transient": 0.1}}}
    assert {cell.change for cell in plan_cells(parse_experiment(own))} == {SweptValue("base.transient", 0.1)}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (SweptValue("bass.slip", 0.1), "`sweep` should name a place of the schedule. Received 'bass.slip'"),
        (
            SweptValue("drifts.drift-9.at", 1),
            "`sweep` should name a place of the schedule. Received 'drifts.drift-9.at'",
        ),
        (SweptValue("drifts.*.att", 1), "did you mean `at`?"),
    ],
)
def test_places_that_are_not_there(change: SweptValue, expected: str) -> None:
    with pytest.raises((ExperimentError, ScheduleError), match=re.compile(re.escape(expected), re.IGNORECASE)):
        sweep_schedule(load_schedule("frozen_lake/explicit"), change)


def test_a_star_stands_for_every_drift() -> None:
    schedule = sweep_schedule(load_schedule("frozen_lake/explicit"), SweptValue("drifts.*.for", 5))
    assert [drift.duration for drift in schedule.drifts] == [5, 5]


def test_seeds_from_a_number_on(data: dict[str, Any]) -> None:
    assert parse_experiment({**data, "seeds": {"first": 1000, "count": 3}}).seeds == (1000, 1001, 1002)
    with pytest.raises(ExperimentError, match=r"should be `\{first: f, count: n\}` with whole numbers"):
        parse_experiment({**data, "seeds": {"first": 1000}})
    with pytest.raises(ExperimentError, match="should name one place of the schedule"):
        parse_experiment({**data, "sweep": {"base.slip": 0, "base.transient": 0}})


def test_an_environment_may_have_seeds_of_its_own(data: dict[str, Any], schedule_file: Path) -> None:
    own = {**data, "environments": {str(schedule_file): {"seeds": 3, "rounds": 2}}}
    assert {cell.seed for cell in plan_cells(parse_experiment(own))} == {0, 1, 2}
    asked = load_experiment(own, {"seeds": 1, "rounds": 1, "episodes": None})
    assert {cell.seed for cell in plan_cells(asked)} == {0}
    assert asked.settings_of(str(schedule_file)).rounds == 1


def test_fewer_seeds_are_the_first_of_the_file(data: dict[str, Any]) -> None:
    held_out = {**data, "seeds": {"first": 1000, "count": 30}}
    assert load_experiment(held_out, {"seeds": 2}).seeds == (1000, 1001)
    assert load_experiment({**data, "seeds": [7, 9, 11]}, {"seeds": 2}).seeds == (0, 1)
