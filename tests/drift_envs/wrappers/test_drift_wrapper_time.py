"""The drift wrapper in time: clocks, seeds, options of `reset`, and the log of what changed."""

import copy
import pickle
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drift_envs.envs import FrozenLake
from drift_envs.errors import (
    ArgumentError,
)
from drift_envs.schedule import KnobChange
from drift_envs.wrappers import DriftLog, DriftWrapper
from drift_envs.wrappers.records import VisitedTicks
from tests.drift_envs.wrappers.cars import TWICE, car, force, plan


def forces(env, episodes, steps=3, seed=0):
    """The force at every transition, episode by episode."""
    found = []
    for episode in range(episodes):
        env.reset(seed=seed if episode == 0 else None)
        found.append([])
        for _ in range(steps):
            env.step(1)
            found[-1].append(env.unwrapped.force)
    return found


def test_the_clock_of_episodes():
    assert forces(car(plan(*TWICE)), 6) == [[0.001] * 3] * 2 + [[0.0008] * 3] * 2 + [[0.0006] * 3] * 2


def test_the_clock_of_steps():
    assert forces(car(plan(*TWICE, clock="step")), 2) == [[0.001, 0.001, 0.0008], [0.0008, 0.0006, 0.0006]]


def test_the_clock_of_steps_in_an_episode():
    assert forces(car(plan(*TWICE, clock="episode_step")), 2, steps=5) == [[0.001, 0.001, 0.0008, 0.0008, 0.0006]] * 2


def test_knobs_are_set_before_the_reset_of_their_tick():
    env = DriftWrapper(FrozenLake(), plan({"at": 1, "set": {"map": ["FS", "GF"]}}))
    assert env.reset(seed=0)[0] == 0
    assert env.reset()[0] == 1
    env = DriftWrapper(FrozenLake(), plan({"at": 1, "set": {"map": ["FS", "GF"]}}, clock="step"))
    env.reset(seed=0)
    env.step(0)
    assert env.reset()[0] == 1


def test_a_seed_rewinds_and_no_seed_goes_on():
    env = car(plan(*TWICE))
    assert forces(env, 3) == forces(env, 3)
    env.reset()
    assert env.drift_state.tick == 3
    env.reset(seed=0)
    assert env.drift_state.tick == 0


@pytest.mark.parametrize("clock", ["episode", "step", "episode_step"])
def test_options_continue(clock):
    env = car(plan(*TWICE, clock=clock))
    forces(env, 3)
    before = env.drift_state
    first, _ = env.reset(seed=7, options={"drift_clock": "continue"})
    following = {"episode": before.tick + 1, "step": before.tick + 1, "episode_step": 0}[clock]
    assert env.drift_state.tick == following
    assert env.drift_state.episode == before.episode + 1
    assert (first == car(None).reset(seed=7)[0]).all()


def test_options_hold():
    env = car(plan(*TWICE))
    env.reset(seed=0)
    env.reset()
    ticks = []
    for options in ({"drift_clock": "hold"}, {"drift_clock": "hold"}, None, None):
        env.reset(options=options)
        env.step(1)
        ticks.append(env.drift_state.tick)
    assert ticks == [1, 1, 2, 3]


def test_options_hold_with_the_clock_of_steps():
    env = car(plan(*TWICE, clock="step"))
    env.reset(seed=0)
    env.step(1)
    env.step(1)
    ticks = []
    for options in ({"drift_clock": "hold"}, None):
        env.reset(options=options)
        for _ in range(3):
            env.step(1)
            ticks.append((env.drift_state.tick, env.unwrapped.force))
    assert ticks == [(1, 0.001)] * 3 + [(2, 0.0008), (3, 0.0008), (4, 0.0006)]


@pytest.mark.parametrize("clock", ["episode", "step", "episode_step"])
@pytest.mark.parametrize("options", [{"drift_tick": 2}, {"drift_phase": "weak"}], ids=str)
def test_options_jump(clock, options):
    env = car(plan(*TWICE, clock=clock))
    env.reset(seed=0)
    env.reset(options=options)
    start = options.get("drift_tick", 2)
    assert env.drift_state.tick == start
    env.step(1)
    env.step(1)
    assert env.drift_state.tick == (start if clock == "episode" else start + 1)
    assert env.drift_state.phase == "weak"
    env.reset()
    assert env.drift_state.tick == {"episode": start + 1, "step": start + 2, "episode_step": 0}[clock]


