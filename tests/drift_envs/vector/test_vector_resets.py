"""All three autoreset modes equal `SyncVectorEnv`, `info` included; seeds, masks and clocks."""

from __future__ import annotations

import inspect
import re
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

from drift_envs.envs.frozen_lake.vector import VectorFrozenLake
from drift_envs.envs.mountain_car.vector import VectorMountainCar
from drift_envs.errors import ArgumentError, DriftWarning, StateError

pytestmark = pytest.mark.integration

LAKE = "DriftFrozenLake-v0"
MAPS = (["SFFF", "FFFH", "FHFF", "FFFG"], ["SFFF", "HFFF", "FFFH", "HFFG"])
MODES = ("NextStep", "SameStep", "Disabled")
DRIFTS = (
    {"name": "e", "every": 7, "for": 3, "set": {"map": MAPS[1]}},
    {"name": "r", "rate": 0.03, "for": 4, "set": {"goal_rewards": {"3,3": 0.5}}},
)


def assert_same_infos(one, other):
    """Compare keys, masks, and the values under the masks."""
    assert set(one) == set(other)
    for key, value in one.items():
        if isinstance(value, dict):
            assert_same_infos(value, other[key])
        elif key.startswith("_"):
            np.testing.assert_array_equal(value, other[key])
        else:
            for index in np.flatnonzero(one[f"_{key}"]):
                assert np.array_equal(value[index], other[key][index]), (key, index)


def step_equally(sync, native, actions):
    """Step both, compare all results, and return which episodes have ended."""
    expected, found = sync.step(actions), native.step(actions)
    for old, new in zip(expected[:4], found[:4], strict=True):
        np.testing.assert_array_equal(old, new)
        assert old.dtype == new.dtype
    assert_same_infos(expected[4], found[4])
    return expected[2] | expected[3]


@pytest.mark.parametrize(
    ("clock", "notify"),
    [("episode", "none"), ("episode", "change"), ("episode", "full"), ("step", "full"), ("episode_step", "full")],
)
@pytest.mark.parametrize("mode", MODES)
def test_three_modes_with_their_infos(make_pair, make_schedule, mode, clock, notify):
    number = 4
    schedule = make_schedule(clock, *DRIFTS, map=MAPS[0])
    sync, native = make_pair(LAKE, number, mode, schedule=schedule, notify=notify, max_episode_steps=9)
    expected, found = sync.reset(seed=5), native.reset(seed=5)
    np.testing.assert_array_equal(expected[0], found[0])
    assert_same_infos(expected[1], found[1])
    rng, ends, truncated = np.random.default_rng(0), 0, 0
    for step in range(120):
        ended = step_equally(sync, native, rng.integers(0, 4, number))
        ends += int(ended.sum())
        truncated += int(ended.sum() > 1)
        if mode == "Disabled" and ended.any():
            seed = 40 if step % 50 == 0 else None
            expected = sync.reset(seed=seed, options={"reset_mask": ended.copy()})
            found = native.reset(seed=seed, options={"reset_mask": ended.copy()})
            np.testing.assert_array_equal(expected[0], found[0])
            assert_same_infos(expected[1], found[1])
        assert sync.get_attr("drift_state") == native.get_attr("drift_state")
    assert ends > 50
    assert truncated
    assert sync.get_attr("drift_log") == native.get_attr("drift_log")


@pytest.mark.parametrize("mode", ["SameStep", "Disabled"])
@pytest.mark.parametrize("env_id", ["DriftMountainCar-v0", "DriftMountainCarContinuous-v0"])
def test_cars_without_reset_steps(make_pair, env_id, mode):
    force, number = 1 if env_id == "DriftMountainCar-v0" else np.array([0.0], np.float32), 3
    sync, native = make_pair(env_id, number, mode, max_episode_steps=20)
    for env in (sync, native):
        env.reset(seed=1, options={"low": -0.5, "high": -0.5})
    for _ in range(19):
        assert not step_equally(sync, native, np.array([force] * number)).any()
    expected, found = sync.step(np.array([force] * number)), native.step(np.array([force] * number))
    assert expected[3].all()
    assert found[3].all()
    if mode == "SameStep":
        for old, new in zip(expected[4]["final_obs"], found[4]["final_obs"], strict=True):
            np.testing.assert_array_equal(old, new)
        assert not found[0][:, 1].any()
    else:
        np.testing.assert_array_equal(expected[0], found[0])
        with pytest.raises(StateError, match="autoreset is disabled"):
            native.step(np.array([force] * number))


