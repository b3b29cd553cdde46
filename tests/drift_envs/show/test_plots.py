"""`drift_envs.show.plots`: what stored episodes look like around a drift."""

import re

import gymnasium as gym
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure

from drift_envs import make_from_schedule, plots
from drift_envs.errors import ArgumentError, DriftWarning, StateError
from drift_envs.wrappers import (
    DriftOverlay,
    DriftWrapper,
    HeldClock,
    PhaseReturns,
    TextObservation,
    VectorPhaseReturns,
    snapshot,
    twin,
)

TRACK = {"version": 1, "name": "track", "env": "DriftFrozenLake-v0", "base": {"map": ["SFG", "FFF"]}}
HOLE = ["SHG", "FFF"]
LONGER = {**TRACK, "drifts": [{"name": "longer", "at": 5, "set": {"map": ["SFFG"]}}]}


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    pyplot.close("all")


def walk_right(env, episodes, seed=0):
    for episode in range(episodes):
        env.reset(seed=seed if episode == 0 else None)
        while not any(env.step(2)[2:4]):
            pass
    return env


def curve(axes, index=0):
    """The finite points of a line."""
    x, y = axes.get_lines()[index].get_data()
    return {float(a): float(b) for a, b in zip(x, y, strict=True) if not np.isnan(a)}


def test_the_fall_stands_at_the_drift_and_no_mean_spans_it():
    schedule = {**TRACK, "drifts": [{"name": "hole", "at": 5, "set": {"map": HOLE}}]}
    env = walk_right(PhaseReturns(make_from_schedule(schedule)), 9)
    axes = plots.returns(env, bins=2)
    x, y = axes.get_lines()[0].get_data()
    assert list(x[:1]) == [2.0]
    assert np.isnan(x[1])
    assert list(x[2:]) == [6.5]
    assert list(y[:1]) == [1.0]
    assert list(y[2:]) == [0.0]
    assert axes.get_lines()[-1].get_xdata()[0] == 5
    assert axes.texts[0].get_text() == " hole"
    assert axes.get_xlabel() == "episode"
    assert axes.get_ylabel() == "return"


def test_success_is_a_share_and_several_environments_have_a_band(tmp_path):
    falls = walk_right(PhaseReturns(make_from_schedule({**TRACK, "base": {"map": HOLE}})), 4)
    comes = walk_right(PhaseReturns(make_from_schedule(TRACK)), 4)
    out = tmp_path / "success.png"
    axes = plots.returns([falls, comes], success=0.5, out=out)
    assert curve(axes) == {0.0: 50.0, 1.0: 50.0, 2.0: 50.0, 3.0: 50.0}
    assert len(axes.collections) == 1
    assert out.read_bytes().startswith(b"\x89PNG")
    assert axes.get_ylabel() == "success in percent, mean of 2"


def test_around_a_phase_and_two_learners_in_one_picture():
    schedule = {**LONGER, "drifts": [*LONGER["drifts"], {"name": "back", "at": 8, "set": {"map": ["SFG", "FFF"]}}]}
    env = walk_right(PhaseReturns(make_from_schedule(schedule)), 12)
    axes = plots.returns(env, around="longer", label="one")
    plots.returns(env, around="longer", label="two", axes=axes)
    assert sorted(curve(axes)) == [-5.0, -4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0]
    assert axes.get_xlabel() == "episodes since the drift"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["one", "two"]
    with pytest.raises(ArgumentError, match=r"after the first: longer, back\. Received 'wide'$"):
        plots.returns(env, around="wide")
    with pytest.raises(ArgumentError, match=r"after the first: longer, back\. Received 'source'$"):
        plots.returns(env, around="source")
    with pytest.raises(ArgumentError, match=r"`around` should be the name of a phase\. Received 3"):
        plots.returns(env, around=3)
    with pytest.raises(ArgumentError, match=r"`axes` should be one of Matplotlib's `Axes`\. Received Figure"):
        plots.returns(env, axes=axes.figure)
    early = walk_right(PhaseReturns(make_from_schedule(schedule)), 6)
    with pytest.raises(ArgumentError, match=r"'back', which begins at tick 8, and the last episode began at tick 5$"):
        plots.returns(early, around="back")


def test_copies_with_drifts_of_their_own_are_drawn_around_the_first():
    jumps = {**TRACK, "drifts": [{"name": "hole", "at": 5, "every": 20, "for": 6, "jitter": 4, "set": {"map": HOLE}}]}
    envs = [walk_right(PhaseReturns(make_from_schedule(jumps)), 14, seed=seed) for seed in range(4)]
    assert len({env.get_wrapper_attr("timeline").phases(14)[1].start for env in envs}) > 1
    found = curve(plots.returns(envs))
    assert all(score == (1.0 if time < 0 else 0.0) for time, score in found.items())
    assert min(found) < 0 < max(found)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
@pytest.mark.parametrize("native", [True, False])
def test_a_vector_environment_stores_what_single_ones_store(mode, native):
    steps = {**LONGER, "clock": "step"}
    single = PhaseReturns(make_from_schedule(steps))
    walk_right(single, 6)
    if native:
        made = gym.make_vec("DriftFrozenLake-v0", num_envs=2, schedule=steps, autoreset_mode=mode)
    else:
        made = gym.vector.SyncVectorEnv([lambda: make_from_schedule(steps)] * 2, autoreset_mode=mode)
    vector = VectorPhaseReturns(made)
    vector.reset(seed=0)
    while min(map(len, vector.episodes)) < 6:
        _, _, terminated, truncated, _ = vector.step(np.array([2, 2]))
        if mode == "Disabled" and (terminated | truncated).any():
            vector.reset(options={"reset_mask": terminated | truncated})
    assert vector.episodes == [single.episodes] * 2
    assert vector.by_phase()["source"] == 2 * single.by_phase()["source"]
    assert curve(plots.returns(vector)) == curve(plots.returns(single))


