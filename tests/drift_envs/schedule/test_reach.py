"""Rules between knobs hold on every combination of values that a schedule can reach, and on no other."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drift_envs.knobs import Knob, KnobTable
from drift_envs.schedule import Schedule, Timeline
from drift_envs.schedule.loader import MOST_COMBINATIONS, combination_findings

PROFILE = settings(derandomize=True, deadline=None)


def schedule_of(*drifts, base=None):
    return Schedule.model_validate({"version": 1, "name": "s", "base": base or {}, "drifts": list(drifts)})


def findings(table, *drifts, base=None):
    return list(combination_findings(schedule_of(*drifts, base=base), table))


def test_knobs_that_turn_together_are_not_torn_apart(table):
    assert findings(table, {"at": 5, "set": {"low": 7, "high": 9}}, {"at": 9, "set": {"low": 0, "high": 2}}) == []


def test_the_place_of_a_broken_rule_is_what_turned_the_knob_last(table):
    rule = "`low` should be at most `high`. Received"
    assert findings(table, base={"low": 6}) == [(("base", "low"), f"{rule} 6 and 5")]
    assert findings(table, {"at": 5, "set": {"high": 0}}, base={"low": 2}) == [
        (("base", "low"), f"{rule} 2 and 0 (while drift-1 holds)")
    ]
    assert findings(table, {"at": 5, "set": {"high": 0}}) == [(("drifts", 0), f"{rule} 1 and 0 (while drift-1 holds)")]
    assert findings(table, {"at": 1, "set": {"low": 3}}, {"at": 5, "set": {"high": 2}}) == [
        (("drifts", 0, "set", "low"), f"{rule} 3 and 2 (while drift-1, drift-2 hold)")
    ]


@pytest.mark.parametrize(
    ("drifts", "breaks"),
    [
        # windows that never meet, and windows that do
        ([{"at": 5, "for": 2, "set": {"low": 4}}, {"at": 7, "for": 2, "set": {"high": 3}}], False),
        ([{"at": 5, "for": 3, "set": {"low": 4}}, {"at": 7, "for": 2, "set": {"high": 3}}], True),
        # periods 4 and 6 with offsets of different parity never meet, with equal parity they do
        (
            [{"every": 4, "at": 0, "for": 1, "set": {"low": 4}}, {"every": 6, "at": 1, "for": 1, "set": {"high": 3}}],
            False,
        ),
        (
            [{"every": 4, "at": 0, "for": 1, "set": {"low": 4}}, {"every": 6, "at": 2, "for": 1, "set": {"high": 3}}],
            True,
        ),
        # a late drift meets one that recurs from the beginning
        ([{"every": 4, "for": 1, "set": {"low": 4}}, {"at": 10**7 + 1, "set": {"high": 3}}], True),
        # random times meet everything that is not over before
        ([{"rate": 0.1, "at": 20, "set": {"low": 4}}, {"at": 7, "for": 13, "set": {"high": 3}}], False),
        ([{"rate": 0.1, "at": 20, "set": {"low": 4}}, {"at": 7, "for": 14, "set": {"high": 3}}], True),
        # a choice may draw any of its options
        ([{"at": 3, "choice": {"low": [2, 3, 6]}}], True),
        ([{"at": 3, "choice": {"low": [2, 3, 5]}}], False),
        # while a gradual drift is on its ramp, old and new mix
        ([{"at": 3, "kind": "gradual", "over": 5, "set": {"low": 6, "high": 8}}, {"at": 9, "set": {"high": 7}}], False),
        ([{"at": 3, "kind": "gradual", "over": 5, "set": {"high": 8}}, {"at": 7, "set": {"low": 6}}], True),
        ([{"at": 3, "kind": "gradual", "over": 5, "set": {"high": 8}}, {"at": 8, "set": {"low": 6}}], False),
        (
            [
                {"at": 3, "for": 10, "kind": "gradual", "over": 3, "set": {"high": 8}},
                {"at": 6, "for": 5, "set": {"low": 6}},
            ],
            False,
        ),
        (
            [
                {"at": 3, "for": 10, "kind": "gradual", "over": 3, "set": {"high": 8}},
                {"at": 6, "for": 6, "set": {"low": 6}},
            ],
            True,
        ),
        # sums go on until they meet
        ([{"every": 10, "add": {"low": 2}}], True),
        ([{"at": 10, "jitter": 2, "for": 3, "set": {"low": 4}}, {"at": 14, "set": {"high": 3}}], True),
        ([{"at": 10, "jitter": 2, "for": 3, "set": {"low": 4}}, {"at": 15, "set": {"high": 3}}], False),
        ([{"at": 12, "set": {"high": 9}}, {"at": 14, "jitter": 2, "set": {"low": 6}}], False),
        ([{"at": 12, "set": {"high": 9}}, {"at": 14, "jitter": 3, "set": {"low": 6}}], True),
        ([{"at": 3, "add": {"low": 4}}], False),
        ([{"at": 3, "scale": {"low": 6}}], True),
        # a walk may come to its bounds
        ([{"at": 3, "walk": {"low": 0.1}}], True),
    ],
)
def test_reachable_combinations_and_no_others(table, drifts, breaks):
    assert bool(findings(table, *drifts)) == breaks


def test_the_number_of_combinations_is_bounded():
    calls = []
    names = [f"k{number}" for number in range(20)]
    table = KnobTable(
        tuple(Knob(name, 0.0, (0.0, 1.0), "") for name in names), lambda values: calls.append(1) or iter(())
    )
    assert findings(table, *({"name": name, "rate": 0.5, "set": {name: 1.0}} for name in names)) == []
    assert len(calls) == MOST_COMBINATIONS


@st.composite
def fixed_drifts(draw):
    knob, operation = draw(st.sampled_from(["low", "high"])), draw(st.sampled_from(["set", "set", "add"]))
    drift = {operation: {knob: draw(st.integers(0, 9) if operation == "set" else st.integers(-1, 1))}}
    if draw(st.booleans()):
        drift |= {"at": draw(st.integers(0, 15))}
    if "at" not in drift or operation == "set":
        drift |= {"every": draw(st.integers(2, 6))} if draw(st.booleans()) or "at" not in drift else {}
    if operation == "add" or draw(st.booleans()):
        drift["for"] = draw(st.integers(1, drift.get("every", 9) - 1))
    return drift


@PROFILE
@given(drifts=st.lists(fixed_drifts(), min_size=1, max_size=3))
def test_fixed_ticks_are_followed_exactly(table, drifts):
    schedule = schedule_of(*drifts)
    timeline = Timeline(schedule, table, 0)
    horizon = 40 + 2 * math.lcm(*(drift.get("every", 1) for drift in drifts))
    broken = any(table.problems(timeline.values(tick)) for tick in range(horizon))
    assert bool(list(combination_findings(schedule, table))) == broken


@PROFILE
@given(
    drifts=st.lists(
        st.one_of(
            fixed_drifts(),
            st.builds(lambda q, low: {"rate": q, "for": 3, "set": {"low": low}}, st.just(0.3), st.integers(0, 9)),
            st.builds(
                lambda at, low: {"at": at, "jitter": 3, "set": {"low": low}}, st.integers(3, 9), st.integers(0, 9)
            ),
            st.builds(lambda low: {"every": 9, "jitter": 2, "for": 3, "set": {"low": low}}, st.integers(0, 9)),
            st.builds(lambda high: {"every": 9, "jitter": 2, "for": 4, "add": {"high": high}}, st.integers(-9, 2)),
            st.builds(lambda a, b: {"every": 4, "choice": {"high": [a, b]}}, st.integers(0, 4), st.integers(5, 9)),
            st.builds(
                lambda at, high: {"at": at, "kind": "gradual", "over": 6, "set": {"high": high}},
                st.integers(0, 20),
                st.integers(0, 9),
            ),
        ),
        min_size=1,
        max_size=3,
    ),
    seed=st.integers(0, 9),
)
def test_what_is_let_through_never_breaks_a_rule(table, drifts, seed):
    schedule = schedule_of(*drifts)
    if not list(combination_findings(schedule, table)):
        timeline = Timeline(schedule, table, seed)
        assert not any(table.problems(timeline.values(tick)) for tick in range(120))
