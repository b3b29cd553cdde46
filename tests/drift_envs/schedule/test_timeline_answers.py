"""What a timeline answers in cases that can be worked out by hand."""

import copy
import pickle
import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drift_envs.errors import ArgumentError
from drift_envs.knobs import KnobTable
from drift_envs.schedule import NEVER, KnobChange, Timeline, load_schedule

RANDOM_DRIFTS = (
    {"name": "storms", "rate": 0.1, "walk": {"slip": 0.1}},
    {"name": "labels", "every": 3, "choice": {"label": ["A", "B", "C"]}},
    {"name": "mix", "at": 5, "kind": "gradual", "over": 40, "set": {"flag": True}},
    {"name": "maps", "at": 9, "set": {"map": {"draw": {"size": 3}}}},
)


def test_no_drift_never_changes(make):
    timeline = make(base={"slip": 0.5})
    assert not timeline.can_change
    assert timeline.names == ("slip",)
    assert timeline.segment(7) == (7, NEVER, {"slip": 0.5})
    assert [phase.id for phase in timeline.phases(10**9)] == ["source"]
    assert timeline.phase(10**9).stop == NEVER
    assert timeline.changes(0, 10**9) == []


def test_names_follow_the_table_and_hold_what_is_written_only(make):
    timeline = make({"at": 3, "set": {"flag": True, "slip": 0.5}}, base={"label": "B"})
    assert timeline.names == ("slip", "label", "flag")
    assert timeline.values(0) == {"slip": 0.25, "label": "B", "flag": False}
    assert timeline.can_change


def test_later_layers_lie_on_top_in_file_order_not_in_time(make, series):
    shown = {"name": "a", "at": 6, "set": {"slip": 0.5}}
    hiding = {"name": "b", "at": 3, "set": {"slip": 0.75}}
    assert series(make(shown, hiding), "slip", (2, 3, 6)) == [0.25, 0.75, 0.75]
    assert series(make(hiding, shown), "slip", (2, 3, 6)) == [0.25, 0.75, 0.5]
    doubled = {"at": 0, "scale": {"slip": 2}}
    assert series(make({"at": 0, "add": {"slip": 0.125}}, doubled), "slip", 1) == [0.75]
    assert series(make(doubled, {"at": 0, "add": {"slip": 0.125}}), "slip", 1) == [0.625]


def test_computed_numbers_are_reflected_after_the_fold(make, series):
    assert series(make({"at": 1, "add": {"slip": 1.0}}), "slip", 2) == [0.25, 0.75]
    # the sum of both lies inside, so nothing is reflected in between
    assert series(make({"at": 0, "add": {"slip": 1.0}}, {"at": 0, "add": {"slip": -1.0}}), "slip", 1) == [0.25]


def test_integers_are_rounded_after_the_fold(make, series):
    timeline = make({"at": 0, "kind": "incremental", "over": 4, "add": {"count": 3}})
    assert series(timeline, "count", 5) == [3, 4, 4, 5, 6]
    assert all(type(value) is int for value in series(timeline, "count", 5))


def test_scaling_without_end_stays_finite(make, series):
    timeline = make({"every": 1, "scale": {"force": 10}}, {"at": 0, "scale": {"slip": 0.0}})
    assert all(-2 <= value <= 2 for value in series(timeline, "force", 1000))
    assert series(timeline, "slip", 1) == [0.0]


@pytest.mark.parametrize(
    ("curve", "middle"),
    [("linear", 0.5), ("sigmoid", 0.5), ("exponential", 0.9241418), ({"steps": 4}, 0.5), ({"steps": 1}, 0.0)],
)
def test_curves_reach_both_ends_exactly(make, series, curve, middle):
    ramp = {"at": 0, "kind": "incremental", "over": 10, "curve": curve, "set": {"slip": 1.0}}
    values = series(make(ramp, base={"slip": 0.0}), "slip", (0, 5, 10, 11))
    assert values == [0.0, pytest.approx(middle), 1.0, 1.0]


def test_overlapping_random_occurrences_join(make):
    timeline = make({"name": "rain", "rate": 0.4, "for": 3, "set": {"slip": 1.0}}, seed=4)
    wet = [timeline.values(tick)["slip"] == 1.0 for tick in range(300)]
    phases = timeline.phases(300)
    assert {phase.drift for phase in phases} == {None, "rain"}
    for phase in phases[:-1]:
        assert all(wet[tick] == (phase.drift == "rain") for tick in range(phase.start, phase.stop))
        assert phase.drift is None or phase.stop - phase.start >= 3
    assert any(phase.stop - phase.start > 3 for phase in phases if phase.drift)


