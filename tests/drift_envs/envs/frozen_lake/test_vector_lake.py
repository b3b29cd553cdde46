"""Native lakes equal single lakes: step by step without random transitions, in frequency with them."""

from __future__ import annotations

import copy
import pickle
import re
import tracemalloc

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from scipy.stats import chi2

from drift_envs.envs.frozen_lake.dynamics import transitions
from drift_envs.envs.frozen_lake.vector import VectorFrozenLake
from drift_envs.errors import ArgumentError, DrivenKnobError, StateError

pytestmark = pytest.mark.integration

LAKE = "DriftFrozenLake-v0"
MAPS = (["SFFF", "FFFH", "FHFF", "FFFG"], ["SFH", "FFF", "FFG"], ["SFFF", "HFFF", "FFFH", "HFFG"])
MODES = ("NextStep", "SameStep")
DRIFTS = {
    "random": [{"name": "r", "rate": 0.05, "choice": {"map": list(MAPS)}}],
    "every": [{"name": "e", "every": 3, "for": 1, "set": {"map": MAPS[1]}}],
    "both": [
        {"name": "e", "every": 30, "for": 12, "set": {"map": MAPS[2]}},
        {"name": "q", "rate": 0.1, "for": 4, "set": {"map": MAPS[1]}},
    ],
}
SHIPPED = ("frozen_lake/explicit", "frozen_lake/implicit", "frozen_lake/explicit:family", "frozen_lake/tides")


def assert_equal_runs(sync, native, steps, number):
    """Step both with the same actions and compare all results."""
    np.testing.assert_array_equal(sync.reset(seed=5)[0], native.reset(seed=5)[0])
    rng = np.random.default_rng(0)
    for step in range(steps):
        actions = rng.integers(0, 4, number)
        expected, found = sync.step(actions), native.step(actions)
        for old, new in zip(expected[:4], found[:4], strict=True):
            np.testing.assert_array_equal(old, new)
            assert old.dtype == new.dtype
        assert set(expected[4]) == set(found[4])
        for key in expected[4]:
            if key != "final_info":
                np.testing.assert_array_equal(expected[4][key], found[4][key])
        if step % 61 == 0:
            assert sync.get_attr("drift_state") == native.get_attr("drift_state")
    assert sync.get_attr("drift_log") == native.get_attr("drift_log")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("schedule", SHIPPED)
def test_shipped_schedules_step_by_step(make_pair, schedule, mode):
    assert_equal_runs(*make_pair(LAKE, 5, mode, schedule=schedule), steps=1200, number=5)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("clock", ["episode", "step", "episode_step"])
@pytest.mark.parametrize("drifts", DRIFTS)
def test_maps_that_change_within_episodes_step_by_step(make_pair, make_schedule, drifts, clock, mode):
    schedule = make_schedule(clock, *DRIFTS[drifts], map=MAPS[0])
    assert_equal_runs(*make_pair(LAKE, 4, mode, schedule=schedule), steps=500, number=4)


@pytest.mark.parametrize("options", [{"drift_tick": 31}, {"drift_clock": "hold"}, {"drift_phase": "e"}])
@pytest.mark.parametrize("clock", ["episode", "step", "episode_step"])
def test_clock_options_equal_those_of_single_environments(make_pair, make_schedule, clock, options):
    sync, native = make_pair(LAKE, 3, "NextStep", schedule=make_schedule(clock, DRIFTS["both"][0], map=MAPS[0]))
    sync.reset(seed=1)
    native.reset(seed=1)
    rng = np.random.default_rng(2)
    for reset_options in (
        options,
        None,
        {"drift_clock": "hold", "drift_tick": 35},
        {"drift_clock": "hold"},
        None,
        None,
    ):
        for _ in range(25):
            actions = rng.integers(0, 4, 3)
            np.testing.assert_array_equal(sync.step(actions)[0], native.step(actions)[0])
            assert sync.get_attr("drift_state") == native.get_attr("drift_state")
        np.testing.assert_array_equal(sync.reset(options=reset_options)[0], native.reset(options=reset_options)[0])
        assert sync.get_attr("drift_state") == native.get_attr("drift_state")
    assert sync.get_attr("drift_log") == native.get_attr("drift_log")


def test_numeric_knobs_equal_those_of_single_environments(make_pair, make_schedule):
    ramp = {"name": "r", "every": 200, "kind": "incremental", "over": 90, "for": 190, "set": {"slip": 0.6}}
    walk = {"name": "w", "rate": 0.1, "walk": {"slip": 0.05}}
    for clock in ("episode", "step", "episode_step"):
        for drift in (ramp, walk):
            sync, native = make_pair(LAKE, 3, "NextStep", schedule=make_schedule(clock, drift, slip=0.2))
            sync.reset(seed=3)
            native.reset(seed=3)
            for _ in range(300):  # actions against the wall, so that both have the same episodes
                for env in sync.envs:
                    env.unwrapped.s = 0
                native.set_attr("s", 0)
                sync.step(np.zeros(3, int))
                native.step(np.zeros(3, int))
                if not any(state.step == 0 for state in sync.get_attr("drift_state")):
                    assert sync.get_attr("drift_state") == native.get_attr("drift_state")


