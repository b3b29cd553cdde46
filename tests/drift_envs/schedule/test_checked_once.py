"""A schedule is checked against a table of knobs once; a changed copy, or another table, is checked again."""

from dataclasses import replace

import pytest

from drift_envs.envs.make import knob_table_of
from drift_envs.errors import ScheduleError
from drift_envs.knobs import KnobTable
from drift_envs.schedule import load_schedule

CONTENT = {"version": 1, "name": "thaw", "drifts": [{"at": 3, "set": {"slip": 1}}]}


def test_a_changed_copy_is_refused():
    table = knob_table_of("DriftFrozenLake-v0")
    schedule = load_schedule(CONTENT, table=table)
    with pytest.raises(ScheduleError, match="slipp"):
        load_schedule(schedule.model_copy(update={"base": {"slipp": 1}}), table=table)


def test_another_table_is_another_check():
    table = knob_table_of("DriftFrozenLake-v0")
    schedule = load_schedule(CONTENT, table=table)
    narrow = KnobTable(tuple(replace(k, bounds=(0.0, 0.5)) if k.name == "slip" else k for k in table.knobs), table.rule)
    with pytest.raises(ScheduleError, match="should be in the interval"):
        load_schedule(schedule, table=narrow)
    with pytest.raises(ScheduleError, match="slip"):
        load_schedule(schedule, table=knob_table_of("DriftMountainCar-v0"))
    other_default = KnobTable(
        tuple(replace(k, default=("SG",)) if k.name == "map" else k for k in table.knobs), table.rule
    )
    assert not schedule.fits(other_default)
    with_map = load_schedule({**CONTENT, "base": {"map": ["SFG"]}}, table=table)
    assert with_map.fits(other_default)
