"""Changes in arrays say the same as tick by tick."""

from __future__ import annotations

import numpy as np
import pytest

from drift_envs.envs.make import knob_table_of
from drift_envs.knobs import Knob, KnobTable
from drift_envs.schedule import Timeline, load_schedule
from drift_envs.schedule.timeline import needs_seed

DRIFTS = {
    "random": [{"rate": 0.05, "for": 5, "set": {"slip": 0.5}}, {"rate": 0.01, "walk": {"slip": 0.05}}],
    "ramps": [
        {"at": 100, "every": 300, "for": 90, "kind": "incremental", "over": 40, "set": {"slip": 0.6}},
        {"rate": 0.01, "choice": {"slip": [0.1, 0.2, 0.3]}},
    ],
    "coins": [{"every": 50, "kind": "gradual", "over": 20, "for": 45, "set": {"slip": 0.9}}],
    "once": [{"at": 7, "set": {"slip": 0.3}}],
    "none": [],
}


@pytest.mark.parametrize(("most", "limit"), [(3, 10**9), (64, 10**9), (64, 90)])
@pytest.mark.parametrize("name", DRIFTS)
def test_turns_are_the_values_tick_by_tick(name, most, limit):
    table = knob_table_of("DriftFrozenLake-v0")
    schedule = load_schedule({"version": 1, "name": "t", "base": {"slip": 0.1}, "drifts": DRIFTS[name]}, table=table)
    timeline = Timeline(schedule, table, 3)
    tick, found = 0, np.full(2000, np.nan)
    while tick < 2000:
        changes = timeline.change_points(tick, most, tick + limit)
        assert changes.ticks[0] == tick
        assert changes.stop <= tick + limit
        assert changes.stop > changes.ticks[-1]
        for start, value in zip(changes.ticks.tolist(), changes.columns[0], strict=True):
            found[start : min(changes.stop, 2000)] = value
        tick = changes.stop
    expected = [timeline.values(tick)["slip"] for tick in range(2000)]
    assert found.tolist() == expected
    assert timeline.columns(700, 500)[0].tolist() == expected[700:1200]


def test_more_drawn_values_in_a_stretch_than_are_remembered():
    def draw(arguments, below, generator):
        return (str(generator.integers(1 << 60)),)

    table = KnobTable((Knob("map", ("0",), None, "a map", "rows", draw=draw),))
    drift = {"name": "flood", "every": 2, "for": 1, "set": {"map": {"draw": {}}}}
    timeline = Timeline(load_schedule({"version": 1, "drifts": [drift]}, table=table), table, 3)
    changes = timeline.change_points(0, 10_000, 10_001)
    (maps,) = changes.columns
    assert len(maps) == 10_000 == len(set(maps[1::2])) * 2
    assert set(maps[::2]) == {("0",)}
    again = Timeline(timeline.schedule, table, 3)
    for place in (1, 4095, 4097, 9999):
        assert maps[place] == again.values(int(changes.ticks[place]))["map"]


def test_what_needs_a_seed():
    table = knob_table_of("DriftFrozenLake-v0")
    wanted = {"random": True, "ramps": True, "coins": True, "once": False, "none": False}
    for name, drifts in DRIFTS.items():
        plain = {"version": 1, "name": "t", "drifts": drifts}
        assert needs_seed(load_schedule(plain, table=table), table) is wanted[name]
        assert not needs_seed(load_schedule({**plain, "seed": 4}, table=table), table)
    drawn = {"version": 1, "name": "t", "base": {"map": {"draw": {"size": 4, "holes": 2}}}, "drifts": []}
    assert needs_seed(load_schedule(drawn, table=table), table)