def test_disabled_autoreset_needs_a_mask(make_pair):
    lakes = make_pair(LAKE, 4, "Disabled", schedule=None, is_slippery=False)[1]
    lakes.reset(seed=0)
    for actions in ([2, 1, 1, 1], [1, 1, 1, 1]):  # the first agent reaches a hole
        _, _, terminations, truncations, _ = lakes.step(np.array(actions))
    assert terminations.tolist() == [True, False, False, False]
    with pytest.raises(StateError, match=re.escape("sub-environment 0 has ended its episode")):
        lakes.step(np.zeros(4, int))
    observations, _ = lakes.reset(options={"reset_mask": terminations | truncations})
    assert observations.tolist() == [0, 8, 8, 8]
    lakes.step(np.zeros(4, int))


def test_step_limits():
    assert gym.make_vec(LAKE, num_envs=2).max_episode_steps == 100
    lakes = gym.make_vec(LAKE, num_envs=2, max_episode_steps=3)
    lakes.reset(seed=0)
    ends = [bool(lakes.step(np.zeros(2, int))[3].all()) for _ in range(8)]
    assert ends == [False, False, True, False, False, False, True, False]


@pytest.mark.parametrize(("slip", "transient"), [(0.4, 0.0), (2 / 3, 0.3), (1.0, 0.0)])
def test_transition_frequencies_agree_with_the_exact_table(slip, transient):
    """Chi-square over all states and actions, at the level 0.001 with a fixed seed."""
    number, steps, lake = 512, 120, MAPS[0]
    schedule = {"version": 1, "name": "n", "base": {"map": lake, "slip": slip, "transient": transient}, "drifts": []}
    lakes = gym.make_vec(LAKE, num_envs=number, schedule=schedule)
    table = transitions(tuple(lake), slip=slip, transient=transient).matrix()
    states = len(table)
    counts = np.zeros((states, 4, states))
    rng = np.random.default_rng(1)
    lakes.reset(seed=0)
    free = np.array([state for state, letter in enumerate("".join(lake)) if letter in "SF"])
    for _ in range(steps):
        lakes.reset()
        here, actions = rng.choice(free, number), rng.integers(0, 4, number)
        lakes.set_attr("s", here.tolist())
        np.add.at(counts, (here, actions, lakes.step(actions)[0]), 1)
    expected = counts.sum(axis=2, keepdims=True) * table
    assert not counts[table == 0].any()
    possible = expected > 0
    statistic = ((counts - expected)[possible] ** 2 / expected[possible]).sum()
    freedom = (possible.sum(axis=2) - 1)[free].sum()
    assert expected[possible].min() > 5
    assert statistic < chi2.ppf(0.999, freedom) if freedom else statistic == 0


def test_random_streams_are_independent_and_reproducible():
    def run(number, actions):
        lakes = gym.make_vec(LAKE, num_envs=number, schedule="frozen_lake/slippery")
        lakes.reset(seed=7)
        return np.array([lakes.step(row)[0] for row in actions])

    actions = np.random.default_rng(0).integers(0, 4, (200, 6))
    np.testing.assert_array_equal(run(6, actions), run(6, actions))
    other = actions.copy()
    other[:, 0] = (other[:, 0] + 1) % 4
    # other actions in the first column do not change the other columns
    np.testing.assert_array_equal(run(6, actions)[:, 1:], run(6, other)[:, 1:])


def test_timelines_are_seeded_as_side_by_side_or_shared():
    own = gym.make_vec(LAKE, num_envs=3, schedule="frozen_lake/explicit:family")
    shared = gym.make_vec(LAKE, num_envs=3, schedule="frozen_lake/explicit:family", share_timeline=True)
    own.reset(seed=4)
    shared.reset(seed=4)
    singles = []
    for index in range(3):
        single = gym.make(LAKE, schedule="frozen_lake/explicit:family")
        single.reset(seed=4 + index)
        singles.append(single.get_wrapper_attr("drift_state").knobs["map"])
    assert own.get_attr("map") == tuple(singles)
    assert shared.get_attr("map") == (singles[0],) * 3


def test_a_list_of_seeds_lets_the_time_of_some_go_on(make_schedule):
    schedule = make_schedule("episode", {"name": "d", "at": 1, "set": {"slip": 0.5}})
    lakes = gym.make_vec(LAKE, num_envs=3, schedule=schedule)
    lakes.reset(seed=0)
    lakes.reset()
    lakes.reset(seed=[4, None, 9])
    assert lakes.get_attr("tick") == (0, 2, 0)
    assert lakes.get_attr("slip") == (0.0, 0.5, 0.0)


def test_prob_is_shown_without_a_schedule_alone(make_pair):
    sync, native = make_pair(LAKE, 4, "NextStep", schedule=None)
    sync.reset(seed=0)
    native.reset(seed=0)
    for _ in range(50):
        infos = native.step(np.array([0, 1, 2, 3]))[4]
        assert set(np.round(infos["prob"], 6)) <= {0.333333, 1.0}
        assert infos["_prob"].all()
    assert gym.make_vec(LAKE, num_envs=2).reset(seed=0)[1] == {}


