"""Single environments go on where they were: played alike, they are equal step by step, also after JSON."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import deque
from copy import deepcopy
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import FrameStackObservation, NormalizeObservation, RecordEpisodeStatistics
from hypothesis import given, settings
from hypothesis import strategies as st

import drift_envs
from drift_envs.errors import ArgumentError, DriftWarning, MissingDependencyError, StateError
from drift_envs.knobs import FrozenMapping
from drift_envs.registration import IDS
from drift_envs.wrappers import DriftWrapper, PhaseReturns, TextObservation
from drift_envs.wrappers.plain_data import NotPlainError, digest, from_plain, to_plain
from tests.drift_envs.progress import check_goes_on, is_same

CLOCKS = ("episode", "step", "episode_step")
EFFECTS = {"action_delay": 3, "observation_noise": 0.1, "reward_scale": 2.0}


def lake_plan(clock: str) -> dict[str, Any]:
    return {
        "version": 1,
        "name": "plan",
        "clock": clock,
        "drifts": [
            {"at": 5, "set": {"slip": 0.4}},
            {"every": 7, "for": 3, "set": {"map": ["SFFF", "FHFF", "FFFG"]}},
            {"rate": 0.1, "walk": {"transient": 0.1}},
            {"at": 20, "kind": "incremental", "over": 30, "add": {"slip": 0.2}},
        ],
    }


def make_lake(clock: str = "step", **arguments: Any) -> gym.Env[Any, Any]:
    return gym.make("DriftFrozenLake-v0", schedule=lake_plan(clock), max_episode_steps=20, **arguments)


@settings(max_examples=60)
@given(
    clock=st.sampled_from(CLOCKS),
    notify=st.sampled_from(["none", "change", "full"]),
    text=st.booleans(),
    before=st.integers(0, 120),
    begin=st.sampled_from([None, {"drift_clock": "hold"}, {"drift_tick": 6}, {"drift_tick": 9, "drift_clock": "hold"}]),
)
def test_a_lake_goes_on(clock: str, notify: str, text: bool, before: int, begin: dict[str, Any] | None) -> None:
    check_goes_on(lambda: make_lake(clock, notify=notify, text=text), before, begin=begin)


@pytest.mark.parametrize("text", [False, True], ids=["plain", "text"])
@pytest.mark.parametrize("env_id", IDS)
def test_every_id_goes_on(env_id: str, text: bool) -> None:
    try:
        env = gym.make(env_id, text=text)
    except MissingDependencyError:
        pytest.skip("its extra is not installed")
    env.reset(seed=0)
    reason = drift_envs.save_progress(env)["copies"][0]["drift"]["reason"]
    env.close()
    if IDS[env_id].extra is not None and reason:
        pytest.skip(reason)  # an environment of a package, which begins its next episode
    for before in (0, 1, 17):
        check_goes_on(lambda: gym.make(env_id, text=text), before)


@pytest.mark.parametrize("before", [0, 2, 33])
@pytest.mark.parametrize("env_id", ["DriftMountainCar-v0", "DriftCartPole-v0", "CartPole-v1", "Pendulum-v1"])
def test_effects_go_on(env_id: str, before: int) -> None:
    plan = {"version": 1, "name": "effects", "clock": "step", "drifts": [{"at": 3, "set": EFFECTS}]}

    def make() -> gym.Env[Any, Any]:
        if env_id.startswith("Drift"):
            return gym.make(env_id, schedule=plan, max_episode_steps=25)
        return DriftWrapper(gym.make(env_id), plan)

    check_goes_on(make, before)


@pytest.mark.parametrize("before", [0, 5, 31])
def test_wrappers_of_others_go_on(before: int) -> None:
    def make() -> gym.Env[Any, Any]:
        env = DriftWrapper(gym.make("MountainCar-v0", max_episode_steps=30), None)
        return FrameStackObservation(NormalizeObservation(RecordEpisodeStatistics(PhaseReturns(env))), 3)

    first, second = make(), make()
    observation, _ = first.reset(seed=1)
    for _ in range(before):
        observation, _, _, ended, _ = first.step(2)
        if ended:
            first.reset()
    restored = drift_envs.restore_progress(second, drift_envs.save_progress(first, observation))
    assert is_same(restored.observation, observation)
    for _ in range(40):
        one, other = first.step(0), second.step(0)
        assert is_same(one[:4], other[:4])
        if one[3]:
            assert {**one[4]["episode"], "t": 0} == {**other[4]["episode"], "t": 0}
            assert is_same(first.reset(), second.reset())
    assert first.get_wrapper_attr("episodes") == second.get_wrapper_attr("episodes")


def test_a_limit_of_the_new_environment_stays() -> None:
    first = gym.make("DriftMountainCar-v0", max_episode_steps=10)
    second = gym.make("DriftMountainCar-v0", max_episode_steps=20)
    first.reset(seed=0)
    for _ in range(9):
        first.step(2)
    drift_envs.restore_progress(second, drift_envs.save_progress(first))
    assert [second.step(2)[3] for _ in range(11)] == [False] * 10 + [True]


def test_a_knob_that_was_set_by_hand_goes_on() -> None:
    def make() -> gym.Env[Any, Any]:
        return gym.make("DriftMountainCar-v0", schedule="mountain_car/explicit")

    first, second = make(), make()
    first.reset(seed=0)
    first.unwrapped.goal_position = 0.4  # type: ignore[attr-defined]
    drift_envs.restore_progress(second, drift_envs.save_progress(first))
    assert second.get_wrapper_attr("drift_state").knobs["goal_position"] == 0.4


def test_the_spaces_go_on() -> None:
    first, second = gym.make("DriftFrozenLake-v0"), gym.make("DriftFrozenLake-v0")
    first.reset(seed=0)
    first.action_space.seed(5)
    first.action_space.sample()
    drift_envs.restore_progress(second, drift_envs.save_progress(first))
    assert [first.action_space.sample() for _ in range(9)] == [second.action_space.sample() for _ in range(9)]


def test_saving_changes_nothing() -> None:
    first, second = make_lake(), make_lake()
    first.reset(seed=2), second.reset(seed=2)
    for _ in range(15):
        drift_envs.save_progress(first)
        assert first.step(2) == second.step(2)


@pytest.mark.integration
def test_another_process_goes_on() -> None:
    first = make_lake()
    first.reset(seed=4)
    for _ in range(7):
        first.step(1)
    program = (
        "import json, sys, drift_envs\n"
        "from tests.drift_envs.wrappers.test_progress import make_lake\n"
        "env = make_lake()\n"
        "drift_envs.restore_progress(env, json.load(sys.stdin))\n"
        "print([env.step(2)[0] for _ in range(9)])"
    )
    saved = json.dumps(drift_envs.save_progress(first))
    done = subprocess.run([sys.executable, "-c", program], input=saved, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str([first.step(2)[0] for _ in range(9)])


class Odd(gym.Env[Any, Any]):
    """Holds what no data can: a function that counts."""

    observation_space = gym.spaces.Discrete(100)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.here = 0
        self.count: Any = lambda: self.here
        return self.here, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self.here += 1
        return self.count(), 0.0, False, False, {}


def test_others_begin_their_next_episode() -> None:
    plan = {"version": 1, "name": "scale", "clock": "step", "drifts": [{"at": 6, "set": {"reward_scale": 2.0}}]}
    first, second = DriftWrapper(Odd(), plan), DriftWrapper(Odd(), plan)
    first.reset(seed=0)
    for _ in range(7):
        observation = first.step(0)[0]
    saved = drift_envs.save_progress(first, observation)
    with pytest.warns(DriftWarning, match=re.escape("the next one begins: `Odd.count` should be plain data")):
        restored = drift_envs.restore_progress(second, saved)
    assert restored == (0, False, True)
    assert second.drift_state.episode == 1
    assert second.drift_state.phase == "drift-1"
    assert second.drift_state.tick == 7


class Shared(Odd):
    """Two names for one list."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        gym.Env.reset(self, seed=seed)
        self.cells = self.board = [0, 0]
        return 0, {}


