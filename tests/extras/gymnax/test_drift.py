"""Environments of gymnax that drift, against gymnax's own."""

import dataclasses
import re

import gymnasium as gym
import numpy as np
import pytest

import drift_envs  # noqa: F401  registers the ids
from drift_envs.errors import ArgumentError, ScheduleError
from tests.documents import read_code, run_code

gymnax = pytest.importorskip("gymnax", reason="needs the package `gymnax`")
jax = pytest.importorskip("jax", reason="needs the extra `jax`")
functional = pytest.importorskip("drift_envs.functional")

STEPS, ENVIRONMENTS = 300, 16
ATTRIBUTES = {
    "CartPole-v1": ("force_mag", -10.0),
    "Acrobot-v1": ("link_mass_2", 3.0),
    "MountainCar-v0": ("force", -0.001),
}


def play(env, params, steps=STEPS, batched=False, carry_out=lambda action: action):
    """All that many environments return in a compiled loop, with random actions."""

    def lifetime(key, params):
        first, rest = jax.random.split(key)
        observation, state = env.reset(first, params)

        def move(state, key):
            action = jax.random.randint(jax.random.fold_in(key, 1), (), 0, env.num_actions)
            observation, state, *results = env.step(key, state, carry_out(action), params)
            return state, (observation, *results)

        return observation, jax.lax.scan(move, state, jax.random.split(rest, steps))[1]

    keys = jax.random.split(jax.random.PRNGKey(0), ENVIRONMENTS)
    return jax.tree.map(np.asarray, jax.jit(jax.vmap(lifetime, in_axes=(0, 0 if batched else None)))(keys, params))


def leaves_equal(one, other):
    return all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True))


def make_schedule(name, at, value, clock="step"):
    return {"version": 1, "clock": clock, "drifts": [{"at": at, "set": {name: value}}]}


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_without_drift_the_trajectories_are_gymnaxs(name):
    env, params = gymnax.make(name)
    drifting = functional.drift(env)
    assert leaves_equal(play(env, params), play(drifting, drifting.default_params))


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_before_the_change_trajectories_equal_those_of_gymnax_and_differ_after_it(name):
    env, params = gymnax.make(name)
    attribute, value = ATTRIBUTES[name]
    drifting = functional.drift(env, make_schedule(attribute, 50, value), [attribute])
    still, drifted = play(env, params), play(drifting, drifting.default_params)
    # other code is fused, so that the last places may differ
    np.testing.assert_allclose(still[1][0][:, :50], drifted[1][0][:, :50], atol=1e-4)
    assert np.abs(still[1][0][:, 50] - drifted[1][0][:, 50]).max() > 1e-3


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_a_value_from_the_start_equals_gymnax_with_that_parameter(name):
    env, params = gymnax.make(name)
    attribute, value = ATTRIBUTES[name]
    drifting = functional.drift(env, make_schedule(attribute, 0, value), [attribute])
    changed = dataclasses.replace(params, **{attribute: value})
    for expected, found in zip(play(env, changed, 60)[1], play(drifting, drifting.default_params, 60)[1], strict=True):
        for one, other in zip(jax.tree.leaves(expected), jax.tree.leaves(found), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-4)


def test_masses_that_are_derived_follow():
    env, params = gymnax.make("CartPole-v1")
    drifting = functional.drift(env, make_schedule("masspole", 0, 0.5))
    changed = dataclasses.replace(params, masspole=0.5, total_mass=1.5, polemass_length=0.25)
    assert leaves_equal(play(env, changed), play(drifting, drifting.default_params))


def test_the_section_knobs_declares_names_bounds_and_derived_fields():
    env, params = gymnax.make("MountainCar-v0")
    schedule = {
        "version": 1,
        "clock": "step",
        "knobs": {
            "engine": {"attribute": "force", "bounds": [-0.01, 0.01]},
            "derived": {"goal_velocity": {"sum": ["force", "force"]}},
        },
        "drifts": [{"at": 0, "set": {"engine": 0.002}}],
    }
    drifting = functional.drift(env, schedule, [])
    assert list(drifting.knobs) == ["engine", "action_permutation"]
    changed = dataclasses.replace(params, force=0.002, goal_velocity=0.004)
    assert leaves_equal(play(env, changed), play(drifting, drifting.default_params))
    schedule["drifts"][0]["set"]["engine"] = 0.02
    with pytest.raises(ScheduleError, match=re.escape("drifts[0].set.engine")):
        functional.drift(env, schedule, [])


