"""Going through time tick by tick gives what asking for each tick gives."""

import itertools

import pytest

from drift_envs.knobs import Knob, KnobTable
from drift_envs.schedule import NEVER, Timeline, load_schedule

TABLE = KnobTable((Knob("a", 0.0, (0.0, 1.0), "a"), Knob("b", 0.0, (0.0, 1.0), "b")))
RAMP = {"name": "ramp", "at": 300, "kind": "incremental", "over": 1_000, "set": {"a": 1.0}}
OTHER = {"name": "other", "at": 900, "kind": "incremental", "over": 70, "set": {"b": 0.5}}
FLIPS = {"name": "flips", "every": 9, "for": 3, "set": {"b": 1.0}}


@pytest.mark.parametrize("drifts", [[], [RAMP], [RAMP, OTHER], [FLIPS], [RAMP, FLIPS]], ids=len)
def test_a_walk_sees_every_tick(drifts):
    plan = load_schedule({"version": 1, "name": "test", "drifts": drifts}, table=TABLE)
    for start in (0, 299, 511, 512, 1_300):
        walked, asked = Timeline(plan, TABLE, 3), Timeline(plan, TABLE, 3)
        tick = start
        for stop, values in itertools.islice(walked.walk(start), 2_000):
            assert stop > tick
            for inside in {tick, min(stop, tick + 5) - 1}:
                assert asked.values(inside) == values
            tick = stop
            if stop == NEVER:
                break
        else:
            assert tick >= start + 1_500
