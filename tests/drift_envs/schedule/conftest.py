import warnings

import numpy as np
import pytest

from drift_envs.errors import DriftWarning, KnobError
from drift_envs.knobs import FrozenMapping, Knob, KnobTable


def _draw_map(arguments, below, generator):
    unknown = set(arguments) - {"size"}
    if unknown:
        raise KnobError(f"`draw` knows no {sorted(unknown)}")
    size = arguments.get("size", len(below) if below else 2)
    return tuple("".join(generator.choice(list("FH"), size)) for _ in range(size))


def _parse_map(rows):
    for number, row in enumerate(rows, start=1):
        if len(row) != len(rows[0]):
            raise KnobError(f"rows must have equal length, row {number} has {len(row)} of {len(rows[0])}")
    return tuple(rows)


def _rule(values):
    if values["low"] > values["high"]:
        yield "low", f"`low` should be at most `high`. Received {values['low']} and {values['high']}"


@pytest.fixture(scope="session")
def table():
    """One knob of every kind."""
    return KnobTable(
        (
            Knob("slip", 0.25, (0.0, 1.0), "a probability"),
            Knob("force", 0.5, (-2.0, 2.0), "a force"),
            Knob("count", 3, (0, 10), "a number of things", kind="integer"),
            Knob("label", "A", ("A", "B", "C", "D"), "a label", kind="string"),
            Knob("flag", False, None, "a switch", kind="boolean"),
            Knob("map", ("SF", "FG"), None, "rows", kind="rows", parse=_parse_map, draw=_draw_map),
            Knob("rewards", FrozenMapping({"a": 1.0, "b": 0.5}), None, "rewards", kind="mapping", parse=FrozenMapping),
            Knob("low", 1, (0, 9), "", kind="integer"),
            Knob("high", 5, (0, 9), "", kind="integer"),
        ),
        _rule,
    )


@pytest.fixture(scope="session")
def make(table):
    """A timeline of some drifts."""
    from drift_envs.schedule import Timeline, load_schedule

    def make_timeline(*drifts, seed=0, base=None, **top):
        data = {"version": 1, "drifts": list(drifts), "base": base or {}, **top}
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".* can be played up to tick", DriftWarning)
            return Timeline(load_schedule(data, table=table), table, seed)

    return make_timeline


@pytest.fixture(scope="session")
def series():
    """The values of one knob at ticks 0 to n - 1."""

    def values_of(timeline, knob, ticks):
        ticks = range(ticks) if isinstance(ticks, (int, np.integer)) else ticks
        return [timeline.values(tick)[knob] for tick in ticks]

    return values_of