def test_thousands_of_schedules_run_in_one_batch_without_compiling_again():
    env, _ = gymnax.make("MountainCar-v0")
    drifting, traces = functional.drift(env, None, {"force": (-0.01, 0.01)}), []

    def lifetime(key, params):
        traces.append(None)
        _, state = drifting.reset(key, params)

        def move(state, key):
            _, state, *_ = drifting.step(key, state, 2, params)
            return state, drifting.knob_values(state, params)["force"]

        return jax.lax.scan(move, state, jax.random.split(key, 10))[1]

    run = jax.jit(jax.vmap(lifetime))
    keys = jax.random.split(jax.random.PRNGKey(0), 200)
    for value in (0.002, -0.003):
        schedules = [make_schedule("force", 1 + index % 9, value) for index in range(200)]
        forces = np.asarray(run(keys, drifting.params_of(schedules)))
        expected = np.array([[0.001] * (index % 9) + [value] * (10 - index % 9) for index in range(200)])
        np.testing.assert_allclose(forces, expected, rtol=1e-6)
    assert len(traces) == 1


def test_a_clock_of_episodes_moves_with_autoreset_and_whole_numbers_stay_whole():
    env, _ = gymnax.make("MountainCar-v0")
    schedule = {
        "version": 1,
        "clock": "episode",
        "base": {"max_steps_in_episode": 7},
        "drifts": [{"at": 2, "set": {"max_steps_in_episode": 3}}],
    }
    drifting = functional.drift(env, schedule, ["max_steps_in_episode"])
    truncated = play(drifting, drifting.default_params, 23)[1][3]
    assert np.flatnonzero(truncated[0]).tolist() == [6, 13, 16, 19, 22]


def test_wrappers_of_gymnax_go_around():
    from gymnax.wrappers.purerl import LogWrapper

    env, _ = gymnax.make("CartPole-v1")
    drifting = functional.drift(env, make_schedule("gravity", 5, 20.0))
    logged = LogWrapper(drifting)
    key = jax.random.PRNGKey(0)
    _, state = logged.reset(key, drifting.default_params)
    for step in range(10):
        _, state, _, _, _, info = logged.step(jax.random.fold_in(key, step), state, 1, drifting.default_params)
    assert int(info["returned_episode_lengths"]) > 5
    with pytest.raises(ArgumentError, match=re.escape("without a wrapper")):
        functional.drift(LogWrapper(env))


# MNIST-bsuite downloads its images
IDS = [name for name in gymnax.registered_envs if name != "MNISTBandit-bsuite"]


@pytest.mark.parametrize("name", IDS)
def test_the_lines_of_purejaxrl_run_on_every_id(name):
    from gymnax.wrappers.purerl import FlattenObservationWrapper, LogWrapper

    basic, basic_params = gymnax.make(name)
    env = functional.drift(basic, make_schedule("max_steps_in_episode", 3, 2))
    env_params = env.default_params
    if hasattr(basic.observation_space(basic_params), "low"):  # gymnax flattens boxes alone
        basic, env = FlattenObservationWrapper(basic), FlattenObservationWrapper(env)
    env = LogWrapper(env)
    shape = basic.observation_space(basic_params).shape
    assert env.observation_space(env_params).shape == shape
    space, expected = env.action_space(env_params), basic.action_space(basic_params)
    assert (space.shape, getattr(space, "n", None)) == (expected.shape, getattr(expected, "n", None))
    assert env.name == basic.name
    assert env_params.max_steps_in_episode == basic_params.max_steps_in_episode

    def lifetime(key):
        keys = jax.random.split(key, 4)
        _, states = jax.vmap(env.reset, in_axes=(0, None))(keys, env_params)

        def move(states, key):
            keys = jax.random.split(key, 4)
            actions = jax.vmap(space.sample)(keys)
            found = jax.vmap(env.step, in_axes=(0, 0, 0, None))(keys, states, actions, env_params)
            return found[1], (found[0], found[3] | found[4])

        return jax.lax.scan(move, states, jax.random.split(key, 9))[1]

    observations, done = jax.jit(lifetime)(jax.random.key(0))
    assert observations.shape == (9, 4, *shape)
    assert np.asarray(done)[3:].any()


def test_parameters_of_gymnax_can_be_replaced():
    env, _ = gymnax.make("MountainCar-v0")
    drifting = functional.drift(env, make_schedule("force", 0, 0.002))
    params = drifting.default_params.replace(max_steps_in_episode=7)
    truncated = play(drifting, params, 15)[1][3]
    assert np.flatnonzero(truncated[0]).tolist() == [6, 13]


