"""CartPole, Acrobot and Pendulum with knobs."""

import re
from importlib.util import find_spec
from typing import ClassVar

import gymnasium as gym
import pytest

from benchmarks.physics import balance_cart, classic, mean_return
from drift_envs.errors import ArgumentError, MissingDependencyError, ScheduleError
from drift_envs.registration import ALL_IDS
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


GOOD = {"cart_pole": 500.0, "acrobot": -100.0, "pendulum/explicit": -300.0, "pendulum/implicit": 1000.0}


@pytest.mark.parametrize("name", classic())
def test_the_drift_matters_to_a_reference_and_leaves_the_task_solvable(name):
    old, new = classic()[name]
    carried, after = mean_return(name, 20, old, range(3)), mean_return(name, 20, new, range(3))
    assert after >= GOOD.get(name, GOOD.get(name.split("/")[0]))
    assert carried <= after - 0.05 * abs(after)


def test_the_harmless_one_is_harmless():
    assert mean_return("cart_pole/harmless", 20, balance_cart, range(3)) == 500.0


def test_arguments_that_say_what_the_schedule_says():
    schedule = {"version": 1, "name": "g", "drifts": [{"at": 1, "set": {"g": 5}}]}
    with pytest.raises(ArgumentError, match="`g` should not be given, since the schedule `g` sets `g`"):
        gym.make("DriftPendulum-v0", schedule=schedule, g=9.0)
    assert gym.make("DriftPendulum-v0", g=9.0).unwrapped.read_knobs()["g"] == 9.0
    with pytest.raises(ScheduleError, match="`gain` should be in the interval"):
        gym.make("DriftPendulum-v0", schedule={**schedule, "base": {"gain": 99}})


@pytest.mark.parametrize("env_id", [env_id for env_id, entry in ALL_IDS.items() if entry.extra])
def test_an_id_whose_extra_is_missing_says_what_to_install(env_id):
    extra = ALL_IDS[env_id].extra
    if find_spec({"box2d": "Box2D"}.get(extra, extra)) is not None:
        pytest.skip(f"the extra `{extra}` is installed")
    with pytest.raises(MissingDependencyError, match=re.escape(f'run `pip install "drift-envs[{extra}]"`')):
        gym.make(env_id)
