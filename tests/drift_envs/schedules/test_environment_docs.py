"""The tables of docs/environments.md, and that of all schedules, against the code that they describe."""

from __future__ import annotations

from pathlib import Path

import gymnasium as gym
import pytest

from drift_envs.envs.mountain_car.dynamics import CarSetting, measure, pump, solve_car
from tests.core_ids import CORE_IDS, DAILY
from website.shipped import listed, make_row, read_table

DOCS = Path(__file__).parents[3] / "docs"
TEXT = (DOCS / "environments.md").read_text(encoding="utf-8")
ROWS = read_table()


def rows(start: str) -> list[list[str]]:
    """The cells of every row of a table whose first cell begins like this."""
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in TEXT.splitlines()
        if line.startswith(f"| {start}")
    ]


def test_arguments_are_those_of_the_ids() -> None:
    for argument in ("schedule", "notify", "text", "overlay", "render_mode"):
        assert f"`{argument}=`" in TEXT
    env = gym.make("DriftFrozenLake-v0", schedule=None, notify="none", text=False, overlay=False, render_mode=None)
    assert env.spec is not None


def test_every_shipped_schedule_has_a_row() -> None:
    assert list(ROWS) == listed()


COMPUTED = {entry.schedule for entry in CORE_IDS.values()} | DAILY
LONG = [name for name, row in ROWS.items() if row[3] and name not in COMPUTED]
"""Their figures are compared where the effects of all drifts are computed: see test_shipped_schedules.py."""


@pytest.mark.integration
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in ROWS]
)
def test_the_row_of_a_schedule_is_what_the_code_says(name: str) -> None:
    assert ROWS[name] == make_row(name), "run `python -m website.shipped NAME`"


@pytest.mark.integration
def test_what_the_best_known_policy_of_the_car_reaches() -> None:
    table = rows("0.")
    assert len(table) == 6
    for row in table:
        setting = CarSetting(float(row[0]), float(row[1]), float(row[2]))
        plan = solve_car(setting, 300)
        success, steps = measure(setting, lambda x, v, setting=setting: pump(setting, x, v), 300)
        assert row[3:] == [f"{plan.success:.1%}", f"{plan.mean_steps:.0f}", f"{success:.1%}", f"{steps:.0f}"]
