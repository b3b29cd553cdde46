"""Holds the timeline against a fold that goes through every tick and every occurrence, one by one."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drift_envs.schedule import Timeline, load_schedule
from drift_envs.schedule import phases as phases_module
from drift_envs.schedule.model import Steps
from drift_envs.schedule.occurrences import Purpose, RandomStream, UniformStream, occurrences_of

pytestmark = pytest.mark.filterwarnings("ignore:.* can be played up to tick")
TICKS = 50
PROFILE = settings(
    derandomize=True, deadline=None
)  # the profile of the suite has 50 examples, that of `make check` fewer


def curve_of(curve, u):
    u = min(max(u, 0.0), 1.0)
    if isinstance(curve, Steps):
        return math.floor(u * curve.steps) / curve.steps
    if curve == "sigmoid":
        rise = [1 / (1 + math.exp(-12 * (x - 0.5))) for x in (0, u, 1)]
        return (rise[1] - rise[0]) / (rise[2] - rise[0])
    if curve == "exponential":
        return (1 - math.exp(-5 * u)) / (1 - math.exp(-5))
    return u


def starts_of(drift, stream):
    if drift.rate is None:
        first = drift.at if drift.at is not None else drift.every
        starts = list(range(first, TICKS + drift.jitter, drift.every)) if drift.every else [first]
        if drift.jitter:
            uniform = UniformStream(stream, Purpose.JITTER).at(np.arange(len(starts)))
            choices = [list(range(start - drift.jitter, start + drift.jitter + 1)) for start in starts]
            starts = [near[int(u * len(near))] for near, u in zip(choices, uniform.tolist(), strict=True)]
        return starts
    occurrences = occurrences_of(drift, stream)
    counts = [int(occurrences.count(np.array([tick]))[0]) for tick in range(-1, TICKS)]
    return [tick for tick in range(TICKS) if counts[tick + 1] > counts[tick]]


def runs_of(drift, starts):
    if drift.duration is None:
        return [(start, None) for start in starts]
    runs = []
    for start in starts:
        if runs and start < runs[-1][1]:
            runs[-1] = (runs[-1][0], start + drift.duration)
        else:
            runs.append((start, start + drift.duration))
    return runs


def mirrored(value, low, high):
    while not low <= value <= high:
        value = 2 * low - value if value < low else 2 * high - value
    return value


class Reference:
    """The values at each tick, as slowly and plainly as can be."""

    def __init__(self, timeline):
        self.timeline, self.table = timeline, timeline.table
        seed = timeline.seed if timeline.schedule.seed is None else timeline.schedule.seed
        streams = [RandomStream(seed, index) for index in range(len(timeline.schedule.drifts))]
        self.drifts = [
            (drift, runs_of(drift, starts_of(drift, stream)), UniformStream(stream))
            for drift, stream in zip(timeline.schedule.drifts, streams, strict=True)
        ]
        self.chosen = {}

    def weight(self, drift, run, coins, tick):
        start, end = run
        if tick < start or (end is not None and tick >= end):
            return 0.0
        if not drift.over:
            return 1.0
        w = curve_of(drift.curve, (tick - start) / drift.over)
        if end is not None:
            w = min(w, curve_of(drift.curve, (end - tick) / drift.over))
        if drift.kind == "gradual":
            w = 1.0 if float(coins.at(np.array([tick]))[0]) < w else 0.0
        return w

    def layer(self, name, index):
        column = next(column for column in self.timeline._columns if column.knob.name == name)
        return next(layer for layer in column.layers if layer.ramp.drift is self.drifts[index][0])

    def target(self, drift, index, name, run_index):
        """The value that an occurrence aims at, or the step that it takes, drawn in order."""
        if name in drift.walk:
            return float(self.layer(name, index).sums.increments(np.array([run_index]))[0])
        if name in drift.choice:
            return drift.choice[name][int(self.layer(name, index).option(np.array([run_index]))[0])]
        return drift.set[name]

    def value(self, name, tick):
        knob = self.table[name]
        value = self.timeline.schedule.base.get(name, knob.default)
        for index, (drift, runs, coins) in enumerate(self.drifts):
            for run_index, run in enumerate(runs):
                w = self.weight(drift, run, coins, tick)
                if w == 0.0:
                    continue
                if name in drift.add:
                    value = value + w * drift.add[name]
                elif name in drift.scale:
                    value = value * (1 - w + w * drift.scale[name])
                elif name in drift.walk:
                    value = value + w * self.target(drift, index, name, run_index)
                elif name in drift.swap:
                    one, other = drift.swap[name]
                    value = {**value, one: value[other], other: value[one]}
                elif name in drift.set or name in drift.choice:
                    new = self.target(drift, index, name, run_index)
                    value = (1 - w) * value + w * new if knob.is_numeric else new
        if knob.is_numeric:
            value = mirrored(value, *knob.bounds)
            value = round(value) if knob.kind == "integer" else value
        return value


@st.composite
def drifts(draw, deterministic=False):
    drift = {}
    kinds = ["at", "every"] if deterministic else ["at", "every", "rate"]
    when = draw(st.sampled_from(kinds))
    if when == "at" or draw(st.booleans()):
        drift["at"] = draw(st.integers(0, 30))
    if when == "every":
        drift["every"] = draw(st.integers(1, 25))
    if when == "rate":
        drift["rate"] = draw(st.sampled_from([0.02, 0.1, 0.5, 1.0]))
    longest = drift.get("every", 31) - 1
    room = min(drift.get("at", 30), longest // 2)
    if when != "rate" and not deterministic and room >= 1 and draw(st.booleans()):
        drift["jitter"] = draw(st.integers(1, room))
        longest -= 2 * drift["jitter"]
    if longest >= 1 and draw(st.booleans()):
        drift["for"] = draw(st.integers(1, longest))
    how = draw(st.sampled_from(["sudden", "incremental", "gradual"]))
    most = drift["for"] // 2 if "for" in drift else 12
    if how != "sudden" and most >= 1:
        drift |= {"kind": how, "over": draw(st.integers(1, most))}
        drift["curve"] = draw(st.sampled_from(["linear", "sigmoid", "exponential", {"steps": 1}, {"steps": 3}]))
    numbers = {
        "slip": st.sampled_from(
            [("set", 0.8), ("add", 0.3), ("scale", -0.5), ("walk", 0.2), ("choice", [0.1, 0.25, 0.9])]
        ),
        "force": st.sampled_from(
            [("set", -1.5), ("add", -0.7), ("scale", -1.0), ("walk", 1.5), ("choice", [1.0, -1.0])]
        ),
    }
    objects = {
        "label": st.sampled_from([("set", "C"), ("choice", ["A", "B", "C"]), ("choice", ["C", "D"])]),
        "rewards": st.sampled_from([("swap", ["a", "b"]), ("set", {"a": 0.25, "b": 0.75})]),
    }
    knobs = numbers if drift.get("kind") == "incremental" else numbers | objects
    for name in draw(st.lists(st.sampled_from(sorted(knobs)), min_size=1, max_size=3, unique=True)):
        operation, argument = draw(knobs[name])
        drift.setdefault(operation, {})[name] = argument
    return drift


SCHEDULES = st.lists(drifts(), min_size=1, max_size=3)


def build(table, drift_list, seed=0):
    return Timeline(load_schedule({"version": 1, "drifts": drift_list}, table=table), table, seed)


@PROFILE
@given(drift_list=SCHEDULES, seed=st.integers(0, 2**64))
def test_values_agree_with_a_fold_through_every_tick(table, drift_list, seed):
    timeline = build(table, drift_list, seed)
    reference = Reference(timeline)
    for tick in range(TICKS):
        for name, value in timeline.values(tick).items():
            expected = reference.value(name, tick)
            if table[name].is_numeric:
                assert value == pytest.approx(expected, abs=1e-9), (tick, name)
            else:
                assert value == expected, (tick, name)


@PROFILE
@given(drift_list=SCHEDULES)
def test_a_segment_holds_its_values_and_its_stop_is_never_late(table, drift_list):
    timeline, plain = build(table, drift_list), build(table, drift_list)
    tick = 0
    while tick < TICKS:
        segment = timeline.segment(tick)
        assert segment.start <= tick < segment.stop
        assert segment.stop == timeline.valid_until(tick)
        for inside in range(segment.start, min(segment.stop, TICKS)):
            assert plain.values(inside) == segment.values
            assert timeline.values(inside) is segment.values
        tick = segment.stop


@PROFILE
@given(drift_list=SCHEDULES)
def test_changes_are_where_values_differ(table, drift_list):
    timeline = build(table, drift_list)
    names = {drift.name for drift in timeline.schedule.drifts}
    found = {(change.tick, change.knob): change for change in timeline.changes(3, TICKS)}
    expected = set()
    for tick in range(4, TICKS):
        old, new = timeline.values(tick - 1), timeline.values(tick)
        for name in timeline.names:
            if old[name] != new[name]:
                expected.add((tick, name))
                change = found[tick, name]
                assert (change.old, change.new) == (old[name], new[name])
                assert set(change.drift.split("+")) <= names
                assert change.drift
    assert set(found) == expected


@PROFILE
@given(drift_list=st.lists(drifts(deterministic=True), min_size=1, max_size=3))
def test_phases_begin_where_occurrences_start_or_end(table, drift_list):
    timeline = build(table, drift_list)
    expected = {0}
    for drift in timeline.schedule.drifts:
        for start, end in runs_of(drift, starts_of(drift, None)):
            expected |= {start} | ({end} if end is not None else set())
    phases = timeline.phases(TICKS)
    assert [phase.start for phase in phases] == sorted(tick for tick in expected if tick < TICKS)
    assert [phase.index for phase in phases] == list(range(len(phases)))
    assert len({phase.id for phase in phases}) == len(phases)
    for phase, following in pairwise(phases):
        assert phase.stop == following.start
    for tick in range(TICKS):
        phase = timeline.phase(tick)
        assert phase.start <= tick < phase.stop
        assert phase in phases


@PROFILE
@given(drift_list=SCHEDULES, seed=st.integers(0, 100))
def test_values_stay_between_the_bounds(table, drift_list, seed):
    timeline = build(table, drift_list, seed)
    for tick in (*range(0, 1000, 7), 100_000):
        for name, value in timeline.values(tick).items():
            if table[name].is_numeric:
                low, high = table[name].bounds
                assert low <= value <= high


def walked_phases(table, drift_list, monkeypatch):
    """A timeline whose phases are walked chunk by chunk, without repeated periods."""
    with monkeypatch.context() as patch:
        patch.setattr(phases_module, "_LARGEST_PERIOD", 0)
        timeline = build(table, drift_list)
    assert all(span.repeats == 1 for span in timeline._phases._spans)
    return timeline


@settings(parent=PROFILE, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drift_list=SCHEDULES, ticks=st.lists(st.integers(0, 60_000), min_size=3, max_size=8))
def test_phases_in_closed_form_agree_with_the_walk(table, drift_list, ticks, monkeypatch):
    closed, walked = build(table, drift_list), walked_phases(table, drift_list, monkeypatch)
    for tick in ticks:
        phase = closed.phase(tick)
        assert phase == walked.phase(tick)
        assert closed._phases.named(phase.id, "phase") == phase
    assert closed.phases(2000) == walked.phases(2000)


@PROFILE
@given(drift_list=st.lists(drifts(deterministic=True), min_size=1, max_size=3), tick=st.integers(10**6, 10**15 - 10**6))
def test_far_phases_of_fixed_occurrences_follow_each_other(table, drift_list, tick):
    timeline = build(table, drift_list)
    phase = timeline.phase(tick)
    assert phase.start <= tick < phase.stop
    assert timeline.phase(phase.start) == phase
    if phase.start:
        before = timeline.phase(phase.start - 1)
        assert (before.stop, before.index) == (phase.start, phase.index - 1)