def test_what_stands_in_two_places_is_not_torn_apart() -> None:
    env = DriftWrapper(Shared(), None)
    env.reset(seed=0)
    assert "stands in two" in drift_envs.save_progress(env)["copies"][0]["drift"]["reason"]


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda: make_lake("episode"), "of the same schedule"),
        (lambda: gym.make("DriftMountainCar-v0"), "of the same environment"),
        (lambda: gym.make_vec("DriftFrozenLake-v0", schedule=lake_plan("step")), "saved in the form of `env`"),
        (lambda: gym.make("DriftFrozenLake-v0", schedule=None), "of the same schedule"),
    ],
    ids=["schedule", "environment", "form", "none"],
)
def test_other_environments_are_refused(make: Any, rule: str) -> None:
    first = make_lake()
    first.reset(seed=0)
    with pytest.raises(ArgumentError, match=f"`saved` should be {rule}"):
        drift_envs.restore_progress(make(), drift_envs.save_progress(first))


def test_progress_needs_a_drift_and_a_reset() -> None:
    with pytest.raises(ArgumentError, match="`env` should have a `DriftWrapper` inside"):
        drift_envs.save_progress(gym.make("CartPole-v1"))
    with pytest.raises(ArgumentError, match="`env` should be a drifting environment"):
        drift_envs.save_progress(3)
    with pytest.raises(StateError, match="before `reset`"):
        drift_envs.save_progress(make_lake())
    with pytest.raises(ArgumentError, match="of the format"):
        drift_envs.restore_progress(make_lake(), {})