@pytest.mark.parametrize(("mode", "ticks"), [("NextStep", [0, 1, 1, 2, 2, 3]), ("SameStep", [1, 2, 3, 4, 5, 6])])
def test_only_transitions_are_ticks(make_schedule, mode, ticks):
    """On a map of two tiles every transition ends an episode; with `NextStep` a reset step follows."""
    schedule = make_schedule("step", {"name": "d", "at": 10_000, "set": {"slip": 0.5}}, map=["SG"])
    lakes = gym.make_vec(LAKE, num_envs=1, schedule=schedule, autoreset_mode=mode)
    lakes.reset(seed=0)
    assert [lakes.get_attr("tick")[0] for _ in range(6) if lakes.step(np.array([2]))] == ticks


def test_resets_with_a_mask_are_no_ticks(make_schedule):
    schedule = make_schedule("step", {"name": "d", "at": 10_000, "set": {"slip": 0.5}}, map=["SG"])
    lakes = gym.make_vec(LAKE, num_envs=2, schedule=schedule, autoreset_mode="Disabled")
    lakes.reset(seed=0)
    for tick in range(4):
        terminations = lakes.step(np.array([2, 0]))[2]
        assert terminations.tolist() == [True, False]
        assert lakes.get_attr("tick") == (tick, tick)
        lakes.reset(options={"reset_mask": terminations})
        assert lakes.get_attr("tick") == (tick + 1, tick)
        assert lakes.get_attr("s") == (0, 0)


JITTERED = {"version": 1, "name": "j", "drifts": [{"name": "a", "at": 20, "jitter": 15, "set": {"slip": 0.5}}]}


def test_the_first_reset_jumps_to_the_phase_that_each_will_have() -> None:
    lakes = gym.make_vec(LAKE, num_envs=6, schedule=JITTERED)
    lakes.reset(options={"drift_phase": "a"})
    assert [one.drift_state.tick for one in lakes.envs] == [one.timeline.first_tick("a") for one in lakes.envs]


def test_a_seed_gives_all_that_share_a_timeline_the_same_time() -> None:
    lakes = gym.make_vec(LAKE, num_envs=3, schedule=JITTERED, share_timeline=True)
    first = gym.make(LAKE, schedule=JITTERED)
    for seed in (5, [6, 7, 8], 9):
        lakes.reset(seed=seed, options={"drift_phase": "a"})
        first.reset(seed=seed if isinstance(seed, int) else seed[0], options={"drift_phase": "a"})
        assert {one.drift_state.tick for one in lakes.envs} == {first.get_wrapper_attr("drift_state").tick}
    before = [one.drift_state for one in lakes.envs]
    for seed, options in ([1, None, None], {}), (1, {"reset_mask": np.array([False, False, True])}):
        with pytest.raises(ArgumentError, match=r"should rewind all sub-environments or none, .* of 1 of 3"):
            lakes.reset(seed=seed, options=options)
        assert [one.drift_state for one in lakes.envs] == before


@pytest.mark.parametrize("clock", ["episode", "step", "episode_step"])
def test_time_can_stop_from_the_first_tick_on(make_schedule, clock) -> None:
    lakes = gym.make_vec(LAKE, num_envs=2, schedule=make_schedule(clock, *DRIFTS))
    for _ in range(2):
        lakes.reset(seed=3, options={"drift_clock": "hold"})
        for _ in range(3):
            assert lakes.get_attr("tick") == (0, 0)
            lakes.step(np.array([0, 0]))


