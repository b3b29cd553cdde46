"""CartPole, Acrobot and Pendulum with knobs."""

import copy
import re
from typing import ClassVar

import gymnasium as gym
import pytest

from benchmarks.physics import classic, mean_return
from drift_envs.errors import DrivenKnobError, KnobError, NoOracleError
from tests.drift_envs.envs.physics_contract import PhysicsContract


class TestCartPole(PhysicsContract):
    env_id, plain_id = "DriftCartPole-v0", "CartPole-v1"
    values: ClassVar = {
        "gravity": 5.0, "masscart": 2.0, "masspole": 0.5, "length": 1.0, "force_mag": -10.0, "tau": 0.01,
    }  # fmt: skip


class TestAcrobot(PhysicsContract):
    env_id, plain_id = "DriftAcrobot-v0", "Acrobot-v1"
    values: ClassVar = {
        "link_length_1": 2.0, "link_length_2": 2.0, "link_mass_1": 2.0, "link_mass_2": 2.0, "link_moi": 2.0,
        "torque_noise_max": 1.0, "torque": -1.0,
    }  # fmt: skip


class TestPendulum(PhysicsContract):
    env_id, plain_id = "DriftPendulum-v0", "Pendulum-v1"
    values: ClassVar = {"g": 5.0, "m": 2.0, "l": 2.0, "max_torque": 1.0, "dt": 0.1, "gain": -1.0}


ENV_IDS = {"cart_pole": "DriftCartPole-v0", "acrobot": "DriftAcrobot-v0", "pendulum": "DriftPendulum-v0"}
GOOD = {"cart_pole": 500.0, "acrobot": -100.0, "pendulum/explicit": -300.0, "pendulum/implicit": 1000.0}


@pytest.mark.parametrize("name", classic())
def test_the_drift_matters_to_a_reference_and_leaves_the_task_solvable(name):
    old, new = classic()[name]
    carried, after = mean_return(name, 20, old, range(3)), mean_return(name, 20, new, range(3))
    assert after >= GOOD.get(name, GOOD.get(name.split("/")[0]))
    assert carried <= after - 0.05 * abs(after)


@pytest.mark.parametrize("folder", ["cart_pole", "acrobot", "pendulum"])
def test_the_harmless_one_costs_the_reference_nothing(folder):
    policy = classic()[f"{folder}/explicit"].old
    before, after = (mean_return(f"{folder}/harmless", tick, policy, range(3)) for tick in (0, 20))
    assert after == pytest.approx(before, abs=1e-3)


@pytest.mark.parametrize(("folder", "least"), [("cart_pole", 1.0), ("acrobot", 1.0), ("pendulum", 0.45)])
def test_the_reference_controller_reads_the_knobs(folder, least):
    for kind in ("explicit", "implicit", *(["explicit:family"] if folder == "cart_pole" else [])):
        env = gym.make(ENV_IDS[folder], schedule=f"{folder}/{kind}", text=True)
        state, _ = env.reset(seed=0)
        oracle = env.get_wrapper_attr("oracle")
        assert min(oracle.value(0), oracle.value(40)) >= least
        assert env.action_space.contains(oracle.action(state, 40))


def test_there_is_no_reference_where_pay_is_cost_and_none_was_written():
    env = gym.make("DriftCartPole-v0", schedule={"version": 1, "name": "s", "base": {"reward_sign": "-"}})
    env.reset(seed=0)
    with pytest.raises(NoOracleError, match="no optimum is known for CartPole"):
        env.get_wrapper_attr("oracle").value(0)


@pytest.mark.parametrize(
    ("env_id", "name", "knob", "value", "derived"),
    [
        ("DriftCartPole-v0", "masscart", "masscart", 3.0, {"total_mass": 3.1}),
        ("DriftCartPole-v0", "length", "length", 2.0, {"polemass_length": 0.2}),
        ("DriftAcrobot-v0", "link_length_2", "link_length_2", 2.0, {"LINK_LENGTH_2": 2.0, "LINK_COM_POS_2": 1.0}),
        ("DriftAcrobot-v0", "LINK_LENGTH_1", "link_length_1", 4.0, {"link_length_1": 4.0, "LINK_COM_POS_1": 2.0}),
        ("DriftAcrobot-v0", "torque", "torque", -2.0, {"AVAIL_TORQUE": [2.0, 0.0, -2]}),
        ("DriftPendulum-v0", "m", "m", 2.5, {}),
    ],
)
def test_a_free_knob_set_from_outside_takes_effect_with_what_is_derived(env_id, name, knob, value, derived):
    for set_it in (lambda env: env.set_wrapper_attr(name, value), lambda env: setattr(env.unwrapped, name, value)):
        env = gym.make(env_id, schedule=None)
        env.reset(seed=0)
        set_it(env)
        for one in (env, copy.deepcopy(env)):
            assert one.unwrapped.read_knobs()[knob] == one.get_wrapper_attr(name) == value
            for attribute, expected in derived.items():
                assert getattr(one.unwrapped, attribute) == pytest.approx(expected)
        env.reset()
        assert env.unwrapped.read_knobs()[knob] == value
        env.close()


@pytest.mark.parametrize(
    ("env_id", "name", "value", "message"),
    [
        ("DriftCartPole-v0", "masscart", -3.0, "`masscart` should be in the interval [0.01, 100.0]. Received -3"),
        ("DriftAcrobot-v0", "AVAIL_TORQUE", [1, 0, 1], "`AVAIL_TORQUE` should be set by its factor, the knob `torque`"),
        ("DriftAcrobot-v0", "link_mass_1", "much", "`link_mass_1` should be a number. Received 'much'"),
    ],
)
def test_a_free_knob_set_from_outside_is_checked(env_id, name, value, message):
    env = gym.make(env_id, schedule=None)
    env.reset(seed=0)
    before = env.unwrapped.read_knobs()
    with pytest.raises(KnobError, match=re.escape(message)):
        env.set_wrapper_attr(name, value)
    assert env.unwrapped.read_knobs() == before
    env.close()


@pytest.mark.parametrize("name", ["link_length_1", "LINK_LENGTH_1"])
def test_a_driven_knob_is_refused_at_once(name):
    env = gym.make("DriftAcrobot-v0", schedule={"version": 1, "name": "s", "base": {"link_length_1": 2.0}})
    env.reset(seed=0)
    with pytest.raises(DrivenKnobError, match="`link_length_1` is driven"):
        setattr(env.unwrapped, name, 3.0)
    assert env.unwrapped.LINK_LENGTH_1 == 2.0
    env.close()