def test_what_stored_nothing_is_refused():
    with pytest.raises(ArgumentError, match="put `PhaseReturns` around each environment"):
        plots.returns(gym.make("DriftFrozenLake-v0"))
    with pytest.raises(ArgumentError, match="at least one finished episode"):
        plots.returns(PhaseReturns(gym.make("DriftFrozenLake-v0")))
    within = walk_right(PhaseReturns(make_from_schedule({**LONGER, "clock": "episode_step"})), 1)
    with pytest.raises(ArgumentError, match=r"one clock, `episode` or `step`\. Received episode_step"):
        plots.returns(within)
    with pytest.raises(ArgumentError, match="should be a vector environment that drifts"):
        VectorPhaseReturns(gym.make_vec("CartPole-v1", num_envs=1, vectorization_mode="sync"))


def test_an_unknown_ending_is_refused_by_name(tmp_path):
    env = walk_right(PhaseReturns(make_from_schedule(TRACK)), 1)
    with pytest.raises(ArgumentError, match=r"`out` should end in one of .*\.png, .*\. Received '.*a\.xyz'"):
        plots.returns(env, out=tmp_path / "a.xyz")
    assert not pyplot.get_fignums()


def test_a_picture_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    env = walk_right(PhaseReturns(make_from_schedule(TRACK)), 1)
    (tmp_path / "file").touch()
    with pytest.raises(ArgumentError, match="`out` should be a file that can be written: a file or a broken link has"):
        plots.returns(env, out=tmp_path / "file" / "a.png")
    (tmp_path / "a.png").write_text("before")

    def fill_disk(figure, path):
        path.write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", fill_disk)
    with pytest.raises(StateError, match=r"a\.png: cannot be written: No space left on device"):
        plots.returns(env, out=tmp_path / "a.png")
    assert (tmp_path / "a.png").read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.png", "file"]


TAKERS = [PhaseReturns, HeldClock, TextObservation, DriftOverlay, DriftWrapper, snapshot, twin]


@pytest.mark.parametrize("taker", TAKERS)
def test_what_is_no_single_environment_is_refused_with_advice_that_fits(taker):
    rule = "`env` should be a single environment, a `gymnasium.Env`. Received "
    with pytest.raises(
        ArgumentError, match=re.escape(f"{rule}'CartPole-v1'; make it first: `gym.make('CartPole-v1')`")
    ):
        taker("CartPole-v1")
    for other in (None, gym.Env):
        with pytest.raises(ArgumentError, match=re.escape(f"{rule}{other!r}") + "$"):
            taker(other)
    with pytest.raises(ArgumentError, match=re.escape(rule)) as found:
        taker(gym.make_vec("DriftFrozenLake-v0", num_envs=2))
    assert str(found.value).endswith("; use `VectorPhaseReturns`") == (taker is PhaseReturns)


def test_a_single_environment_is_refused_where_several_are_expected():
    with pytest.raises(ArgumentError, match=r"should be a vector environment that drifts\. .*; use `PhaseReturns`$"):
        VectorPhaseReturns(gym.make("DriftFrozenLake-v0"))


def test_two_learners_in_one_environment_are_reported_by_their_picture():
    env = walk_right(PhaseReturns(make_from_schedule(LONGER)), 7)
    with pytest.warns(DriftWarning, match="has rewound"):
        walk_right(env, 2)
    with pytest.warns(DriftWarning, match=r"went back from tick 6 to 0, .* an environment for each learner"):
        plots.returns(env)


def test_a_ramp_is_shaded_until_it_is_up():
    drift = {"name": "ice", "at": 3, "kind": "incremental", "over": 4, "set": {"slip": 0.4}}
    env = walk_right(PhaseReturns(make_from_schedule({**TRACK, "drifts": [drift]})), 12)
    (shade,) = plots.returns(env).patches
    assert (shade.get_x(), shade.get_x() + shade.get_width()) == (3, 7)
    (shade,) = plots.returns(env, around="ice").patches
    assert (shade.get_x(), shade.get_x() + shade.get_width()) == (0, 4)
    assert not plots.returns(walk_right(PhaseReturns(make_from_schedule(LONGER)), 9)).patches


def test_a_drift_that_no_episode_reached_is_told():
    env = walk_right(PhaseReturns(make_from_schedule(LONGER)), 5)
    with pytest.warns(DriftWarning, match="the last one began at tick 4"):
        plots.returns(env)


def test_the_band_stays_within_what_was_seen_and_the_axis_says_how_many(tmp_path):
    falls = walk_right(PhaseReturns(make_from_schedule({**TRACK, "base": {"map": HOLE}})), 4)
    comes = walk_right(PhaseReturns(make_from_schedule(TRACK)), 4)
    axes = plots.returns([falls, comes], out=tmp_path / "new" / "band.png")
    heights = axes.collections[0].get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (0.0, 1.0)
    assert axes.get_ylabel() == "return, mean of 2"
    assert (tmp_path / "new" / "band.png").is_file()
