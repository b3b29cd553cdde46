"""Pictures with and without the truth."""

import hashlib

import gymnasium as gym
import numpy as np
import pytest

from drift_envs.errors import ArgumentError
from drift_envs.wrappers import DriftOverlay
from drift_envs.wrappers.overlay import BAR, FORCE, GHOST, INK, MARGIN, NEEDLE, PRESENT, REACH, STRIP, draw_strip
from tests.core_ids import CORE_IDS


def pictures(env, episodes, seed=0):
    found = []
    for episode in range(episodes):
        env.reset(seed=seed if episode == 0 else None)
        found.append(hashlib.sha256(np.ascontiguousarray(env.render())).hexdigest())
    return found


TWO = {
    "version": 1,
    "name": "two",
    "base": {"map": ["SFF", "FHF", "FFG"]},
    "drifts": [{"at": 1, "set": {"map": ["SFF", "FFF", "FHG"]}}],
}
REWARD = {
    "version": 1,
    "name": "reward",
    "base": {"map": ["SFG", "FFG"], "goal_rewards": {"0,2": 1.0, "1,2": 0.5}},
    "drifts": [{"at": 1, "swap": {"goal_rewards": ["0,2", "1,2"]}}],
}


def test_phases_differ_and_runs_agree():
    runs = [pictures(gym.make("DriftFrozenLake-v0", schedule=TWO, render_mode="rgb_array"), 3) for _ in range(2)]
    assert runs[0] == runs[1]
    assert runs[0][0] != runs[0][1] == runs[0][2]


def test_an_implicit_drift_shows_with_the_overlay_alone():
    plain = pictures(gym.make("DriftFrozenLake-v0", schedule=REWARD, render_mode="rgb_array"), 2)
    assert plain[0] == plain[1]
    overlaid = pictures(gym.make("DriftFrozenLake-v0", schedule=REWARD, render_mode="rgb_array", overlay=True), 2)
    assert overlaid[0] != overlaid[1]


def test_hidden_dynamics_do_not_show():
    for env_id, schedule in (
        ("DriftMountainCar-v0", "mountain_car/explicit"),
        ("DriftMountainCar-v0", "mountain_car/gravity"),
        ("DriftFrozenLake-v0", "frozen_lake/thaw"),
    ):
        env = gym.make(env_id, schedule=schedule, render_mode="rgb_array")
        env.reset(seed=0)
        first = env.render()
        env.reset(seed=0, options={"drift_tick": 60})
        assert np.array_equal(first, env.render())
        env.close()


@pytest.mark.parametrize("env_id", CORE_IDS)
def test_the_strip_stands_under_the_picture(env_id):
    plain, overlaid = (gym.make(env_id, render_mode="rgb_array", overlay=overlay) for overlay in (None, True))
    for env in (plain, overlaid):
        env.reset(seed=0)
    below = overlaid.render()
    assert below.dtype == np.uint8
    assert np.array_equal(below[:-STRIP], plain.render())
    plain.close()
    overlaid.close()


def test_a_window_shows_the_overlay_and_a_plain_one_does_not():
    env = gym.make("DriftFrozenLake-v0", render_mode="human", schedule=TWO)
    assert env.render_mode == "human"
    assert env.unwrapped.render_mode == "rgb_array"
    assert "DriftOverlay" in str(env)
    env.reset(seed=0)
    env.step(1)
    assert env.render() is None
    env.close()
    for arguments in ({"overlay": False}, {"schedule": None}):
        env = gym.make("DriftFrozenLake-v0", render_mode="human", **arguments)
        assert env.unwrapped.render_mode == "human"
        assert "DriftOverlay" not in str(env)
        env.close()


def test_overlays_of_what():
    with pytest.raises(ArgumentError, match="`env` should have a `DriftWrapper` in it"):
        DriftOverlay(gym.make("CartPole-v1"))


def drawn(env, overlaid):
    """Where the overlay has drawn on the picture itself."""
    plain = env.unwrapped.render()
    return (overlaid[:-STRIP] != plain).any(axis=2)


