"""Vector environments go on where they were, in every form and mode; and a program moves their time."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import drift_envs
from drift_envs.errors import ArgumentError, StateError
from drift_envs.wrappers import VectorPhaseReturns
from tests.drift_envs.progress import check_goes_on

MODES = ("NextStep", "SameStep", "Disabled")
CLOCKS = ("episode", "step", "episode_step")
SLIPS: dict[str, Any] = {"at": 5, "set": {"slip": 0.4}}
MAPS: dict[str, Any] = {"every": 7, "for": 3, "set": {"map": ["SFFF", "FHFF", "FFFG"]}}
WALK: dict[str, Any] = {"rate": 0.1, "walk": {"transient": 0.1}}
RAMP: dict[str, Any] = {"at": 20, "kind": "incremental", "over": 100, "add": {"slip": 0.2}}
STARTS = (None, {"drift_clock": "hold"}, {"drift_tick": 6}, {"drift_tick": 9, "drift_clock": "hold"})


def plan(clock: str, *drifts: dict[str, Any]) -> dict[str, Any]:
    return {"version": 1, "name": "plan", "clock": clock, "drifts": list(drifts)}


def make_lakes(form: str | None, mode: str, schedule: Any, **arguments: Any) -> Any:
    arguments = {"num_envs": 3, "schedule": schedule, "max_episode_steps": 9, **arguments}
    if form is None:
        return gym.make_vec("DriftFrozenLake-v0", autoreset_mode=mode, **arguments)
    kwargs = {"autoreset_mode": mode, **arguments.pop("vector_kwargs", {})}
    return gym.make_vec("DriftFrozenLake-v0", vectorization_mode=form, vector_kwargs=kwargs, **arguments)


@settings(max_examples=60)
@given(
    form=st.sampled_from([None, None, "sync"]),
    mode=st.sampled_from(MODES),
    clock=st.sampled_from(CLOCKS),
    drifts=st.sampled_from([(SLIPS, MAPS, WALK), (SLIPS, RAMP, WALK), (SLIPS, RAMP), (WALK,), ()]),
    notify=st.sampled_from(["none", "change", "full"]),
    before=st.integers(0, 70),
    begin=st.sampled_from(STARTS),
)
def test_lakes_go_on(
    form: str | None, mode: str, clock: str, drifts: Any, notify: str, before: int, begin: Any
) -> None:
    check_goes_on(lambda: make_lakes(form, mode, plan(clock, *drifts), notify=notify), before, begin=begin)


@pytest.mark.integration
@pytest.mark.parametrize("before", [0, 9, 23])
@pytest.mark.parametrize("mode", MODES)
def test_lakes_in_processes_go_on(mode: str, before: int) -> None:
    check_goes_on(lambda: make_lakes("async", mode, plan("step", SLIPS, MAPS, WALK)), before)


@pytest.mark.integration
def test_texts_in_processes_go_on() -> None:
    def make() -> Any:
        kwargs = {"shared_memory": False}
        return make_lakes("async", "NextStep", plan("step", SLIPS, MAPS), text=True, vector_kwargs=kwargs)

    check_goes_on(make, 9)


@settings(max_examples=25)
@given(
    env_id=st.sampled_from(["DriftMountainCar-v0", "DriftMountainCarContinuous-v0"]),
    mode=st.sampled_from(MODES),
    drifts=st.sampled_from([(), ({"at": 5, "set": {"gravity": 0.002}}, {"rate": 0.05, "walk": {"transient": 0.1}})]),
    before=st.integers(0, 40),
    shares=st.booleans(),
)
def test_cars_go_on(env_id: str, mode: str, drifts: Any, before: int, shares: bool) -> None:
    def make() -> Any:
        schedule = plan("step", *drifts)
        return gym.make_vec(
            env_id, num_envs=3, schedule=schedule, autoreset_mode=mode, max_episode_steps=12, share_timeline=shares
        )

    check_goes_on(make, before)


def test_many_continuous_cars_go_on() -> None:
    check_goes_on(lambda: gym.make_vec("DriftMountainCarContinuous-v0", num_envs=1600, schedule=None), 3, after=9)


@pytest.mark.parametrize("form", [None, "sync"])
def test_stored_returns_go_on(form: str | None) -> None:
    first, second = (VectorPhaseReturns(make_lakes(form, "SameStep", plan("step", SLIPS, MAPS))) for _ in range(2))
    first.reset(seed=0)
    for _ in range(13):
        first.step(np.array([1, 2, 3]))
    drift_envs.restore_progress(second, json.loads(json.dumps(drift_envs.save_progress(first))))
    for _ in range(20):
        first.step(np.array([1, 2, 0])), second.step(np.array([1, 2, 0]))
    assert first.episodes == second.episodes


@pytest.mark.parametrize("form", [None, "sync"])
@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"num_envs": 2}, "of the same number of copies: `env` has 2. Received 3"),
        ({"schedule": plan("step", MAPS)}, "of the same schedule"),
        ({"mode": "SameStep"}, "of the same autoreset mode: `env` has 'SameStep'. Received 'NextStep'"),
    ],
    ids=["copies", "schedule", "mode"],
)
def test_others_are_refused(form: str | None, change: dict[str, Any], rule: str) -> None:
    first = make_lakes(form, "NextStep", plan("step", SLIPS))
    first.reset(seed=0)
    other = make_lakes(form, **{"mode": "NextStep", "schedule": plan("step", SLIPS), **change})
    with pytest.raises(ArgumentError, match=f"`saved` should be {re.escape(rule)}"):
        drift_envs.restore_progress(other, drift_envs.save_progress(first))


def test_a_refused_one_loses_nothing() -> None:
    lakes = make_lakes(None, "NextStep", plan("step", SLIPS))
    with pytest.raises(StateError, match="before `reset`"):
        drift_envs.save_progress(lakes)
    lakes.reset(seed=0)
    lakes.step(np.array([1, 2, 3]))
    saved = drift_envs.save_progress(lakes)
    broken = json.loads(json.dumps(saved))
    broken["native"]["seeds"][1] = 7
    with pytest.raises(ArgumentError, match="it was changed"):
        drift_envs.restore_progress(lakes, broken)
    assert drift_envs.save_progress(lakes) == saved


@pytest.mark.integration
def test_processes_need_the_ended_episodes() -> None:
    lakes = make_lakes("async", "NextStep", plan("step", SLIPS))
    lakes.reset(seed=0)
    with pytest.raises(ArgumentError, match="`ended` should be"):
        drift_envs.save_progress(lakes)
    lakes.close()


@pytest.mark.parametrize("ended", ["ab", [True], [True] * 4, [[True] * 3], True, [0, 1, 2], [0.5, 0, 0], [None] * 3])
def test_ended_episodes_are_one_truth_value_for_each_copy(ended: Any) -> None:
    lakes = make_lakes("sync", "SameStep", plan("step", SLIPS))
    lakes.reset(seed=0)
    with pytest.raises(ArgumentError, match="`ended` should be 3 truth values, one for each copy"):
        drift_envs.save_progress(lakes, ended=ended)
    for right in ([0, 1, 0], np.array([0.0, 1.0, 0.0]), (False, True, False)):
        assert drift_envs.save_progress(lakes, ended=right)["ended"] == [False, True, False]
    single = gym.make("DriftFrozenLake-v0")
    single.reset(seed=0)
    with pytest.raises(ArgumentError, match="`ended` should be true or false"):
        drift_envs.save_progress(single, ended=[True])


@pytest.mark.parametrize("form", [None, "sync", pytest.param("async", marks=pytest.mark.integration)])
def test_what_was_stepped_before_is_restored_without_a_warning(form: str | None, capfd: Any) -> None:
    """Neither here nor from the processes, however often."""
    lakes = make_lakes(form, "SameStep", plan("step", {"at": 500, "set": {"slip": 0.4}}))
    observations, _ = lakes.reset(seed=0)
    for _ in range(30):
        observations = lakes.step(np.array([1, 2, 3]))[0]
    saved = drift_envs.save_progress(lakes, observations)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            lakes.step(np.array([2, 2, 2]))
            drift_envs.restore_progress(lakes, saved)
    assert "Warning" not in capfd.readouterr().err
    assert drift_envs.save_progress(lakes, observations) == saved
    lakes.close()


FORMS = [None, "sync", pytest.param("async", marks=pytest.mark.integration)]


def ticks_by_episode(envs: Any, steps: int, act: Callable[[int], None]) -> list[list[int]]:
    """The tick of each episode of each copy, with episodes of two steps and a clock of episodes."""
    seen: list[list[int]] = [[] for _ in range(envs.num_envs)]
    for step in range(steps):
        act(step)
        envs.step(np.zeros(envs.num_envs, int))
        for own, state in zip(seen, envs.get_attr("drift_state"), strict=True):
            if state.step == 2:
                own.append(state.tick)
    return seen


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_time_is_moved_from_the_next_episode_on(form: str | None, mode: str) -> None:
    lakes = make_lakes(form, mode, plan("episode", SLIPS, MAPS), max_episode_steps=3)
    lakes.reset(seed=0)

    def act(step: int) -> None:
        if step == 1:
            drift_envs.move_time(lakes, phase="drift-1", hold=True, copies=1)
            drift_envs.move_time(lakes, tick=20, copies=[2])
        if step == 12:
            drift_envs.move_time(lakes, copies=1)

    seen = ticks_by_episode(lakes, 22, act)
    lakes.close()
    assert seen[0][:5] == [0, 1, 2, 3, 4]
    assert seen[1][:4] == [0, 5, 5, 5]
    assert seen[1][-2:] in ([5, 6], [6, 7], [7, 8])
    assert seen[2][:4] == [0, 20, 21, 22]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("clock", ["step", "episode_step"])
def test_held_time_lasts_over_autoresets(form: str | None, clock: str) -> None:
    lakes = make_lakes(form, "SameStep", plan(clock, SLIPS, MAPS), max_episode_steps=3)
    lakes.reset(seed=0)
    drift_envs.move_time(lakes, tick=8, hold=True)
    ticks = []
    for step in range(14):
        if step == 9:
            drift_envs.move_time(lakes)
        lakes.step(np.zeros(3, int))
        ticks.append(lakes.get_attr("drift_state")[0].tick)
    lakes.close()
    # the episode that begins in a step shows its first tick in it, and its first transition has the same one
    after = [8, 8, 9] if clock == "step" else [0, 0, 1]
    assert ticks == [0, 1, *[8] * 9, *after]


@pytest.mark.parametrize("form", [None, "sync"])
def test_a_seed_rewinds_and_then_time_is_moved(form: str | None) -> None:
    lakes = make_lakes(form, "SameStep", plan("episode", SLIPS, MAPS))
    lakes.reset(seed=0)
    drift_envs.move_time(lakes, tick=6, hold=True)
    for seed in (None, 5, None):
        lakes.reset(seed=seed)
        assert [state.tick for state in lakes.get_attr("drift_state")] == [6, 6, 6]
    lakes.reset(options={"drift_tick": 2})
    assert [state.tick for state in lakes.get_attr("drift_state")] == [2, 2, 2]
    lakes.reset()
    assert [state.tick for state in lakes.get_attr("drift_state")] == [3, 3, 3]


@pytest.mark.parametrize("form", FORMS)
def test_wrong_moves_are_refused(form: str | None) -> None:
    lakes = make_lakes(form, "SameStep", plan("episode", SLIPS))
    lakes.reset(seed=0)
    for arguments, message in (
        ({"phase": "hard"}, "hard"),
        ({"tick": -1}, "`tick` should be a whole number"),
        ({"tick": 1, "phase": "source"}, "Received both"),
        ({"hold": "yes"}, "`hold` should be true or false"),
        *(({"copies": copies}, "`copies` should be a whole number") for copies in (3, 1.5, "a", [0, -1], True)),
    ):
        with pytest.raises(ArgumentError, match=message):
            drift_envs.move_time(lakes, **arguments)
    lakes.step(np.zeros(3, int))
    lakes.close()


@pytest.mark.parametrize("form", FORMS)
def test_time_can_be_moved_before_the_first_reset(form: str | None) -> None:
    lakes = make_lakes(form, "SameStep", plan("episode", SLIPS))
    drift_envs.move_time(lakes, phase="drift-1", hold=True, copies=[0, 2])
    lakes.reset(seed=0)
    ticks = [state.tick for state in lakes.get_attr("drift_state")]
    lakes.close()
    assert ticks == [5, 0, 5]


def test_options_of_each_copy() -> None:
    lakes = make_lakes(None, "SameStep", plan("episode", SLIPS, MAPS))
    lakes.reset(seed=0)
    lakes.reset(options=[{"drift_tick": 4}, None, {"drift_phase": "drift-1", "drift_clock": "hold"}])
    assert [state.tick for state in lakes.get_attr("drift_state")] == [4, 1, 5]
    lakes.reset()
    assert [state.tick for state in lakes.get_attr("drift_state")] == [5, 2, 5]
    lakes.reset(seed=3, options=[{"drift_clock": "continue"}, {}, {}])
    assert [state.tick for state in lakes.get_attr("drift_state")] == [6, 0, 0]
    for options, message in (
        ([{}, {}], "one dictionary for each of 3"),
        ([{}, {}, 3], "or a list of such"),
        ([{}, {}, {"reset_mask": np.ones(3, bool)}], "no `reset_mask`"),
        ([{}, {"drift_tick": -1}, {}], "`drift_tick`"),
    ):
        with pytest.raises(ArgumentError, match=message):
            lakes.reset(options=options)
    cars: Any = gym.make_vec("DriftMountainCar-v0", num_envs=2)
    observations, _ = cars.reset(seed=0, options=[{"low": 0.1, "high": 0.1}, {"low": -0.9, "high": -0.9}])
    assert observations[:, 0].tolist() == pytest.approx([0.1, -0.9])


@pytest.mark.parametrize("clock", CLOCKS)
def test_moved_time_is_part_of_progress(clock: str) -> None:
    for form in (None, "sync"):
        first, second = (make_lakes(form, "SameStep", plan(clock, SLIPS, MAPS)) for _ in range(2))
        first.reset(seed=0)
        drift_envs.move_time(first, tick=6, hold=True, copies=0)
        drift_envs.move_time(first, phase="drift-1", copies=2)
        drift_envs.restore_progress(second, drift_envs.save_progress(first))
        for _ in range(30):
            first.step(np.zeros(3, int)), second.step(np.zeros(3, int))
            assert first.get_attr("drift_state") == second.get_attr("drift_state")