SHIPPED = [
    ("CartPole-v1", "DriftCartPole-v0", "cart_pole/explicit:family"),
    ("CartPole-v1", "DriftCartPole-v0", "cart_pole/implicit:family"),
    ("CartPole-v1", "DriftCartPole-v0", "cart_pole/implicit:gradual"),
    ("Acrobot-v1", "DriftAcrobot-v0", "acrobot/explicit"),
    ("Acrobot-v1", "DriftAcrobot-v0", "acrobot/implicit"),
    ("Acrobot-v1", "DriftAcrobot-v0", "acrobot/harmless"),
]


@pytest.mark.parametrize(("name", "env_id", "schedule"), SHIPPED, ids=[each[2] for each in SHIPPED])
def test_shipped_schedules_have_the_values_of_gymnasiums_environment(name, env_id, schedule):
    drifting = functional.drift(gymnax.make(name)[0], schedule, ticks=100)
    params = drifting.params(schedule, seed=5, ticks=100)
    numbers, indices = map(np.asarray, functional.replay(params.drift, jax.random.key(0), 100))
    env = gym.make(env_id, schedule=schedule)
    env.reset(seed=5)
    driven = set(params.driven)
    assert driven
    for tick in range(100):
        values = env.get_wrapper_attr("drift_state").knobs
        for name in driven & set(params.drift.all_names):
            assert numbers[tick, params.drift.all_names.index(name)] == pytest.approx(values[name])
        if "action_permutation" in driven:
            index = indices[tick, params.drift.all_object_names.index("action_permutation")]
            expected = list(values["action_permutation"].values())
            assert np.asarray(params.values["action_permutation"][index]).tolist() == expected
        env.reset()


def test_a_permutation_of_actions_is_carried_out():
    env, params = gymnax.make("CartPole-v1")
    drifting = functional.drift(env, make_schedule("action_permutation", 0, [1, 0]))
    swapped = play(env, params, carry_out=lambda action: 1 - action)
    assert leaves_equal(swapped, play(drifting, drifting.default_params))


@pytest.mark.parametrize(
    ("knob", "value", "attributes"),
    [("torque", -2, None), ("available_torque", [2, 0, -2], ["available_torque"])],
)
def test_arrays_are_set_or_multiplied(knob, value, attributes):
    env, params = gymnax.make("Acrobot-v1")
    drifting = functional.drift(env, make_schedule(knob, 0, value), attributes)
    changed = dataclasses.replace(params, available_torque=jax.numpy.array([2.0, 0.0, -2.0]))
    assert leaves_equal(play(env, changed), play(drifting, drifting.default_params))


def test_centres_of_mass_follow():
    env, params = gymnax.make("Acrobot-v1")
    drifting = functional.drift(env, make_schedule("link_length_1", 0, 2.0))
    changed = dataclasses.replace(params, link_length_1=2.0, link_com_pos_1=1.0)
    assert leaves_equal(play(env, changed), play(drifting, drifting.default_params))


@pytest.mark.parametrize("batched", [False, True])
def test_batches_equal_vmap(batched):
    env, _ = gymnax.make("CartPole-v1")
    drifting = functional.drift(env, make_schedule("gravity", 3, 20.0))
    schedules = [make_schedule("gravity", 1 + index, 20.0) for index in range(5)]
    params = drifting.params_of(schedules) if batched else drifting.default_params
    key = jax.random.key(0)
    observations, states = drifting.reset_batch(key, params, 5)
    actions = np.array([0, 1, 0, 1, 1])
    found = drifting.step_batch(key, states, actions, params)
    keys, axis = jax.random.split(key, 5), 0 if batched else None
    observations_, states_ = jax.vmap(drifting.reset, in_axes=(0, axis))(keys, params)
    expected = jax.vmap(drifting.step, in_axes=(0, 0, 0, axis))(keys, states_, actions, params)
    assert leaves_equal((observations, found), (observations_, expected))
    assert np.asarray(drifting.knob_values(found[1], params)["gravity"]).shape == (5,)


@pytest.mark.parametrize("attributes", [["mass"], {"mass": (0, 1)}])
def test_what_is_no_number_of_the_parameters_is_refused(attributes):
    env, _ = gymnax.make("Acrobot-v1")
    with pytest.raises(
        ArgumentError,
        match=re.escape(
            "`attributes` should be numbers among the parameters, of max_steps_in_episode, available_torque, dt,"
        ),
    ):
        functional.drift(env, None, attributes)


def test_a_schedule_with_another_knob_is_refused():
    env, _ = gymnax.make("CartPole-v1")
    with pytest.raises(ScheduleError, match="length"):
        functional.drift(env, make_schedule("length", 3, 1.0), ["gravity"])


def test_the_code_of_the_document(capsys):
    run_code(read_code("docs/functional.md")[1])
    assert "[0.5 " in capsys.readouterr().out
