"""Phases of many drifts with prime periods, whose common period is larger than every float."""

from __future__ import annotations

import re
from itertools import islice
from time import process_time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drift_envs.errors import ArgumentError, UnknownChoiceError
from drift_envs.schedule import phases as phases_module
from drift_envs.schedule.model import MAX_TICK

TICKS = 200


def primes(above):
    """The primes above a number."""
    number = above
    while True:
        number += 1
        if all(number % factor for factor in range(2, int(number**0.5) + 1)):
            yield number


def make_drifts(periods, duration=None):
    """A drift for each period, with a duration where it is shorter than the period."""
    return [
        {"name": f"d{period}", "every": period, "set": {"slip": 0.5}}
        | ({"for": duration} if duration is not None and duration < period else {})
        for period in periods
    ]


def count_phases(drifts):
    """The start, index and id of the phase at each tick, by definition."""
    found, visits = [], {}
    for tick in range(TICKS):
        owner, latest, begins = "source", -1, tick == 0
        for drift in drifts:
            period, duration = drift["every"], drift.get("for", TICKS)
            start = tick // period * period
            begins |= start > 0 and tick in (start, start + duration)
            if start > 0 and start >= latest and tick < start + duration:
                owner, latest = drift["name"], start
        if begins:
            visits[owner] = visits.get(owner, 0) + 1
            phase_id = owner if visits[owner] == 1 else f"{owner}#{visits[owner]}"
            found.append((tick, found[-1][1] + 1 if found else 0, phase_id))
        else:
            found.append(found[-1])
    return found


@pytest.mark.integration
@settings(derandomize=True, deadline=None, max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    count=st.sampled_from([3, 20, 85]),
    above=st.integers(1, 60),
    duration=st.none() | st.integers(1, 40),
    chunk=st.integers(10, 100),
    most=st.integers(1, 5),
    order=st.randoms(use_true_random=False),
)
def test_every_tick_up_to_the_limit_has_its_phase(make, monkeypatch, count, above, duration, chunk, most, order):
    drifts = make_drifts(islice(primes(above), count), duration)
    order.shuffle(drifts)
    expected = count_phases(drifts)
    with monkeypatch.context() as patch:
        patch.setattr(phases_module, "_CHUNK", chunk)
        patch.setattr(phases_module, "_SHORTEST", 8)
        patch.setattr(phases_module, "_MOST_CHUNKS", most)
        timeline = make(*drifts)
        last = timeline.last_phase_tick
        for tick in sorted({*range(0, min(TICKS, last + 1), 11), min(TICKS - 1, last)}, reverse=True):
            phase = timeline.phase(tick)
            assert (phase.start, phase.index, phase.id) == expected[tick]
            assert timeline.first_tick(phase.id) == phase.start
        stop = min(TICKS, last + 1)
        listed = timeline.phases(stop)
        assert [(phase.start, phase.index, phase.id) for phase in listed] == list(dict.fromkeys(expected[:stop]))
        assert timeline.first_phases(len(listed)) == listed
        if last < MAX_TICK:
            with pytest.raises(ArgumentError, match=f"`tick` should be at most {last} .* Received {last + 1}"):
                timeline.phase(last + 1)


@pytest.mark.integration
@pytest.mark.parametrize("count", [20, 85, 300])
def test_far_ticks_have_values_and_a_phase_or_a_limit_at_once(make, count):
    """The bound is about twenty times what it takes; without a limit it would be minutes."""
    periods = list(islice(primes(1), count))
    timeline = make(*make_drifts(periods, 1))
    begin = process_time()
    for tick in (10**9, MAX_TICK):
        assert timeline.values(tick)["slip"] == 0.5  # both are multiples of the first period
        assert timeline.valid_until(tick) > tick
    last = timeline.last_phase_tick
    assert timeline.phase(last).start <= last < timeline.phase(last).stop
    for tick in (last + 1, 10**9, MAX_TICK):
        with pytest.raises(ArgumentError, match=f"`tick` should be at most {last} .* Received {tick}"):
            timeline.phase(tick)
    with pytest.raises(
        ArgumentError, match=re.escape(f"`stop` should have at most 100000 phases before it. Received {MAX_TICK}")
    ):
        timeline.phases(MAX_TICK)
    far = f"d{periods[-1]}#{10**12}"
    with pytest.raises(UnknownChoiceError, match=f"starts up to tick {last}. Received '{far}'"):
        timeline.first_tick(far)
    assert process_time() - begin < 30
