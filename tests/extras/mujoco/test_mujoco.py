"""MuJoCo's environments with knobs."""

import copy
import os
from typing import ClassVar

os.environ.setdefault("MUJOCO_GL", "egl")

import gymnasium as gym
import numpy as np
import pytest

import drift_envs
from benchmarks.physics import mean_return, mujoco
from drift_envs import DriftWrapper
from drift_envs.attributes.path import AttributePath
from drift_envs.errors import DrivenKnobError
from drift_envs.wrappers.twin import snapshot
from tests.documents import read_code, run_code
from tests.drift_envs.envs.physics_contract import PhysicsContract

pytest.importorskip("mujoco", reason="needs the extra `mujoco`")
pytestmark = pytest.mark.filterwarnings("ignore:.*Overriding environment.*")
RUNNER = {
    "gravity": -5.0,
    "friction": 0.1,
    "mass": 2.0,
    "damping": 3.0,
    "gain": -1.0,
    "forward_reward": -1.0,
    "brightness": 0.5,
}


class MujocoContract(PhysicsContract):
    def test_pictures(self):
        try:
            super().test_pictures()
        except Exception as error:
            if "GL" in f"{type(error).__name__} {error}":
                pytest.skip(f"there is no OpenGL here: {error}")
            raise


class RunnerContract(MujocoContract):
    def test_the_camera_follows_the_runner(self):
        env = gym.make(self.env_id, schedule=None, render_mode="rgb_array")
        env.reset(seed=0)
        body = env.unwrapped
        body.set_state(np.concatenate([[30.0], body.data.qpos[1:]]), body.data.qvel)
        try:
            picture = env.render().astype(int)
        except Exception as error:
            if "GL" in f"{type(error).__name__} {error}":
                pytest.skip(f"there is no OpenGL here: {error}")
            raise
        brown = (picture[..., 0] > picture[..., 2] + 30).mean()  # the floor and the sky are grey, green and blue
        assert brown > 0.005


class TestHalfCheetah(RunnerContract):
    env_id, plain_id = "DriftHalfCheetah-v0", "HalfCheetah-v5"
    values: ClassVar = RUNNER
    silent, pictured = ("forward_reward",), ("brightness",)


class TestHopper(RunnerContract):
    env_id, plain_id = "DriftHopper-v0", "Hopper-v5"
    values: ClassVar = RUNNER
    silent, pictured = ("forward_reward",), ("brightness",)


class TestInvertedPendulum(MujocoContract):
    env_id, plain_id = "DriftInvertedPendulum-v0", "InvertedPendulum-v5"
    values: ClassVar = {"gravity": -5.0, "mass": 2.0, "damping": 3.0, "gain": -1.0}


class TestReacher(MujocoContract):
    env_id, plain_id = "DriftReacher-v0", "Reacher-v5"
    values: ClassVar = {"mass": 2.0, "damping": 3.0, "gain": -1.0, "target_turn": 1.0}
    silent = ("target_turn",)


def test_twice_the_mass_is_twice_of_all_that_follows_from_it():
    env = gym.make("DriftHopper-v0", schedule=None).unwrapped
    before = {name: getattr(env.model, name).copy() for name in ("body_mass", "body_inertia", "body_subtreemass")}
    env.set_knobs({"mass": 2.0})
    for name, old in before.items():
        assert np.allclose(getattr(env.model, name), 2 * old), name
    env.set_knobs({"mass": 1.0})
    for name, old in before.items():
        assert np.array_equal(getattr(env.model, name), old), name


def test_reversed_actuators_are_reversed_actions():
    one, other = (
        gym.make("DriftHopper-v0", schedule=schedule)
        for schedule in (None, {"version": 1, "name": "r", "base": {"gain": -1}})
    )
    one.action_space.seed(0)
    assert np.array_equal(one.reset(seed=0)[0], other.reset(seed=0)[0])
    for _ in range(20):
        action = one.action_space.sample()
        assert np.array_equal(one.step(action)[0], other.step(-action)[0])


def test_a_snapshot_in_another_instance_is_exact():
    env, other = gym.make("DriftHalfCheetah-v0"), gym.make("DriftHalfCheetah-v0")
    env.action_space.seed(0)
    env.reset(seed=0)
    other.reset(seed=5)
    for _ in range(30):
        env.step(env.action_space.sample())
    snapshot(env).restore(other)
    for _ in range(10):
        action = env.action_space.sample()
        assert np.array_equal(env.step(action)[0], other.step(action)[0])


def test_the_drifts_matter_to_reference_controllers():
    found = {}
    for name, (old, new) in mujoco().items():
        before, carried = (mean_return(name, tick, old, range(2)) for tick in (0, 20))
        found[name] = before, carried, mean_return(name, 20, new, range(2))
        assert carried <= before - 0.05 * abs(before), name
        if name.endswith("/explicit"):  # the opposite actions under reversed actuators
            assert found[name][2] == pytest.approx(before), name
    assert found["inverted_pendulum/explicit"][0] == 1000.0
    assert found["inverted_pendulum/implicit"][1] == -1000.0
    assert found["inverted_pendulum/implicit"][2] > -100.0
    assert min(found["half_cheetah/implicit"][2], found["hopper/implicit"][2]) > 1000.0
    assert min(found["reacher/explicit"][0], found["reacher/implicit"][2]) > -10.0


@pytest.mark.parametrize("folder", ["half_cheetah", "hopper", "inverted_pendulum", "reacher"])
def test_the_harmless_ones_cost_the_references_nothing(folder):
    policy = mujoco()[f"{folder}/explicit"].old
    before, after = (mean_return(f"{folder}/harmless", tick, policy, range(3)) for tick in (0, 20))
    assert after == before  # bit by bit: a runner enlarges the smallest difference