def test_changed_tiles_old_holes_and_the_way_are_drawn():
    env = gym.make("DriftFrozenLake-v0", schedule=TWO, render_mode="rgb_array", overlay=True)
    env.reset(seed=0)
    assert not drawn(env, env.render()).any(), "nothing has changed, no agent has moved"
    env.reset()
    marked = drawn(env, env.render())
    width, height = env.unwrapped.cell_size
    tiles = {
        (row, column)
        for row in range(3)
        for column in range(3)
        if marked[row * height : (row + 1) * height, column * width : (column + 1) * width].any()
    }
    assert tiles == {(1, 1), (2, 1)}
    box = marked[height : 2 * height, width : 2 * width]
    new = marked[2 * height :, width : 2 * width]
    assert box.sum() > new.sum() > 0, "the hole that was has a ring inside its frame"
    env.step(2)
    assert drawn(env, env.render())[: height - 1, width // 2 : width].any(), "the way to the right"
    env.reset()
    assert not drawn(env, env.render())[:height].any(), "a new episode, a new way"


@pytest.mark.parametrize(
    ("env_id", "action", "force"),
    [("DriftMountainCar-v0", 2, "force"), ("DriftMountainCarContinuous-v0", np.array([1.0], np.float32), "power")],
)
def test_the_arrow_shows_what_the_engine_does(env_id, action, force):
    """With reversed controls the push to the right goes to the left."""
    for sign in (1, -1):
        schedule = {"version": 1, "name": "r", "base": {force: sign * 0.001}}
        env = gym.make(env_id, schedule=schedule, render_mode="rgb_array", overlay=True)
        env.reset(seed=0)
        env.step(action)
        picture = env.render()
        car = (env.unwrapped.state[0] + 1.2) / 1.8 * picture.shape[1]
        columns = np.flatnonzero((picture[:-STRIP] == (11, 60, 111)).all(axis=2).any(axis=0))
        assert len(columns) > 20
        assert (columns.mean() > car) == (sign > 0)
        env.close()


def span(picture, colour):
    """The first and the last column with a colour."""
    columns = np.flatnonzero((picture[:-STRIP] == colour).all(axis=2).any(axis=0))
    return None if len(columns) == 0 else (columns[0], columns[-1])


@pytest.mark.parametrize(
    ("knob", "after", "pushed", "ghost"),
    [("force_mag", 5, 0.5, 1), ("force_mag", -10, -1, 1), ("action_permutation", [1, 0], -1, None)],
)
def test_arrows_show_the_force_on_a_cart_and_that_of_the_phase_before(knob, after, pushed, ghost):
    schedule = {"version": 1, "name": "f", "drifts": [{"at": 1, "set": {knob: after}}]}
    env = gym.make("DriftCartPole-v0", schedule=schedule, render_mode="rgb_array", overlay=True)
    for phase, (present, before) in enumerate(((1, None), (pushed, ghost))):
        env.reset(seed=0 if phase == 0 else None)
        assert span(env.render(), FORCE) is None, "nothing pushes before the first step"
        env.step(1)
        picture, cart = env.render(), 300 + env.unwrapped.state[0] * 600 / 4.8
        for force, colour in ((present, FORCE), (before, GHOST)):
            expected = None if force is None else sorted((cart, cart + force * REACH))
            assert span(picture, colour) == (None if expected is None else pytest.approx(expected, abs=4))
    env.close()


def test_a_short_phase_is_wide_enough_for_its_name():
    schedule = {"version": 1, "name": "s", "drifts": [{"name": "gust", "every": 500, "for": 2, "set": {"slip": 0.5}}]}
    env = gym.make("DriftFrozenLake-v0", schedule=schedule)
    env.reset(seed=0)
    for width, least in ((256, 35), (600, 50)):
        strip = draw_strip(width, ("phase gust", ""), env.get_wrapper_attr("timeline"), 1001)
        present = np.flatnonzero((strip == PRESENT).all(axis=2).any(axis=0))
        assert len(present) >= least


def columns(strip, colour):
    """Where a colour stands in the strip's bar, from left to right."""
    return np.flatnonzero((strip[-BAR - MARGIN : -MARGIN] == colour).all(axis=2).any(axis=0))


def test_the_needle_stands_at_the_tick_and_each_phase_has_its_name():
    env = gym.make(
        "DriftFrozenLake-v0", schedule={"version": 1, "name": "n", "drifts": [{"at": 10, "set": {"slip": 0.5}}]}
    )
    env.reset(seed=0)
    timeline, needles = env.get_wrapper_attr("timeline"), []
    for tick in range(10):
        strip = draw_strip(600, ("", ""), timeline, tick)
        present = np.union1d(columns(strip, PRESENT), columns(strip, NEEDLE))
        needles.append(columns(strip, NEEDLE).mean())
        assert needles[-1] == pytest.approx(present[0] + (present[-1] - present[0]) * (tick + 0.5) / 10, abs=3)
        names = columns(strip, INK)
        assert (names < present[-1]).any(), "source"
        assert (names > present[-1]).any(), "the drift after it"
    assert needles == sorted(set(needles))


def test_a_flag_that_moved_leaves_a_ghost():
    schedule = {"version": 1, "name": "g", "drifts": [{"at": 1, "set": {"goal_position": 0.3}}]}
    env = gym.make("DriftMountainCar-v0", schedule=schedule, render_mode="rgb_array", overlay=True)
    env.reset(seed=0)
    env.reset()
    ghost = np.flatnonzero((env.render() == (90, 100, 110)).all(axis=2).any(axis=0))
    assert ghost.mean() == pytest.approx((0.5 + 1.2) / 1.8 * 600, abs=3)
    env.close()


def test_the_score_is_told():
    env = gym.make("DriftFrozenLake-v0", schedule=REWARD, render_mode="rgb_array", overlay=True)
    for _ in range(2):
        env.reset(seed=0)
        for action in (2, 2):
            env.step(action)
        assert env.get_wrapper_attr("lines")()[0] == "phase source, episode 0, step 2, score 1"
    env = gym.make("DriftMountainCar-v0", render_mode="rgb_array", overlay=True)
    env.reset(seed=0)
    env.step(0)
    assert env.get_wrapper_attr("lines")()[0].endswith(", score 0"), "a car's score is its flag, not its rewards"
    env.unwrapped.state = np.array([0.49, 0.06])
    assert env.step(2)[2]
    assert env.get_wrapper_attr("lines")()[0].endswith(", score 1")
    env.close()


def test_a_house_shows_locks_and_changes_in_the_overlay_alone():
    pictures_of = {}
    for name in ("house/locked", "house/keys", "house/implicit"):
        for overlay in (False, True):
            env = gym.make("DriftHouse-v0", schedule=name, render_mode="rgb_array", overlay=overlay)
            for tick in (0, 20):
                env.reset(seed=0, options={"drift_tick": tick})
                pictures_of[name, overlay, tick] = env.render()[:-STRIP] if overlay else env.render()
            env.close()
        assert np.array_equal(pictures_of[name, False, 0], pictures_of[name, False, 20])
        assert not np.array_equal(pictures_of[name, True, 0], pictures_of[name, True, 20])


@pytest.mark.parametrize(
    ("clock", "first", "second"),
    [
        ("episode", "phase source, episode 0, step 0, score 0", "phase late, episode 1, step 2, score 0"),
        ("step", "phase source, step 0, episode 0, score 0", "phase late, step 3, episode 1, score 0"),
        ("episode_step", "phase source, episode 0, step 0, score 0", "phase late, episode 1, step 1, score 0"),
    ],
)
def test_the_strip_counts_as_the_clock_does(clock, first, second):
    schedule = {"version": 1, "name": "c", "clock": clock, "drifts": [{"name": "late", "at": 1, "set": {"slip": 0.5}}]}
    env = gym.make("DriftFrozenLake-v0", schedule=schedule, render_mode="ansi", overlay=True)
    env.reset(seed=0)
    lines = env.get_wrapper_attr("lines")
    assert lines()[0] == first
    for _ in range(2):
        env.step(0)
    env.reset()
    for _ in range(2):
        env.step(0)
    assert lines()[0] == second