def test_a_choice_differs_from_the_last_and_from_what_it_finds(make, series):
    for seed in range(20):
        values = series(
            make({"every": 1, "choice": {"label": ["A", "B", "C"]}}, base={"label": "C"}, seed=seed), "label", 40
        )
        assert values[0] == "C"
        assert all(old != new for old, new in pairwise(values))
        assert set(values) == {"A", "B", "C"}
    # a value that is no option leaves every option open
    first = {
        make({"at": 1, "choice": {"label": ["A", "B"]}}, base={"label": "D"}, seed=seed).values(1)["label"]
        for seed in range(20)
    }
    assert first == {"A", "B"}


def test_a_walk_has_the_written_sigma(make):
    steps = []
    for seed in range(400):
        timeline = make({"at": 1, "walk": {"force": 0.2}}, seed=seed)
        steps.append(timeline.values(1)["force"] - 0.5)
    spread = (sum(step**2 for step in steps) / len(steps)) ** 0.5
    assert spread == pytest.approx(0.2, rel=0.15)


def test_a_rate_is_the_share_of_ticks(make):
    timeline = make({"rate": 0.05, "add": {"count": 0.0}})
    assert len(timeline.phases(20_000)) == pytest.approx(1000, rel=0.12)


@pytest.mark.parametrize("curve", ["linear", "sigmoid", "exponential", {"steps": 5}])
def test_a_gradual_drifts_share_of_new_ticks_follows_its_ramp(make, curve):
    drift = {"at": 0, "kind": "gradual", "over": 40_000, "curve": curve, "set": {"flag": True}}
    timeline = make(drift, seed=2)
    incremental = make(drift | {"kind": "incremental", "set": {"slip": 1.0}}, base={"slip": 0.0})
    for low in range(0, 40_000, 4000):
        ticks = range(low, low + 4000)
        new = sum(timeline.values(tick)["flag"] for tick in ticks) / len(ticks)
        expected = sum(incremental.values(tick)["slip"] for tick in ticks) / len(ticks)
        assert new == pytest.approx(expected, abs=0.04)
    assert all(timeline.values(tick)["flag"] for tick in range(40_000, 40_100))


def test_drawn_values_build_on_the_layers_beneath(make):
    drift = {"name": "maps", "every": 10, "set": {"map": {"draw": {}}}}
    timeline = make(drift, base={"map": {"draw": {"size": 4}}}, seed=3)
    base, first, second = (timeline.values(tick)["map"] for tick in (0, 10, 20))
    assert len(base) == len(first) == len(second) == 4
    assert len({base, first, second}) == 3
    jumped = make(drift, base={"map": {"draw": {"size": 4}}}, seed=3)
    assert jumped.values(20)["map"] == second
    assert make(drift, base={"map": {"draw": {"size": 4}}}, seed=4).values(0)["map"] != base


@pytest.mark.parametrize("when", [{"every": 10, "for": 4}, {"every": 10, "jitter": 2, "for": 4}])
def test_a_value_that_is_drawn_once_returns_with_each_occurrence(make, when):
    drift = {"name": "maps", **when, "set": {"map": {"draw_once": {}}}}
    timeline = make(drift, base={"map": {"draw": {"size": 4}}}, seed=3)
    late = timeline.values(timeline.first_tick("maps#5"))["map"]  # read before the first
    found = [timeline.values(phase.start)["map"] for phase in timeline.phases(60)]
    base, other = found[:2]
    assert base != other == late
    assert (set(found[::2]), set(found[1::2])) == ({base}, {other})
    again = make({**drift, "set": {"map": {"draw": {}}}}, base={"map": {"draw": {"size": 4}}}, seed=3)
    assert again.values(again.first_tick("maps"))["map"] == other


def test_the_schedules_own_seed_goes_first(make, series):
    free = [series(make(*RANDOM_DRIFTS, seed=seed), "slip", 50) for seed in (0, 1)]
    assert free[0] != free[1]
    data = {"version": 1, "drifts": list(RANDOM_DRIFTS), "seed": 7}
    table = make().table
    schedule = load_schedule(data, table=table)
    assert series(Timeline(schedule, table, 0), "slip", 50) == series(Timeline(schedule, table, 1), "slip", 50)


