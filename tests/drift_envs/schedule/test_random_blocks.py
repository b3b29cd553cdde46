"""Blocks of random numbers: their edges can't be seen from outside, and few of them are kept."""

import numpy as np
import pytest

from drift_envs.schedule import phases as phases_module
from drift_envs.schedule.model import Drift
from drift_envs.schedule.occurrences import (
    BEYOND,
    Blocks,
    Purpose,
    RandomOccurrences,
    RandomStream,
    RegularOccurrences,
    UniformStream,
    occurrences_of,
)
from drift_envs.schedule.values import CircleSteps, NormalSteps, RandomWalk

TICKS = np.arange(4000)


def occurrences(rate, duration, first=0):
    return RandomOccurrences(RandomStream(3, 0), first, rate, duration)


@pytest.mark.parametrize("rate", [0.05, 0.5, 1.0])
def test_counts_and_starts_agree_across_blocks(rate):
    asked = occurrences(rate, None, first=7)
    counts = asked.count(TICKS)
    starts = asked.start(np.arange(counts[-1]))
    assert counts[6] == 0
    assert (np.diff(starts) >= 1).all()
    assert (asked.count(starts) == np.arange(counts[-1]) + 1).all()
    assert (asked.count(starts - 1) == np.arange(counts[-1])).all()
    single = [int(occurrences(rate, None, first=7).count(np.array([tick]))[0]) for tick in (3999, 0, 700, 41)]
    assert single == counts[[3999, 0, 700, 41]].tolist()
    assert [asked.after(int(tick)) for tick in starts[:-1]] == starts[1:].tolist()


@pytest.mark.parametrize(("rate", "duration"), [(0.05, 9), (0.5, 3), (1.0, 2), (0.3, 1)])
def test_runs_join_across_blocks(rate, duration):
    asked = occurrences(rate, duration)
    starts = occurrences(rate, None).bounds(0, len(TICKS)).tolist()
    runs = []
    for start in starts:
        if runs and start < runs[-1][1]:
            runs[-1][1] = start + duration
        else:
            runs.append([start, start + duration])
    window = asked.window(TICKS)
    for index, (start, end) in enumerate(runs[:-1]):
        assert (window.run[start:end] == index).all()
        assert (window.start[start:end] == start).all()
        assert window.end[end - 1] == end
        assert set(window.end[start:end]) <= {end, BEYOND}
        assert end == runs[index + 1][0] or window.run[end] == -1
    assert asked.start(np.arange(len(runs))).tolist() == [start for start, _ in runs]
    expected = sorted({tick for run in runs for tick in run if tick < 3900})
    assert sorted(set(asked.bounds(0, 3900).tolist())) == expected
    pieces = [set(asked.bounds(low, low + 130).tolist()) for low in range(0, 3900, 130)]
    assert sorted(set().union(*pieces)) == expected


FAR = Blocks.offset(30)
"""An event that lies in a far block."""


@pytest.mark.parametrize("steps", [NormalSteps(0.1), CircleSteps(2), CircleSteps(7)])
def test_far_sums_are_those_of_their_steps(steps):
    stream = RandomStream(0, 1)

    def make():
        return RandomWalk(lambda block: stream.generator(Purpose.WALK, block), steps)

    events = np.arange(FAR - 100, FAR + Blocks.size(30) + 100)  # the end of a block, a whole one, the next begins
    totals, increments = make().totals(events), make().increments(events)
    np.testing.assert_allclose(np.diff(totals), increments[1:], atol=1e-9)
    last = events[-1:]
    assert make().totals(last)[0] == totals[-1], "the order of asking does not matter"
    near = make().increments(np.arange(len(events)))
    tolerance = 5 * near.std() / len(events) ** 0.5
    assert increments.mean() == pytest.approx(near.mean(), abs=2 * tolerance)
    assert increments.std() == pytest.approx(near.std(), rel=0.02)
    assert abs(np.corrcoef(increments[1:], increments[:-1])[0, 1] if near.std() else 0) < 0.02


def test_sums_of_far_blocks_spread_as_sums_of_steps_do():
    for steps in (NormalSteps(0.1), CircleSteps(5)):
        drawn = [steps.draw_sum(np.random.default_rng(seed), 400) for seed in range(2000)]
        single = steps.draw(np.random.default_rng(0), 100_000)
        assert np.mean(drawn) == pytest.approx(400 * single.mean(), abs=5 * 20 * single.std() / 2000**0.5 + 2)
        assert np.std(drawn) == pytest.approx(20 * single.std(), rel=0.1)
        for seed in range(5):
            with_sum = steps.draw_with_sum(np.random.default_rng(seed), 400)
            assert with_sum.sum() == pytest.approx(steps.draw_sum(np.random.default_rng(seed), 400), abs=1e-9)