def test_a_mask_starts_no_episode_of_those_that_have_started_theirs_in_the_same_step(make_schedule) -> None:
    lakes = gym.make_vec(
        LAKE, num_envs=2, schedule=make_schedule("step"), max_episode_steps=2, autoreset_mode="SameStep"
    )
    lakes.reset(seed=0)
    lakes.step(np.array([2, 2]))
    assert lakes.step(np.array([2, 2]))[3].all()
    lakes.reset(options={"reset_mask": np.array([False, True])})
    assert lakes.step(np.array([2, 2]))[0].tolist() == [1, 1]
    assert lakes.get_attr("tick") == (2, 2)


def test_the_last_state_is_readable_until_the_reset(make_pair):
    """The terminal state remains until the reset, and setting another state does not prevent the reset."""
    sync, native = make_pair(LAKE, 2, "NextStep", schedule=None, desc=["SH", "FG"], is_slippery=False)
    for lakes in (sync, native):
        lakes.reset(seed=0)
    assert step_equally(sync, native, np.array([2, 1])).tolist() == [True, False]
    assert native.get_attr("s") == (1, 2)
    native.set_attr("s", [2, 2])
    assert native.get_attr("s") == (2, 2)
    np.testing.assert_array_equal(native.step(np.array([2, 2]))[0], [0, 3])
    assert native.get_attr("s") == (0, 3)


def reset_with_seed(env, times, **options):
    for _ in range(times):
        env.reset(seed=1, **options)


def make_lakes_with_change(make_schedule, tick=3):
    return gym.make_vec(
        LAKE, num_envs=2, schedule=make_schedule("step", {"name": "d", "at": tick, "set": {"slip": 0.5}})
    )


def test_ten_idle_rewinds_give_one_warning(make_schedule):
    lakes = make_lakes_with_change(make_schedule)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reset_with_seed(lakes, 10)
    with pytest.warns(DriftWarning, match=re.escape('`options={"drift_clock": "continue"}`')) as caught:
        lakes.reset(seed=1)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reset_with_seed(lakes, 30)


@pytest.mark.parametrize("name", ["call", "get_attr", "set_attr"])
@pytest.mark.parametrize("native", [VectorFrozenLake, VectorMountainCar])
def test_attribute_methods_have_the_parameters_of_sync(native, name):
    ours, theirs = (inspect.signature(getattr(kind, name)).parameters for kind in (native, SyncVectorEnv))
    assert ours == theirs


@pytest.mark.parametrize("name", ["reset", "step"])
def test_reset_and_step_have_the_parameters_of_sync(name):
    ours, theirs = (inspect.signature(getattr(kind, name)).parameters for kind in (VectorFrozenLake, SyncVectorEnv))
    assert [(part.name, part.kind, part.default) for part in ours.values()] == [
        (part.name, part.kind, part.default) for part in theirs.values()
    ]


@pytest.mark.parametrize(
    ("mode", "most_queued"),
    [("NextStep", 0), ("SameStep", 1)],
)
def test_queue_and_due_window_give_equal_results(make_pair, make_schedule, mode, most_queued, monkeypatch):
    """Knobs change at the ticks of their timelines, whether the due sub-environments are queued or in a window."""
    monkeypatch.setattr("drift_envs.vector.clocks._MOST_QUEUED", most_queued)
    number, rare = 6, {"name": "r", "rate": 0.01, "for": 35, "set": {"map": MAPS[1]}}
    often = {"name": "o", "rate": 0.2, "for": 2, "set": {"map": MAPS[1]}}
    for drift in (rare, often):
        sync, native = make_pair(
            LAKE, number, mode, schedule=make_schedule("step", drift, map=MAPS[0]), max_episode_steps=12
        )
        sync.reset(seed=2)
        native.reset(seed=2)
        rng = np.random.default_rng(3)
        for _ in range(250):
            step_equally(sync, native, rng.integers(0, 4, number))
            assert sync.get_attr("drift_state") == native.get_attr("drift_state")
