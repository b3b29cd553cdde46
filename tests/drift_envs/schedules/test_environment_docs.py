"""The tables of docs/environments.md against the code that they describe."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import gymnasium as gym
import pytest

from drift_envs.cli.scheduled import open_schedule
from drift_envs.envs.mountain_car.oracle_physics import CarSetting, pump
from drift_envs.envs.mountain_car.oracle_plan import measure, solve_car
from drift_envs.registration import knob_table_of
from drift_envs.schedule import load_schedule, shipped_schedules
from tests.core_ids import CORE_IDS, kinds_of_schedules

TEXT = (Path(__file__).parents[3] / "docs" / "environments.md").read_text(encoding="utf-8")
NAMES = [name for name in shipped_schedules() if getattr(load_schedule(name), "env", None) in CORE_IDS]


def rows(start: str) -> list[list[str]]:
    """The cells of every row of a table whose first cell begins like this."""
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in TEXT.splitlines()
        if line.startswith(f"| {start}")
    ]


def test_every_id_with_its_limit_and_schedule() -> None:
    found = {row[0].strip("`"): (int(row[1]), row[2].strip("`")) for row in rows("`Drift")}
    assert found == {env_id: (entry.limit, entry.schedule) for env_id, entry in CORE_IDS.items()}


@pytest.mark.parametrize("env_id", CORE_IDS)
def test_every_knob_is_documented(env_id: str) -> None:
    for name in knob_table_of(env_id):
        assert f"`{name}`" in TEXT, name


def test_arguments_are_those_of_the_ids() -> None:
    for argument in ("schedule", "notify", "text", "overlay", "render_mode"):
        assert f"`{argument}=`" in TEXT
    env = gym.make("DriftFrozenLake-v0", schedule=None, notify="none", text=False, overlay=False, render_mode=None)
    assert env.spec is not None


LISTED = [name for name in NAMES if not ("/verify" in name and ":" in name)]
"""All but the points of the map of verification, of which each file has one row."""
KINDS = {name for _, name in kinds_of_schedules()}


def test_every_shipped_schedule_has_a_row() -> None:
    prefixes = ("`frozen_lake/", "`house/", "`mountain_car", "`tools/", "`webshop/")
    found = [row[0].strip("`") for prefix in prefixes for row in rows(prefix)]
    assert sorted(found) == sorted(LISTED)


@pytest.mark.integration
@pytest.mark.parametrize(
    "name", [name if name in KINDS else pytest.param(name, marks=pytest.mark.slow) for name in LISTED]
)
def test_the_figures_of_a_schedule(name: str) -> None:
    (row,) = [row for row in rows(f"`{name}` ") if row[0] == f"`{name}`"]
    plan = open_schedule(name)
    assert plan.oracle is not None
    phases = plan.phases(3)
    effects = [plan.oracle.effect(plan.full_tick(old), plan.full_tick(new)) for old, new in pairwise(phases)]
    assert row[1] == ", ".join(phase.id for phase in phases[1:])
    assert row[2] == ", ".join(f"{effect.magnitude:.0%}" for effect in effects)
    assert row[3] == ", ".join(f"{effect.loss:.0%}" for effect in effects)
    assert row[4] == plan.schedule.description
    table = TEXT.split("Controls are left out")[1 if plan.schedule.control else 0]
    assert f"| `{name}` |" in table


@pytest.mark.integration
def test_what_the_best_known_policy_of_the_car_reaches() -> None:
    table = rows("0.")
    assert len(table) == 6
    for row in table:
        setting = CarSetting(float(row[0]), float(row[1]), float(row[2]))
        plan = solve_car(setting, 300)
        success, steps = measure(setting, lambda x, v, setting=setting: pump(setting, x, v), 300)
        assert row[3:] == [f"{plan.success:.1%}", f"{plan.mean_steps:.0f}", f"{success:.1%}", f"{steps:.0f}"]
