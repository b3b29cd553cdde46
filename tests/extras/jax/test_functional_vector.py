"""`make_vec(..., backend="jax")` has the contract of the native vector environments."""

import importlib.util
import re
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from drift_envs.errors import ArgumentError, StateError

jax = pytest.importorskip("jax", reason="needs the extra `jax`")
functional_vector = pytest.importorskip("drift_envs.functional.vector")

HOME = Path(__file__).resolve().parents[2] / "drift_envs" / "vector"
LAKE, CAR, CONTINUOUS = "DriftFrozenLake-v0", "DriftMountainCar-v0", "DriftMountainCarContinuous-v0"
IDS = (LAKE, CAR, CONTINUOUS)
MAPS = (["SFFF", "FFFH", "FHFF", "FFFG"], ["SFFF", "HFFF", "FFFH", "HFFG"])
DRIFTS = (
    {"name": "e", "every": 7, "for": 3, "set": {"map": MAPS[1]}},
    {"name": "r", "every": 11, "for": 4, "set": {"goal_rewards": {"3,3": 0.1}}},
)


def load_contract(name):
    """A module of the native environments' tests, whose random drifts are replaced by regular ones."""
    spec = importlib.util.spec_from_file_location(f"contract_{name}", HOME / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


resets, lakes = load_contract("test_vector_resets"), load_contract("test_vector_lake")
resets.DRIFTS = DRIFTS
test_the_last_state_is_readable_until_the_reset = resets.test_the_last_state_is_readable_until_the_reset
test_a_truncated_lake_restarts_on_a_changed_map = resets.test_a_truncated_lake_restarts_on_a_changed_map
test_disabled_autoreset_needs_a_mask = lakes.test_disabled_autoreset_needs_a_mask


@pytest.fixture(autouse=True)
def _double():
    """Precision as users have it: the environment switches to double by itself."""


@pytest.fixture
def make_pair():
    def make(env_id, number, mode, **arguments):
        sync = gym.make_vec(
            env_id, num_envs=number, vectorization_mode="sync", vector_kwargs={"autoreset_mode": mode}, **arguments
        )
        return sync, make_vec(env_id, number, autoreset_mode=mode, **arguments)

    return make


@pytest.fixture
def make_schedule():
    def write(clock, *drifts, **base):
        return {"version": 1, "name": "written", "clock": clock, "base": base, "drifts": list(drifts)}

    return write


def make_vec(env_id, number, **arguments):
    return gym.make_vec(env_id, num_envs=number, vectorization_mode="vector_entry_point", backend="jax", **arguments)


@pytest.mark.parametrize(
    ("mode", "clock", "notify"),
    [
        ("NextStep", "episode", "none"),
        ("SameStep", "episode", "change"),
        ("SameStep", "step", "full"),
        ("Disabled", "step", "change"),
        ("NextStep", "episode_step", "full"),
    ],
)
def test_three_modes_with_their_infos(make_pair, make_schedule, mode, clock, notify):
    resets.test_three_modes_with_their_infos(make_pair, make_schedule, mode, clock, notify)


@pytest.mark.parametrize(
    ("clock", "options"),
    [("episode", {"drift_tick": 31}), ("step", {"drift_clock": "hold"}), ("episode_step", {"drift_phase": "e"})],
)
def test_clock_options_equal_those_of_single_environments(make_pair, make_schedule, clock, options):
    lakes.test_clock_options_equal_those_of_single_environments(make_pair, make_schedule, clock, options)


@pytest.mark.parametrize("schedule", ["frozen_lake/implicit", "frozen_lake/explicit:family"])
def test_shipped_schedules_step_by_step(make_pair, schedule):
    lakes.assert_equal_runs(*make_pair(LAKE, 4, "NextStep", schedule=schedule), steps=500, number=4)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("env_id", [CAR, CONTINUOUS])
def test_cars_equal_single_cars(make_pair, env_id, mode):
    number, engine = 3, "force" if env_id == CAR else "power"
    drifts = [
        {"name": "r", "at": 3, "every": 300, "kind": "incremental", "over": 100, "for": 280, "set": {engine: 0.002}},
        {"name": "w", "at": 40, "set": {"gravity": 0.002}},
    ]
    schedule = {"version": 1, "name": "cars", "clock": "step", "drifts": drifts}
    sync, ours = make_pair(env_id, number, mode, schedule=schedule, max_episode_steps=90)
    sync.reset(seed=3)
    ours.reset(seed=3)
    kind = np.float64 if env_id == CAR else np.float32

    def copy_states(mask):
        for index in np.flatnonzero(mask):
            sync.envs[index].unwrapped.state = np.array(ours.get_attr("state")[index], kind)

    copy_states(np.ones(number))
    ended_before, rng = np.zeros(number, bool), np.random.default_rng(0)
    for _ in range(200):
        speed = np.array(ours.get_attr("state"))[:, 1]
        swing = 2 * (speed >= 0)
        actions = swing if env_id == CAR else ((swing - 1) * rng.uniform(0.5, 1.3, number))[:, None].astype(np.float32)
        expected, found = sync.step(actions), ours.step(actions)
        ended = expected[2] | expected[3]
        started = ended_before if mode == "NextStep" else ended
        np.testing.assert_allclose(expected[0][~started], found[0][~started], atol=1e-6)
        np.testing.assert_allclose(expected[1], found[1], atol=1e-6)
        for old, new in zip(expected[:4], found[:4], strict=True):
            assert old.dtype == new.dtype
        assert np.array_equal(expected[2], found[2])
        assert np.array_equal(expected[3], found[3])
        copy_states(np.ones(number))
        ended_before = ended


@pytest.mark.parametrize("env_id", IDS)
def test_spaces_limits_and_results_are_those_of_the_numpy_form(env_id):
    ours, numpy_form = make_vec(env_id, 5), gym.make_vec(env_id, num_envs=5, vectorization_mode="vector_entry_point")
    for name in ("single_observation_space", "single_action_space", "observation_space", "action_space"):
        assert getattr(ours, name) == getattr(numpy_form, name)
    assert ours.unwrapped.max_episode_steps == numpy_form.unwrapped.max_episode_steps
    assert ours.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    for env in (ours, numpy_form):
        env.action_space.seed(0)
        assert env.observation_space.contains(env.reset(seed=1)[0])
        result = env.step(env.action_space.sample())
        assert env.observation_space.contains(result[0])
        assert [part.dtype.name for part in result[1:4]] == ["float64", "bool", "bool"]
        assert [part.shape for part in result[1:4]] == [(5,)] * 3
        env.close()


@pytest.mark.parametrize("env_id", IDS)
def test_a_seed_gives_the_same_run_and_another_seed_another(env_id):
    random = {
        "version": 1,
        "name": "r",
        "clock": "step",
        "drifts": [{"rate": 0.1, "set": {"transient": 0.5}, "for": 3}],
    }
    envs = make_vec(env_id, 6, schedule=random)
    envs.action_space.seed(0)
    actions = [envs.action_space.sample() for _ in range(60)]

    def run(seed):
        envs.reset(seed=seed)
        return [(*(part.tolist() for part in envs.step(row)[:4]), envs.get_attr("transient")) for row in actions]

    first = run(4)
    assert run(4) == first
    assert run(5) != first
    assert len({each[-1] for each in first}) > 2  # each sub-environment has its own occurrences
    assert [state.knobs["transient"] for state in envs.get_attr("drift_state")] == list(envs.get_attr("transient"))
    with pytest.raises(StateError, match="has random parts"):
        envs.get_attr("drift_log")


def test_slips_have_their_law():
    number = 20_000
    schedule = {"version": 1, "name": "n", "base": {"map": MAPS[0], "slip": 0.4}, "drifts": []}
    envs = make_vec(LAKE, number, schedule=schedule)
    envs.reset(seed=0)
    tiles = np.bincount(envs.step(np.full(number, 2))[0], minlength=16) / number
    assert tiles[[0, 1, 4]] == pytest.approx([0.2, 0.6, 0.2], abs=0.015)


def test_share_timeline_gives_all_the_values_of_the_first():
    schedule = "frozen_lake/explicit:family"
    own, shared = make_vec(LAKE, 3, schedule=schedule), make_vec(LAKE, 3, schedule=schedule, share_timeline=True)
    own.reset(seed=4)
    shared.reset(seed=4)
    maps = []
    for index in range(3):
        single = gym.make(LAKE, schedule=schedule)
        single.reset(seed=4 + index)
        maps.append(single.get_wrapper_attr("drift_state").knobs["map"])
    assert own.get_attr("map") == tuple(maps)
    assert shared.get_attr("map") == (maps[0],) * 3


def test_start_positions_within_bounds():
    cars = make_vec(CAR, 500)
    assert np.ptp(cars.reset(seed=0)[0][:, 0]) > 0.19
    starts = cars.reset(options={"low": -0.3, "high": -0.2})[0]
    assert -0.3 <= starts[:, 0].min() < starts[:, 0].max() <= -0.2
    assert not starts[:, 1].any()


def test_frames_equal_those_of_a_single_environment():
    envs, single = make_vec(LAKE, 2, render_mode="rgb_array"), gym.make(LAKE, render_mode="rgb_array")
    for env in (envs, single):
        env.reset(seed=0)
    envs.step(np.array([1, 1]))
    single.step(1)
    np.testing.assert_array_equal(envs.render()[1], single.render())


def test_what_has_no_compiled_form_is_refused():
    rules = {
        "text": ({"text": True}, "without texts, overlays, windows and knobs of the wrapper"),
        "reward_schedule": ({"schedule": None, "reward_schedule": (2, 0, 0)}, "should have their defaults"),
        "autoreset_mode": ({"autoreset_mode": "Never"}, "`autoreset_mode` should be one of"),
        "backend": ({"backend": "torch"}, "`backend` should be one of numpy, jax. Received 'torch'"),
    }
    for arguments, rule in rules.values():
        with pytest.raises(ArgumentError, match=re.escape(rule)):
            gym.make_vec(LAKE, num_envs=2, vectorization_mode="vector_entry_point", **{"backend": "jax", **arguments})
    envs = make_vec(LAKE, 2)
    with pytest.raises(StateError, match="before `reset`"):
        envs.step(np.zeros(2, int))
    envs.reset(seed=0)
    with pytest.raises(ArgumentError, match=re.escape("`actions[1]` should be one of 0, 1, 2, 3. Received 4")):
        envs.step(np.array([0, 4]))
    with pytest.raises(ArgumentError, match="whose knobs are compiled"):
        envs.set_attr("slip", 0.5)
    assert not jax.config.jax_enable_x64


def test_a_batch_is_compiled_once():
    envs = make_vec(LAKE, 4, max_episode_steps=5)
    envs.reset(seed=0)
    for _ in range(40):
        envs.step(np.array([0, 1, 2, 3]))
    envs.reset(seed=1)
    envs.step(np.zeros(4, int))
    assert envs.unwrapped._batch.step._cache_size() == 2  # with and without reset steps