def test_the_reference_controllers_read_the_knobs():
    for env_id, name, least in (
        ("DriftInvertedPendulum-v0", "inverted_pendulum", 1.0),
        ("DriftReacher-v0", "reacher", 0.8),
    ):
        for kind in ("explicit", "implicit"):
            env = gym.make(env_id, schedule=f"{name}/{kind}", text=True)
            state, _ = env.reset(seed=0)
            oracle = env.get_wrapper_attr("oracle")
            assert oracle.value(0) >= least
            # one that is paid for falling does so in the first steps
            assert oracle.value(20) >= (-0.01 if f"{name}/{kind}" == "inverted_pendulum/implicit" else least)
            assert env.action_space.contains(oracle.action(state, 20))


@pytest.mark.parametrize("folder", ["half_cheetah", "hopper"])
def test_the_runners_gaits_are_references(folder):
    for kind in ("explicit", "implicit"):
        name = f"{folder}/{kind}"
        env = gym.make(drift_envs.load_schedule(name).env, schedule=name, text=True)
        state, _ = env.reset(seed=0)
        oracle = env.get_wrapper_attr("oracle")
        assert oracle.value(0) >= 1.0
        assert oracle.value(20) >= 1.0
        if kind == "explicit":  # the opposite actions under reversed actuators
            assert oracle.value(20) == pytest.approx(oracle.value(0))
            assert np.array_equal(oracle.action(state, 20), -oracle.action(state, 0))


def test_any_other_environment_of_mujoco():
    schedule = {
        "version": 1,
        "name": "ant",
        "knobs": {
            "gravity": {"attribute": "model.opt.gravity[2]", "bounds": [-50, 0]},
            "torso": {"attribute": 'model.body_mass["torso"]', "bounds": [0.01, 10]},
            "friction": {"attribute": "model.geom_friction[:, 0]", "kind": "factor", "bounds": [0, 10]},
            "gear": {"attribute": "model.actuator_gear[:, 0]", "kind": "factor", "bounds": [-5, 5]},
        },
    }
    for name, value in (("gravity", -3.0), ("torso", 0.9), ("friction", 0.1), ("gear", -1.0)):
        drift = {"name": "d", "at": 1, "set": {name: value}}
        env = DriftWrapper(gym.make("Ant-v5"), {**schedule, "drifts": [drift]})
        runs = []
        for tick in (0, 1):
            env.reset(seed=0, options={"drift_tick": tick})
            env.action_space.seed(0)
            runs.append([env.step(env.action_space.sample())[0] for _ in range(60)][-1])
        assert not np.array_equal(*runs), name


def test_the_page_runs():
    examples = read_code("docs/mujoco.md")
    assert examples
    for example in examples:
        run_code(example)


CONSTANTS = ("body_subtreemass", "body_invweight0", "dof_invweight0", "dof_M0", "tendon_length0", "actuator_acc0")


@pytest.mark.parametrize(
    ("env_id", "attribute", "spec", "value"),
    [
        ("Hopper-v5", 'model.body_mass["thigh"]', {"bounds": [1, 20]}, 11.0),
        ("HalfCheetah-v5", "model.body_mass", {"kind": "factor", "bounds": [0.1, 9]}, 2.5),
        ("Walker2d-v5", "model.dof_armature", {"kind": "factor", "bounds": [0.1, 9]}, 3.0),
        ("Swimmer-v5", "model.body_inertia[1, :]", {"kind": "factor", "bounds": [0.1, 9]}, 4.0),
        ("Ant-v5", "model.actuator_gear[0, 0]", {"bounds": [1, 200]}, 60.0),
    ],
)
def test_constants_of_the_model_are_those_of_the_attributes(env_id, attribute, spec, value):
    import mujoco as engine

    drifts = [{"at": 1, "set": {"knob": value}}]
    knobs = {"knob": {"attribute": attribute, **spec}}
    env = DriftWrapper(gym.make(env_id), {"version": 1, "name": "p", "knobs": knobs, "drifts": drifts})
    env.reset(seed=0)
    plain = gym.make(env_id).unwrapped.model
    for name in CONSTANTS:
        assert np.array_equal(getattr(env.unwrapped.model, name), getattr(plain, name))
    env.reset()
    for one in (env, copy.deepcopy(env)):
        model = one.unwrapped.model
        expected = copy.copy(model)
        engine.mj_setConst(expected, engine.MjData(expected))
        assert one.drift_state.knobs["knob"] == value
        assert any(not np.array_equal(getattr(model, name), getattr(plain, name)) for name in CONSTANTS)
        for name in CONSTANTS:
            assert np.array_equal(getattr(model, name), getattr(expected, name)), name


@pytest.mark.parametrize(
    ("name", "value", "attribute"),
    [("gravity", -3.0, "model.opt.gravity[2]"), ("forward_reward", -2.0, "_forward_reward_weight")],
)
def test_a_free_knob_set_from_outside_takes_effect(name, value, attribute):
    env = gym.make("DriftHopper-v0", schedule=None)
    env.reset(seed=0)
    env.set_wrapper_attr(name, value)
    for one in (env, copy.deepcopy(env)):
        assert one.unwrapped.read_knobs()[name] == one.get_wrapper_attr(name) == value
        assert AttributePath.parse(attribute).read(one.unwrapped) == value
    driven = gym.make("DriftHopper-v0", schedule={"version": 1, "name": "s", "base": {"gravity": -5.0}})
    driven.reset(seed=0)
    with pytest.raises(DrivenKnobError, match="`gravity` is driven"):
        driven.unwrapped.gravity = -2.0
    driven.unwrapped.model.opt.gravity[2] = -2.0
    with pytest.raises(DrivenKnobError, match=r"`gravity` is driven .* lost at tick 0"):
        driven.reset()
