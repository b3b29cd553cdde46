"""How severe and how visible drifts are."""

from __future__ import annotations

import csv

import pytest

from drift_envs.cli import main
from drift_envs.envs.frozen_lake.oracle import LakeSetting, met_share
from drift_envs.errors import ArgumentError, NoOracleError
from drift_envs.knobs import FrozenMapping
from drift_envs.oracle import measure_drifts
from drift_envs.schedule import load_schedule


def test_the_share_of_ways_counts_ties_alike() -> None:
    # Two ways of four moves lead round the hole; closing one of them meets half of the walks.
    old, new = LakeSetting(("SFF", "FHF", "FFG")), LakeSetting(("SHF", "FFF", "FFG"))
    assert met_share(old, old, 100) == 0.0
    assert met_share(old, new, 100) == 0.5
    # On the lower way two actions change: into the hole that is none any more. The walk takes neither.
    assert met_share(old, LakeSetting(("SFF", "FFF", "FFG")), 100) == 0.0


def test_chance_counts_by_its_probability() -> None:
    # One tile before the goal; a slip bumps into the border, so that the walk meets the change sooner or later.
    old = LakeSetting(("SFG",), slip=0.3)
    assert met_share(old, old._replace(slip=0.0), 100) == 1.0
    far = old._replace(goal_rewards=FrozenMapping({"0,2": 0.5}))
    # The last move is met in all walks that reach it within the limit of two moves: both go as intended.
    assert met_share(old, far, 2) == pytest.approx(0.7, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("frozen_lake/explicit", 1.0, 1.0),
        ("frozen_lake/harmless", 0.0, 0.0),
        ("frozen_lake/explicit:off-path", 0.0, 0.0),
        ("frozen_lake/explicit:partial", 0.05, 0.95),
        ("mountain_car/reversed", 1.0, 1.0),
        ("mountain_car/null", 0.0, 0.0),
    ],
)
def test_schedules_have_their_place_on_the_map(name: str, least: float, most: float) -> None:
    found = measure_drifts(load_schedule(name), episodes=2)
    assert all(least <= one.visibility <= most for one in found)
    assert all(0.0 <= one.severity <= 1.0 for one in found)


def test_environments_without_an_oracle_are_refused() -> None:
    with pytest.raises(NoOracleError, match="names no environment"):
        measure_drifts(load_schedule({"version": 1, "drifts": []}))
    with pytest.raises(ArgumentError, match="`drifts` should be a whole number, at least 1"):
        measure_drifts(load_schedule("frozen_lake/explicit"), drifts=0)


def test_the_command_prints_and_writes(tmp_path, capsys) -> None:
    out = tmp_path / "severity.csv"
    assert main(["severity", "frozen_lake/explicit", "frozen_lake/null", "--out", str(out)]) == 0
    assert "40.0%" in capsys.readouterr().out
    rows = list(csv.DictReader(out.read_text("utf-8").splitlines()))
    assert [row["visibility"] for row in rows] == ["1", "1", "0", "0"]
    assert main(["severity", "frozen_lake/null", "--out", str(tmp_path / "new" / "a.csv")]) == 0
    assert (tmp_path / "new" / "a.csv").is_file()
    assert main(["severity", "frozen_lake/explicit", "--out", str(out / "a.csv")]) != 0
    assert "`--out` should be a file that can be written: " in capsys.readouterr().err