def test_attributes_of_sub_environments():
    lakes = gym.make_vec(LAKE, num_envs=3, schedule="frozen_lake/explicit", max_episode_steps=50)
    lakes.reset(seed=0)
    assert lakes.get_attr("slip") == (0.0, 0.0, 0.0)
    assert lakes.get_attr("oracle")[0].effect(0, 20).carried == 0.0
    lakes.set_attr("slip", [0.0, 0.5, 1.0])
    assert lakes.call("slip") == (0.0, 0.5, 1.0)
    lakes.set_attr("transient", 0.25)
    assert lakes.get_attr("transient") == (0.25,) * 3
    assert len(lakes.call("knobs_at", 20)) == 3
    with pytest.raises(DrivenKnobError, match="driven by the schedule"):
        lakes.set_attr("map", [MAPS[0]] * 3)
    with pytest.raises(ArgumentError, match="one value for each of 3"):
        lakes.set_attr("slip", [0.1])


def test_invalid_arguments_of_lakes():
    lakes = gym.make_vec(LAKE, num_envs=2)
    with pytest.raises(StateError, match="before `reset`"):
        lakes.step(np.zeros(2, int))
    lakes.reset(seed=0)
    for actions, text in (
        (np.array([0, 4]), "`actions[1]` should be one of 0, 1, 2, 3. Received 4"),
        (np.array([-1, 0]), "Received -1"),
        (np.zeros(3, int), "shape (2,)"),
        (np.zeros(2), "whole numbers"),
    ):
        with pytest.raises(ArgumentError, match=re.escape(text)):
            lakes.step(actions)
    for seed in (-1, "a", [1], 1.5):
        with pytest.raises(ArgumentError, match="`seed`"):
            lakes.reset(seed=seed)
    with pytest.raises(ArgumentError, match="reset_mask"):
        lakes.reset(options={"reset_mask": np.zeros(2, bool)})
    for text in (False, True):
        for name, value in {"autoreset_mode": "Never", "num_envs": 0, "share_timeline": "no"}.items():
            with pytest.raises(ArgumentError, match=f"`{name}` should be .* Received {value!r}"):
                gym.make_vec(LAKE, text=text, **{"num_envs": 2, name: value})
    with pytest.raises(ArgumentError, match="`share_timeline` should be False with text"):
        gym.make_vec(LAKE, num_envs=2, text=True, share_timeline=True)


def test_arguments_without_vectorized_form_give_sync():
    text = gym.make_vec(LAKE, num_envs=2, text=True)
    assert isinstance(text.unwrapped, SyncVectorEnv)
    assert "cur_pos" in text.reset(seed=0)[0][0]
    delayed = {"version": 1, "name": "late", "base": {"action_delay": 1}, "drifts": []}
    assert isinstance(gym.make_vec(LAKE, num_envs=2, schedule=delayed).unwrapped, SyncVectorEnv)
    native = gym.make_vec(LAKE, num_envs=2, autoreset_mode=AutoresetMode.SAME_STEP)
    assert isinstance(native, VectorFrozenLake)
    assert native.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP


def test_frames_of_lakes():
    lakes = gym.make_vec(LAKE, num_envs=3, render_mode="rgb_array")
    lakes.reset(seed=0)
    single = gym.make(LAKE, render_mode="rgb_array")
    single.reset(seed=0)
    lakes.step(np.array([1, 1, 1]))
    single.step(1)
    frames = lakes.render()
    np.testing.assert_array_equal(frames[2], single.render())
    height, width, _ = frames[0].shape
    assert lakes.render_grid(columns=2).shape == (2 * height, 2 * width, 3)


def test_copies_continue_equally():
    lakes = gym.make_vec(LAKE, num_envs=4, schedule="frozen_lake/slippery:family")
    lakes.reset(seed=0)
    actions = np.random.default_rng(0).integers(0, 4, (60, 4))
    for row in actions:
        lakes.step(row)
    for duplicate in (copy.deepcopy(lakes), pickle.loads(pickle.dumps(lakes))):
        copied = copy.deepcopy(lakes)
        for row in actions:
            np.testing.assert_array_equal(copied.step(row)[0], duplicate.step(row)[0])


@pytest.mark.parametrize("schedule", ["frozen_lake/explicit", "frozen_lake/slippery"])
def test_a_step_allocates_only_its_results(schedule):
    number = 16_384
    lakes = gym.make_vec(LAKE, num_envs=number, schedule=schedule)
    lakes.reset(seed=0)
    actions = np.random.default_rng(0).integers(0, 4, (20, number))
    for row in actions:
        result = lakes.step(row)
    returned = sum(part.nbytes for part in result[:4])
    tracemalloc.start()
    try:
        for row in actions:
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            result = lakes.step(row)
            # the results of the last step are freed when `result` is assigned
            assert tracemalloc.get_traced_memory()[1] - before < 1.3 * returned
    finally:
        tracemalloc.stop()