@pytest.mark.integration
@settings(derandomize=True, deadline=None, max_examples=25)
@given(seed=st.integers(0, 2**128), other=st.integers(0, 2**128), asked=st.lists(st.integers(0, 5000), max_size=5))
def test_copies_and_equal_seeds_agree_and_other_seeds_differ(make, series, seed, other, asked):
    timeline = make(*RANDOM_DRIFTS, seed=seed)
    for tick in asked:
        timeline.values(tick)
    alike = [make(*RANDOM_DRIFTS, seed=seed), copy.deepcopy(timeline)]
    for twin in alike:
        assert [twin.values(tick) for tick in range(60)] == [timeline.values(tick) for tick in range(60)]
        assert twin.phases(60) == timeline.phases(60)
        assert twin.changes(0, 60) == timeline.changes(0, 60)
    if other != seed:
        different = make(*RANDOM_DRIFTS, seed=other)
        assert [different.values(tick) for tick in range(200)] != [timeline.values(tick) for tick in range(200)]


def test_a_pickle_agrees():
    # a table can be pickled if its functions can: this one has none
    from drift_envs.knobs import Knob

    plain = KnobTable((Knob("slip", 0.25, (0.0, 1.0), "a probability"),))
    timeline = Timeline(load_schedule({"version": 1, "drifts": [RANDOM_DRIFTS[0]]}, table=plain), plain, 5)
    expected = [timeline.values(tick) for tick in range(300)]
    back = pickle.loads(pickle.dumps(timeline))
    assert [back.values(tick) for tick in range(300)] == expected
    assert len(pickle.dumps(timeline)) < 5000


def test_adding_a_drift_leaves_the_others_random_numbers_alone(make, series):
    storms = {"rate": 0.1, "walk": {"slip": 0.1}}
    extra = {"rate": 0.5, "walk": {"force": 0.1}}
    assert series(make(storms), "slip", 100) == series(make(storms, extra), "slip", 100)


def test_changes_tell_which_drift_and_skip_what_is_hidden(make):
    below = {"name": "below", "at": 4, "set": {"slip": 0.5}}
    above = {"name": "above", "at": 4, "set": {"slip": 0.75}}
    assert make(below, above).changes(0, 10) == [KnobChange(4, "slip", 0.25, 0.75, "above")]
    both = [{"name": "a", "at": 4, "add": {"slip": 0.25}}, {"name": "b", "at": 4, "add": {"slip": 0.25}}]
    assert make(*both).changes(0, 10) == [KnobChange(4, "slip", 0.25, 0.75, "a+b")]
    assert make(*both).changes(4, 10) == []
    assert make(*both).changes(0, 4) == []
    assert make({"name": "now", "at": 0, "set": {"slip": 0.5}}).changes(0, 10) == []


def test_phases_are_named_after_what_holds_and_numbered_by_visit(make):
    timeline = make(
        {"name": "drift", "at": 3, "set": {"slip": 0.5}}, {"name": "tide", "every": 5, "for": 2, "set": {"count": 1}}
    )
    assert [(phase.id, phase.start) for phase in timeline.phases(14)] == [
        ("source", 0),
        ("drift", 3),
        ("tide", 5),
        ("drift#2", 7),
        ("tide#2", 10),
        ("drift#3", 12),
    ]
    assert timeline.first_tick("tide#2") == 10
    assert timeline.phase(11).drift == "tide"
    assert timeline.phase(0).drift is None
    assert timeline.phase(5 * 10**6 + 1).id == f"tide#{10**6}"
    assert timeline.phase(5 * 10**14 + 1).id == f"tide#{10**14}"
    assert timeline.first_tick(f"tide#{10**14}") == 5 * 10**14


def test_of_two_drifts_at_one_tick_the_later_in_the_file_has_the_phase(make):
    one, other = {"name": "a", "at": 5, "set": {"slip": 0.5}}, {"name": "b", "at": 5, "set": {"count": 1}}
    assert [phase.id for phase in make(one, other).phases(9)] == ["source", "b"]
    assert [phase.id for phase in make(other, one).phases(9)] == ["source", "a"]


