"""Nothing turned, no difference: the environments against Gymnasium's own, bit for bit."""

import numpy as np
import pytest
from gymnasium.envs.classic_control.continuous_mountain_car import Continuous_MountainCarEnv
from gymnasium.envs.classic_control.mountain_car import MountainCarEnv
from gymnasium.envs.toy_text.frozen_lake import MAPS, FrozenLakeEnv

from drift_envs.envs import FrozenLake, MountainCar, MountainCarContinuous

pytestmark = pytest.mark.integration

STEPS = 100_000
TWO_STARTS = ["SFFS", "FHFH", "SFFH", "HFFG"]
LAKES = [
    {},
    {"map_name": "8x8"},
    {"is_slippery": False},
    {"map_name": "8x8", "is_slippery": False},
    {"success_rate": 0.8},
    {"success_rate": 0.7, "map_name": "8x8"},
    {"success_rate": 0.0},
    {"success_rate": 1.0},
    {"reward_schedule": (10, -5, -0.1), "success_rate": 0.123},
    {"desc": TWO_STARTS, "success_rate": 0.9},
    {"desc": ["SG"], "is_slippery": False},
]


def play(env, actions, patience):
    """Everything that an environment answers, as plain values with their types."""
    answers = [env.reset(seed=123)]
    length = 0
    for action in actions:
        answers.append(env.step(action))
        length += 1
        if answers[-1][2] or length == patience:
            if length % 3 == 0 and answers[-1][2]:
                answers.append(env.step(action))  # a step beyond the end
            length = 0
            answers.append(env.reset())
    answers.append(env.np_random.random())  # the generators stand at the same place
    return answers


def exact(answer):
    """An answer in a form whose equality includes types and bits."""
    if isinstance(answer, tuple):
        return tuple(exact(part) for part in answer)
    if isinstance(answer, np.ndarray):
        return (answer.dtype.str, answer.tobytes())
    if isinstance(answer, dict):
        return {key: float(value) for key, value in answer.items()}
    return (float(answer), isinstance(answer, bool))


def assert_equal(ours, base, actions, patience):
    pairs = zip(play(ours, actions, patience), play(base, actions, patience), strict=True)
    for number, (our, their) in enumerate(pairs):
        assert exact(our) == exact(their), f"answer {number} differs"


@pytest.mark.parametrize("arguments", LAKES, ids=str)
def test_frozen_lake_is_gymnasiums(arguments):
    actions = np.random.default_rng(5).integers(4, size=STEPS // 10).tolist()
    assert_equal(FrozenLake(**arguments), FrozenLakeEnv(**arguments), actions, 100)


def test_frozen_lake_over_a_long_life():
    actions = np.random.default_rng(6).integers(4, size=STEPS).tolist()
    assert_equal(FrozenLake(), FrozenLakeEnv(), actions, 100)


@pytest.mark.parametrize("arguments", LAKES, ids=str)
def test_frozen_lake_has_gymnasiums_spaces_table_and_picture_size(arguments):
    ours, base = FrozenLake(**arguments), FrozenLakeEnv(**arguments)
    assert ours.observation_space == base.observation_space
    assert ours.action_space == base.action_space
    assert ours.P == base.P
    assert (ours.window_size, ours.cell_size) == (base.window_size, base.cell_size)
    assert (ours.desc == base.desc).all()


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("slip", [0.0, 0.25, 2 / 3])
def test_a_turned_lake_is_the_lake_built_that_way(name, slip):
    turned = FrozenLake(desc=["SFFFFFFG"] * 8)
    turned.set_knobs({"map": tuple(MAPS[name]), "slip": slip})
    built = FrozenLakeEnv(map_name=name, success_rate=1 - slip)
    actions = np.random.default_rng(7).integers(4, size=5_000).tolist()
    for number, (our, their) in enumerate(zip(play(turned, actions, 100), play(built, actions, 100), strict=True)):
        if isinstance(our, tuple):
            our, their = our[:-1], their[:-1]
        assert exact(our) == exact(their), f"answer {number} differs"


@pytest.mark.parametrize("goal_velocity", [0, pytest.param(0.02, marks=pytest.mark.slow)])
def test_mountain_car_is_gymnasiums(goal_velocity):
    generator = np.random.default_rng(8)
    actions = np.repeat(generator.integers(3, size=STEPS // 20), 20).tolist()  # long pushes reach walls and the flag
    ours, base = MountainCar(goal_velocity=goal_velocity), MountainCarEnv(goal_velocity=goal_velocity)
    assert ours.observation_space == base.observation_space
    assert ours.action_space == base.action_space
    assert_equal(ours, base, actions, 300)


def test_mountain_car_takes_numpy_actions_and_reset_bounds():
    options = {"low": -1.1, "high": 0.3}
    ours, base = MountainCar(), MountainCarEnv()
    assert exact(ours.reset(seed=1, options=options)) == exact(base.reset(seed=1, options=options))
    for action in np.random.default_rng(9).integers(3, size=200):
        assert exact(ours.step(action)) == exact(base.step(action))


def test_continuous_mountain_car_is_gymnasiums():
    generator = np.random.default_rng(10)
    forces = np.repeat(generator.uniform(-1.5, 1.5, size=STEPS // 20), 20).astype(np.float32)
    actions = [np.array([force]) for force in forces]
    ours, base = MountainCarContinuous(), Continuous_MountainCarEnv()
    assert ours.observation_space == base.observation_space
    assert ours.action_space == base.action_space
    assert_equal(ours, base, actions, 999)


class Constant:
    """A generator whose numbers are all the same."""

    def __init__(self, number):
        self.number = number

    def random(self):
        return self.number


def test_the_last_rounding_of_the_cumulated_probabilities():
    rates = [rate for rate in np.linspace(0.001, 0.999, 999) if sum([(1 - rate) / 2, rate, (1 - rate) / 2]) < 1]
    assert rates, "no rate rounds down"
    for rate in rates[:20]:
        answers = []
        for kind in (FrozenLake, FrozenLakeEnv):
            lake = kind(success_rate=rate)
            lake.reset(seed=0)
            lake.s = 9
            lake.np_random = Constant(np.nextafter(1, 0))
            answers.append(exact(lake.step(2)))
        assert answers[0] == answers[1]
