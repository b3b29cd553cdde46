"""What learners of other libraries do: reset on their own, wrappers that reset, and a schedule around a drifting id."""

import pickle
import re
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import Autoreset
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from matplotlib import pyplot

from drift_envs import DriftWrapper, plots
from drift_envs.errors import ArgumentError, DriftWarning
from drift_envs.wrappers import HeldClock, PhaseReturn, PhaseReturns, VectorPhaseReturns
from drift_envs.wrappers.plain_data import from_plain, to_plain
from drift_envs.wrappers.records import EpisodeReturns

LONGER = {
    "version": 1, "name": "longer", "base": {"map": ["SFG"]},
    "drifts": [{"name": "far", "at": 2, "set": {"map": ["SFFFG"]}}],
}  # fmt: skip
RIGHT = 2


def track(**arguments):
    return gym.make("DriftFrozenLake-v0", schedule=LONGER, **arguments)


def test_episodes_that_a_wrapper_inside_resets_are_stored_one_by_one():
    env = PhaseReturns(Autoreset(track()))
    env.reset(seed=0)
    for _ in range(12):
        env.step(RIGHT)
    assert [tuple(episode) for episode in env.episodes] == [
        ("source", 0, 1.0, 2), ("source", 1, 1.0, 2), ("far", 2, 1.0, 4),
    ]  # fmt: skip


def test_a_wrapper_that_resets_stands_outside_of_what_counts_or_holds_time():
    for wrapper in (HeldClock, DriftWrapper):
        with pytest.raises(ArgumentError, match="`env` should have no `Autoreset` inside"):
            wrapper(Autoreset(track()))
    held = HeldClock(track())
    held.hold_at(1)
    env = Autoreset(held)
    env.reset(seed=0)
    for _ in range(9):
        env.step(RIGHT)
    assert env.get_wrapper_attr("drift_state").tick == 1


def test_steps_after_the_end_are_no_episode():
    env = PhaseReturns(track(max_episode_steps=1))
    env.reset(seed=0)
    for _ in range(3):
        env.step(RIGHT)
    assert [episode.steps for episode in env.episodes] == [1]


def play_and_leave(env, episodes, steps):
    for episode in range(episodes):
        env.reset(seed=0 if episode == 0 else None)
        for _ in range(steps):
            env.step(RIGHT)


def test_episodes_that_are_left_before_their_end_are_reported_once():
    env = PhaseReturns(track())
    play_and_leave(env, 6, 1)
    with pytest.warns(
        DriftWarning, match=r"^6 episodes were left before their end and are not stored, 0 ended"
    ) as found:
        play_and_leave(env, 4, 1)
    assert [str(one.message)[:10] for one in found].count("6 episodes") == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error", DriftWarning)
        play_and_leave(PhaseReturns(track(max_episode_steps=1)), 10, 1)


def test_a_knob_has_one_schedule():
    rule = "`env` has a `DriftWrapper` whose schedule `longer` drives `map` too: give the schedule to `gym.make("
    with pytest.raises(ArgumentError, match=re.escape(rule)):
        DriftWrapper(track(), {**LONGER, "name": "other"})
    slippery = {"version": 1, "name": "slippery", "drifts": [{"at": 1, "set": {"slip": 0.5}}]}
    assert DriftWrapper(track(), slippery).timeline.names == ("slip",)
    assert DriftWrapper(gym.make("DriftFrozenLake-v0", schedule=None), LONGER).timeline.names == ("map",)


@pytest.mark.parametrize("name", ["text", "overlay"])
def test_flags_of_an_id_are_true_or_false(name):
    with pytest.raises(ArgumentError, match=f"`{name}` should be true or false. Received 'no'"):
        track(**{name: "no"})


def test_a_vector_wrapper_around_what_stores_is_drawn():
    tracks = RecordEpisodeStatistics(
        VectorPhaseReturns(gym.make_vec("DriftFrozenLake-v0", num_envs=2, schedule=LONGER))
    )
    tracks.reset(seed=0)
    for _ in range(12):
        tracks.step([RIGHT, RIGHT])
    assert plots.returns(tracks).get_ylabel() == "return, mean of 2"
    with pytest.raises(ArgumentError, match=r"should be one of Matplotlib's `Axes`\. Received module"):
        plots.returns(tracks, axes=pyplot)
    pyplot.close("all")


def test_stored_episodes_read_like_a_list_of_them():
    rng = np.random.default_rng(0)
    phases, ticks, steps = rng.integers(5, size=3000), rng.integers(2**40, size=3000), rng.integers(9, size=3000)
    rows = zip(phases.tolist(), ticks.tolist(), rng.normal(size=3000).tolist(), steps.tolist(), strict=True)
    listed = [PhaseReturn(f"phase-{phase}", tick, score, length) for phase, tick, score, length in rows]
    stored = EpisodeReturns.of(listed)
    assert list(stored) == stored[:] == listed
    assert stored == listed
    assert listed == stored
    assert stored != EpisodeReturns.of(listed[1:])
    for place in (0, 17, 2999, -1, -3000):
        assert stored[place] == listed[place]
    assert stored[10:1000:7] == listed[10:1000:7]
    assert stored[::-1] == listed[::-1]
    assert {type(part) for part in stored[5]} == {str, int, float}
    with pytest.raises(IndexError):
        stored[3000]
    assert pickle.loads(pickle.dumps(stored)) == from_plain(to_plain(stored)) == listed
    assert stored.numbers.nbytes + stored.scores.nbytes <= 1.5 * 32 * len(stored)
    stored.clear()
    assert list(stored) == []
    stored.append(listed[3])
    assert stored == [listed[3]]