def paths(data: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """All places in plain data."""
    parts = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [here, *(path for name, one in parts for path in paths(one, (*here, name)))]


def test_damaged_data_is_refused_and_loses_nothing() -> None:
    env = PhaseReturns(make_lake())
    env.reset(seed=0)
    for _ in range(9):
        env.step(2)
    saved = json.loads(json.dumps(drift_envs.save_progress(env)))
    for path in paths(saved)[1:]:
        damaged = deepcopy(saved)
        part = damaged
        for name in path[:-1]:
            part = part[name]
        part[path[-1]] = {"$object": "os:system"}
        with pytest.raises(ArgumentError, match="`saved` should be"):
            drift_envs.restore_progress(env, damaged)
    assert drift_envs.save_progress(env) == saved


@pytest.mark.parametrize(
    ("place", "wrong"),
    [("key", -1), ("clock", {}), ("move", [1]), ("visited", [["a", "b"]]), ("lost", 3), ("rewinds", "1")],
)
def test_what_another_program_wrote_is_refused_and_loses_nothing(place: str, wrong: Any) -> None:
    env = make_lake()
    env.reset(seed=0)
    env.step(2)
    saved = drift_envs.save_progress(env)
    other = deepcopy(saved)
    other["copies"][0]["drift"]["layers"]["DriftWrapper#0"][place] = wrong
    other["digest"] = digest({name: value for name, value in other.items() if name != "digest"})
    with pytest.raises(ArgumentError):
        drift_envs.restore_progress(env, other)
    assert drift_envs.save_progress(env) == saved


@pytest.mark.parametrize(
    "wrong",
    [
        {"$array": ["<f8", [2], "!"]},
        {"$array": ["O", [0], ""]},
        {"$object": "os:system", "fields": []},
        {"$generator": {}},
        {"$object": "drift_envs.vector.progress:_Form", "fields": {}},
        {"$enum": "drift_envs.knobs:Knob", "name": "a"},
        {"$no": 1},
    ],
)
def test_no_data_names_what_is_run(wrong: Any) -> None:
    with pytest.raises(ArgumentError, match="`value` should be data as it was written"):
        from_plain(wrong)


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False)
        | st.text(max_size=5)
        | st.binary(max_size=4),
        lambda part: (
            st.lists(part, max_size=3)
            | st.lists(part, max_size=3).map(tuple)
            | st.dictionaries(st.text(max_size=3), part, max_size=3)
            | st.dictionaries(st.integers(), part, max_size=3)
            | st.lists(part, max_size=3).map(deque)
            | st.dictionaries(st.text(max_size=3), st.integers(), max_size=2).map(FrozenMapping)
        ),
        max_leaves=8,
    )
)
def test_plain_data_is_json_and_comes_back(value: Any) -> None:
    try:
        plain = to_plain(value)
    except NotPlainError:
        return  # an example that holds one list twice
    found = from_plain(json.loads(json.dumps(plain, allow_nan=False)))
    assert found == value
    assert type(found) is type(value)


def test_generators_and_arrays_come_back() -> None:
    rng = np.random.Generator(np.random.MT19937(4))
    rng.random(3)
    again = from_plain(json.loads(json.dumps(to_plain(rng))))
    assert rng.random(5).tolist() == again.random(5).tolist()
    for array in (np.zeros((2, 0)), np.array(3.5), np.array([np.nan, -0.0]), np.array(["ab", "c"]), np.eye(3)[::2]):
        found = from_plain(to_plain(array))
        assert found.dtype == array.dtype
        np.testing.assert_array_equal(found, array)


def test_a_text_form_around_another_environment_goes_on() -> None:
    plan = {"version": 1, "name": "heavy", "clock": "step", "drifts": [{"at": 6, "set": {"masspole": 0.5}}]}
    check_goes_on(lambda: TextObservation(DriftWrapper(gym.make("CartPole-v1"), plan)), 9)