def test_a_jump_lands_where_a_ramp_is_up():
    env = car(plan(force(0.0006, at=2, name="tired", kind="incremental", over=4)))
    env.reset(seed=0, options={"drift_phase": "tired"})
    assert env.drift_state.tick == 6
    assert env.unwrapped.force == pytest.approx(0.0006)


def test_seed_then_jump_then_hold():
    env = car(plan(*TWICE))
    forces(env, 4)
    env.reset(seed=1, options={"drift_tick": 4, "drift_clock": "hold"})
    assert (env.drift_state.tick, env.drift_state.episode) == (4, 0)
    env.reset(options={"drift_clock": "hold"})
    assert env.drift_state.tick == 4
    env.reset()
    assert env.drift_state.tick == 4  # held episodes take no time: tick 4 itself is still to come
    env.reset()
    assert env.drift_state.tick == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"drift_tick": -1}, "`drift_tick` should be a whole number in the interval [0, 500000000000000]. Received -1"),
        ({"drift_tick": 1.0}, "`drift_tick` should be a whole number"),
        ({"drift_tick": True}, "`drift_tick` should be a whole number"),
        ({"drift_clock": "stop"}, "`drift_clock` should be one of continue, hold. Received 'stop'"),
        ({"drift_time": 1}, "no other drift keys than drift_clock, drift_phase, drift_tick. Received 'drift_time'"),
        ({"drift_phase": "strong"}, "strong"),
        ({"drift_phase": "weak", "drift_tick": 1}, "one of `drift_tick` and `drift_phase`. Received both"),
    ],
    ids=str,
)
def test_options_that_are_refused_change_nothing(options, message):
    env = car(plan(*TWICE))
    forces(env, 2)
    before = env.drift_state
    with pytest.raises(ArgumentError, match=re.escape(message)):
        env.reset(seed=9, options=options)
    assert env.drift_state == before
    assert env.timeline.seed == 0


@pytest.mark.parametrize("seed", [-1, 1.5, True, "1"])
def test_seeds_that_are_none(seed):
    env = car(plan(*TWICE))
    with pytest.raises(ArgumentError, match=f"`seed` should be a whole number, at least 0. Received {seed!r}"):
        env.reset(seed=seed)


@pytest.mark.integration
@settings(max_examples=20)
@given(st.lists(st.tuples(st.sampled_from(["plain", "hold", "jump", "rewind"]), st.integers(0, 4)), max_size=12))
def test_knobs_are_always_those_of_the_tick(moves):
    drifts = (*TWICE, {"rate": 0.4, "walk": {"gravity": 0.0003}, "name": "wind"})
    for clock in ("episode", "step", "episode_step"):
        env = car(plan(*drifts, clock=clock))
        env.reset(seed=0)
        for kind, number in moves:
            options = {"hold": {"drift_clock": "hold"}, "jump": {"drift_tick": number}}.get(kind)
            env.reset(seed=number if kind == "rewind" else None, options=options)
            for _ in range(number):
                assert env.drift_state.knobs == {**env.drift_state.knobs, **env.timeline.values(env.drift_state.tick)}
                env.step(1)
        log = env.drift_log
        assert [change.tick for change in log] == sorted(change.tick for change in log)
        for change in log:
            assert env.timeline.values(change.tick)[change.knob] == change.new
            assert env.timeline.values(change.tick - 1)[change.knob] == change.old


def test_the_state_reads_knobs_back():
    env = car(plan(*TWICE))
    forces(env, 3, steps=2)
    state = env.drift_state
    assert (state.phase, state.tick, state.episode, state.step) == ("weak", 2, 2, 2)
    assert state.knobs == {
        "force": 0.0008,
        "gravity": 0.0025,
        "goal_position": 0.5,
        "transient": 0.0,
        "poison_after": 0,
    }
    env.unwrapped.goal_position = 0.4
    assert env.drift_state.knobs["goal_position"] == 0.4
    with pytest.raises(AttributeError):
        state.tick = 3