@pytest.mark.parametrize("rate", [0.01, 0.3, 1.0])
def test_far_events_lie_as_near_ones_do(rate):
    asked = occurrences(rate, None, first=7)
    events = np.arange(FAR - 100, FAR + Blocks.size(30) + 100)
    starts = asked.start(events)
    gaps = np.diff(starts)
    assert gaps.min() >= 1
    assert gaps.mean() == pytest.approx(1 / rate, rel=0.03)
    assert (gaps == 1).mean() == pytest.approx(rate, abs=0.01)
    assert starts[0] == pytest.approx(events[0] / rate, rel=0.01)
    picked = events[::997]
    assert (occurrences(rate, None, first=7).count(starts[::997]) == picked + 1).all()
    assert (asked.count(starts[::997] - 1) == picked).all()
    assert occurrences(rate, None, first=7).start(events[-1:])[0] == starts[-1]


@pytest.mark.parametrize(("rate", "duration"), [(0.3, 3), (0.05, 40), (1.0, 2)])
def test_far_runs_are_those_of_their_events(rate, duration):
    whole = occurrences(rate, duration)
    first = Blocks.number(FAR)
    for number in range(first, first + 3):
        carried, block = whole._events.carries, whole._events.block(number)
        whole._events.block(number + 1)
        assert tuple(carried[number + 1]) == (block.ticks[-1], block.runs[-1], block.run_starts[-1])
        begins = np.diff(block.ticks) >= duration
        assert (np.diff(block.runs) == begins).all()
        assert (block.run_starts[1:][begins] == block.ticks[1:][begins]).all()
        assert (np.diff(block.run_starts)[~begins] == 0).all()


def test_coins_are_fair_and_independent_of_the_order():
    coins = UniformStream(RandomStream(0, 0))
    ticks = np.arange(5000)
    tossed = coins.at(ticks)
    assert (UniformStream(RandomStream(0, 0)).at(ticks[::-1].copy())[::-1] == tossed).all()
    assert tossed.mean() == pytest.approx(0.5, abs=0.02)
    assert len(np.unique(tossed)) == 5000
    assert (UniformStream(RandomStream(0, 1)).at(ticks) != tossed).all()


def test_streams_differ_by_seed_drift_and_purpose():
    drawn = {
        RandomStream(seed, key).generator(purpose, *place).random()
        for seed in (0, 1)
        for key in (0, 1)
        for purpose in Purpose
        for place in ((), (0,), ("slip",), ("slip", 0))
    }
    assert len(drawn) == 2 * 2 * len(Purpose) * 4


def test_regular_occurrences_end_before_the_first_and_after_the_last():
    once = RegularOccurrences(first=5, period=None, duration=3)
    assert once.bounds(0, 100).tolist() == [5, 8]
    assert (once.after(4), once.after(5)) == (5, BEYOND)
    assert once.window(np.array([4, 5, 7, 8])).run.tolist() == [-1, 0, 0, -1]


def test_phases_do_not_depend_on_the_size_of_chunks(make, monkeypatch):
    drifts = (
        {"name": "rain", "rate": 0.1, "for": 4, "set": {"slip": 1.0}},
        {"name": "tide", "every": 9, "for": 4, "set": {"count": 1}},
        {"name": "late", "at": 333, "set": {"force": 1.0}},
    )
    whole = make(*drifts).phases(500)
    monkeypatch.setattr(phases_module, "_CHUNK", 4)
    monkeypatch.setattr(phases_module, "_SHORTEST", 8)
    monkeypatch.setattr(phases_module, "_SEARCHED", 10_000)
    pieces = make(*drifts)
    assert pieces.phases(500) == whole
    for phase in whole[::-7]:
        assert make(*drifts).phase(phase.start) == phase
        assert pieces.phase(phase.stop - 1) == phase
        assert pieces.first_tick(phase.id) == phase.start


def test_a_run_that_never_seems_to_end_is_open(make):
    timeline = make({"name": "rain", "rate": 1.0, "for": 2, "set": {"slip": 1.0}})
    assert [phase.id for phase in timeline.phases(10_000)] == ["rain"]
    assert timeline.phase(5000).stop > 10**5


def test_jitter_reaches_every_tick_of_its_span_and_moves_each_occurrence_alone():
    tide = Drift.model_validate({"name": "tide", "every": 20, "jitter": 3, "set": {"slip": 1.0}})
    starts = occurrences_of(tide, RandomStream(0, 0)).start(np.arange(4000))
    moved = starts - 20 * np.arange(1, 4001)
    counts = np.bincount(moved + 3, minlength=7)
    assert len(counts) == 7
    assert counts.min() > 4000 / 7 * 0.85
    assert abs(np.corrcoef(moved[1:], moved[:-1])[0, 1]) < 0.05
    alone = Drift.model_validate({"name": "tide", "at": 20, "jitter": 3, "set": {"slip": 1.0}})
    firsts = {occurrences_of(alone, RandomStream(seed, 0)).first for seed in range(100)}
    assert firsts == set(range(17, 24))
    assert occurrences_of(tide, RandomStream(0, 0)).count(starts[:5] - 1).tolist() == [0, 1, 2, 3, 4]