def test_a_drift_at_tick_0_leaves_no_source(make):
    assert [phase.id for phase in make({"name": "now", "at": 0, "set": {"slip": 0.5}}).phases(5)] == ["now"]


def test_first_tick_waits_for_the_ramp(make):
    ramp = {"name": "thaw", "at": 10, "kind": "incremental", "over": 5, "set": {"slip": 1.0}}
    timeline = make(ramp)
    assert timeline.first_tick("thaw") == 15
    assert timeline.values(15)["slip"] == 1.0
    assert timeline.first_tick("source") == 0
    cut = make(ramp, {"name": "other", "at": 12, "set": {"count": 1}})
    with pytest.raises(ArgumentError, match="`thaw` ends at tick 12, before the ramp of its drift is up at tick 15"):
        cut.first_tick("thaw")
    assert cut.first_tick("other") == 12
    resumed = make(ramp, {"name": "other", "at": 12, "for": 1, "set": {"count": 1}})
    assert resumed.phase(14).id == "thaw#2"
    assert resumed.first_tick("thaw#2") == 15


@pytest.mark.parametrize("name", ["thow", "thaw#2", "thaw#1", "thaw#x", "", "#"])
def test_an_unknown_phase_is_refused_with_the_known_ones(make, name):
    timeline = make({"name": "thaw", "at": 10, "set": {"slip": 1.0}})
    with pytest.raises(ArgumentError, match=re.escape(f"Received {name!r}")):
        timeline.first_tick(name)


@pytest.mark.parametrize("tick", [-1, 2**60, True, 1.5, "3"])
def test_a_tick_that_is_none_is_refused(make, tick):
    timeline = make({"at": 10, "set": {"slip": 1.0}})
    with pytest.raises((ArgumentError, TypeError)):
        timeline.values(tick)
    with pytest.raises(ArgumentError, match="`tick` should be a whole number"):
        timeline.phase(tick)


@pytest.mark.parametrize("seed", [-1, None, 0.5, True])
def test_a_seed_that_is_none_is_refused(make, seed):
    with pytest.raises(ArgumentError, match="`seed` should be a whole number, at least 0"):
        make(seed=seed)


def test_far_questions_are_cheap_or_refused(make, monkeypatch):
    closed = make({"every": 7, "for": 2, "set": {"slip": 0.5}})
    assert closed.values(7 * 10**14 + 1)["slip"] == 0.5
    walk = make({"rate": 1.0, "walk": {"slip": 0.05}})
    assert walk.values(200_000) == make({"rate": 1.0, "walk": {"slip": 0.05}}).values(200_000)
    with pytest.raises(ArgumentError, match="random events before it"):
        walk.values(10**12)
    with pytest.raises(ArgumentError, match="random events before it"):
        make({"every": 1, "walk": {"slip": 0.05}}).values(10**12)
    monkeypatch.setattr("drift_envs.schedule.phases._SEARCHED", 4)
    monkeypatch.setattr("drift_envs.schedule.phases._MOST_CHUNKS", 4)
    with pytest.raises(ArgumentError, match="phases before it"):
        make({"every": 1, "add": {"slip": 0.05}}).phases(10**9)


def test_a_schedule_for_another_table_is_refused(make):
    with pytest.raises(ArgumentError, match="sets knobs that the environment does not have: slip"):
        Timeline(make({"at": 1, "set": {"slip": 1.0}}).schedule, KnobTable(()), 0)


@pytest.mark.parametrize("start", [0, 1, 999, 2500, 5999, 6100])
def test_quiet_stretches_end_where_ramps_begin(make, start):
    plateau = {"at": 1000, "for": 6000, "kind": "incremental", "over": 1000, "set": {"slip": 1.0}}
    timeline = make(plateau, {"every": 3000, "add": {"count": 1}}, base={"slip": 0.0, "count": 0})

    def expected(tick):
        return {"slip": min(max(min(tick - 1000, 7000 - tick) / 1000, 0.0), 1.0), "count": tick // 3000}

    tick = start
    while tick < 9500:
        segment = timeline.segment(tick)
        for inside in {tick, (tick + min(segment.stop, 9500)) // 2, min(segment.stop, 9500) - 1}:
            assert segment.values == pytest.approx(expected(inside))
        tick = segment.stop
    assert timeline.segment(2000 + start % 2).stop == 3000