def test_the_log_lists_changes_on_visited_ticks():
    env = car(plan(*TWICE))
    env.reset(seed=0)
    assert list(env.drift_log) == []
    for _ in range(5):
        env.reset()
    assert [tuple(change) for change in env.drift_log] == [
        (2, "force", 0.001, 0.0008, "weak"),
        (4, "force", 0.0008, 0.0006, "weaker"),
    ]
    env.reset(seed=0)
    assert len(env.drift_log) == 0
    env.reset(options={"drift_tick": 4})
    assert [change.tick for change in env.drift_log] == [4]
    env.reset(options={"drift_tick": 1})
    env.reset()
    assert [change.tick for change in env.drift_log] == [2, 4]


def test_the_log_as_csv(tmp_path):
    env = DriftWrapper(FrozenLake(), plan({"at": 1, "name": "b", "set": {"map": ["SG"], "goal_rewards": {"0,1": 2}}}))
    env.reset(seed=0)
    env.reset()
    text = env.drift_log.to_csv()
    assert text is not None
    assert text.splitlines() == [
        "tick,knob,old,new,drift",
        '1,map,"[""SFFF"", ""FHFH"", ""FFFH"", ""HFFG""]","[""SG""]",b',
        '1,goal_rewards,{},"{""0,1"": 2.0}",b',
    ]
    assert env.drift_log.to_csv(tmp_path / "log.csv") is None
    assert (tmp_path / "log.csv").read_text(encoding="utf-8") == text


@given(
    spans=st.lists(st.tuples(st.integers(0, 9000), st.integers(0, 9000)), max_size=4),
    lost=st.lists(st.tuples(st.integers(0, 9000), st.sampled_from(["slip", "map", "goal_rewards"])), max_size=5),
    places=st.lists(st.integers(-12_000, 12_000), max_size=5),
)
@settings(max_examples=40, deadline=None)
def test_the_log_is_read_in_parts_as_it_is_as_a_whole(spans, lost, places):
    schedule = plan(
        {"every": 3, "walk": {"slip": 0.05}},
        {"rate": 0.02, "for": 5, "set": {"slip": 0.4}},
        {"every": 700, "choice": {"map": [["SG"], ["SFG"], ["SFFG"]]}},
        {"at": 5000, "kind": "incremental", "over": 50, "set": {"slip": 0.1}},
    )
    timeline = DriftWrapper(FrozenLake(), schedule).timeline
    visited = VisitedTicks()
    for first, last in spans:
        visited.add(min(first, last), max(first, last))
    log = DriftLog(timeline, visited, lost)
    listed = [
        KnobChange(tick, name, old[name], new[name], "")
        for first, last in visited.spans
        for tick in range(max(first, 1), last + 1)
        for old, new in [(timeline.values(tick - 1), timeline.values(tick))]
        for name in timeline.names
        if old[name] != new[name] and (tick, name) not in lost
    ]
    assert [change._replace(drift="") for change in log] == listed
    assert log.changes == tuple(log) == log[:]
    assert len(log) == len(listed)
    assert log == pickle.loads(pickle.dumps(log))
    assert (log == DriftLog(timeline, VisitedTicks())) is (not listed)
    for place in places:
        if -len(listed) <= place < len(listed):
            assert log[place] == log.changes[place]
        else:
            with pytest.raises(IndexError):
                log[place]
        assert log[place : place + 3] == log.changes[place : place + 3]


def test_without_a_seed_the_environments_own_seed_is_used():
    env = car(plan({"rate": 0.2, "walk": {"force": 0.0002}}))
    env.reset()
    assert env.timeline.seed == env.unwrapped.np_random_seed
    env.unwrapped.np_random = np.random.default_rng(0)
    env.reset()
    other = car(plan({"rate": 0.2, "walk": {"force": 0.0002}}))
    other.unwrapped.np_random = np.random.default_rng(0)
    other.reset()
    assert other.timeline.seed >= 0


@pytest.mark.parametrize("clock", ["step", "episode_step"])
def test_a_drift_at_every_step_across_many_blocks(clock):
    ramps = (
        force(0.0006, at=700, name="tired", kind="incremental", over=1_500),
        {"at": 0, "name": "sink", "kind": "incremental", "over": 900, "set": {"gravity": 0.002}},
    )
    env = car(plan(*ramps, clock=clock))
    env.reset(seed=0)
    reference = car(plan(*ramps)).timeline
    for step in range(2_600):
        env.step(1)
        assert env.unwrapped.force == reference.values(step)["force"]
        if step % 613 == 0 and clock == "step":
            env.reset()
        if step == 1_300:
            env = copy.deepcopy(env)
