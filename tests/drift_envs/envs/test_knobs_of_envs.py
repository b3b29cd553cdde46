"""What the knobs of the lake and the cars do, and what they refuse."""

import copy
import pickle
import re

import numpy as np
import pytest

from drift_envs.envs import FrozenLake, MountainCar, MountainCarContinuous
from drift_envs.errors import DrivenKnobError, KnobError
from drift_envs.knobs import Tunable, draw_number

ALL = [FrozenLake, MountainCar, MountainCarContinuous]
names = pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)


@names
def test_defaults_are_what_gymnasium_has(kind):
    env = kind(is_slippery=False) if kind is FrozenLake else kind()
    assert isinstance(env, Tunable)
    assert env.read_knobs() == kind.knobs.defaults()
    for name, knob in kind.knobs.items():
        assert knob.check(knob.default) == knob.default
        assert getattr(env, name) == knob.default
        assert knob.doc


@names
def test_held_knobs_refuse_to_be_set_and_can_be_changed(kind):
    env = kind()
    name = next(iter(kind.knobs))
    env.hold([name])
    with pytest.raises(DrivenKnobError, match=f"`{name}` is driven by the schedule"):
        setattr(env, name, kind.knobs[name].default)
    with pytest.raises(DrivenKnobError, match=f"`{name}` is driven by the schedule"):
        env.set_knobs({name: kind.knobs[name].default})
    env.transient = 0.5
    env.knob_setter({name: kind.knobs[name].default})
    assert env.read_knobs()["transient"] == 0.5


def test_the_lake_refuses_its_array_when_the_map_is_held():
    lake = FrozenLake()
    lake.desc = ["SG"]
    assert lake.read_knobs()["map"] == ("SG",)
    lake.hold(["map"])
    with pytest.raises(DrivenKnobError, match="`map` is driven"):
        lake.desc = ["SFG"]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("map", ["SF", "G"], "rows must have equal length, row 2 has 1 of 2"),
        ("map", ["SX", "FG"], "tiles must be one of S, F, H, G, row 1 has 'X'"),
        ("map", ["FF", "FG"], "a map needs a start (S)"),
        ("map", ["SF", "FF"], "a map needs a goal (G)"),
        ("map", ["SH", "HG"], "a goal must be reachable from the start"),
        ("map", [], "at least one row"),
        ("map", ["S" + "F" * 64 + "G"], "a map may have 64 rows and columns. Received 1 x 66"),
        ("slip", 1.5, "`slip` should be in the interval [0.0, 1.0]. Received 1.5"),
        ("goal_rewards", {"3": 1}, "keys should be 'row,column', counted from 0. Received '3'"),
        ("goal_rewards", {"3,3": "x"}, "rewards should be numbers"),
        ("goal_rewards", {"3,3": float("nan")}, "rewards should be numbers"),
        ("goal_rewards", {"3,3": 1, "3, 3": 1}, "a goal should be named once"),
        ("goal_rewards", {"0,0": 1}, "keys must be goal tiles of the map, '0,0' is 'S'"),
        ("goal_rewards", {"9,0": 1}, "keys must be goal tiles of the map, '9,0' lies outside of its 4 x 4"),
    ],
)
def test_the_lake_refuses(name, value, message):
    lake = FrozenLake()
    before = lake.read_knobs()
    with pytest.raises(KnobError, match=re.escape(message)):
        setattr(lake, name, value)
    assert lake.read_knobs() == before


def test_rewards_of_single_goals():
    lake = FrozenLake(desc=["SG", "GF"], is_slippery=False, reward_schedule=(3, 0, 0))
    lake.goal_rewards = {"0,1": 0.5}
    lake.reset(seed=0)
    assert lake.step(2)[1] == 0.5
    lake.reset()
    assert lake.step(1)[1] == 3


def test_an_agent_on_a_new_hole_or_goal_ends_the_episode_unpaid():
    for tile in "HG":
        lake = FrozenLake(desc=["SFFG"], is_slippery=False)
        lake.reset(seed=0)
        lake.step(2)
        lake.set_knobs({"map": (f"S{tile}FG",) if tile == "G" else ("SFFG",)})
        if tile == "H":
            lake.set_knobs({"map": ("SHFG",)})
        assert lake.step(2)[:3] == (1, 0, True)


def test_a_map_of_another_size_keeps_row_and_column():
    lake = FrozenLake(desc=["SFF", "FFF", "FFG"], is_slippery=False)
    lake.reset(seed=0)
    for action in (1, 1, 2):
        lake.step(action)
    lake.set_knobs({"map": ("SF", "FG")})
    assert divmod(lake.s, 2) == (1, 1)
    with pytest.raises(KnobError, match=re.escape("should have at most 9 tiles")):
        lake.set_knobs({"map": ("SFFFFFFFFG",)})
    roomy = FrozenLake(desc=["SG"], room_for=[(2, 3), (1, 4)])
    assert roomy.observation_space.n == 6
    roomy.set_knobs({"map": ("SFFG",)})
    assert roomy.window_size == (4 * 64, 2 * 64)
    assert roomy.cell_size == (64, 128)


def test_transient_draws_nothing_when_it_is_off():
    lakes = [FrozenLake(show_prob=False), FrozenLake(show_prob=False)]
    lakes[1].set_knobs({"transient": 0.5})
    lakes[1].set_knobs({"transient": 0.0})
    for lake in lakes:
        lake.reset(seed=1)
    for action in (0, 1, 2, 3) * 20:
        assert lakes[0].step(action) == lakes[1].step(action)


def test_a_false_response_of_the_lake_neither_ends_nor_pays():
    lake = FrozenLake(desc=["SFH", "HFF", "FFG"], is_slippery=False)
    lake.set_knobs({"transient": 1.0})
    lake.reset(seed=0)
    for _ in range(300):
        lake.s = 4
        state, reward, terminated, *_ = lake.step(0)  # the move itself leads into a hole
        assert state in (1, 5, 7)
        assert (reward, terminated) == (0, False)


def test_a_false_response_of_the_car_is_that_of_another_action():
    car = MountainCar()
    car.transient = 1.0
    car.reset(seed=0)
    start = car.state
    speeds = {}
    for action in (0, 1, 2):
        plain = MountainCar()
        plain.reset(seed=0)
        speeds[action] = plain.step(action)[0][1]
    for action in (0, 1, 2):
        found = []
        for _ in range(200):
            car.state = start
            found.append(car.step(action)[0][1])
        others = {float(speed) for other, speed in speeds.items() if other != action}
        assert {float(speed) for speed in found} == others
        shares = [np.mean([speed == other for speed in found]) for other in others]
        assert min(shares) > 0.35


def test_a_false_response_of_the_continuous_car_costs_what_was_asked():
    car = MountainCarContinuous()
    car.transient = 1.0
    car.reset(seed=0)
    start = car.state
    found = []
    for _ in range(300):
        car.state = start
        (_, speed), reward, *_ = car.step([0.5])
        assert reward == pytest.approx(-0.025)
        found.append(float(speed))
    plain = MountainCarContinuous()
    plain.reset(seed=0)
    low = float(plain.step([-1.0])[0][1])
    plain.reset(seed=0)
    high = float(plain.step([1.0])[0][1])
    assert low <= min(found) < low + 0.1 * (high - low)
    assert high >= max(found) > high - 0.1 * (high - low)


def test_reversed_controls():
    for kind, knob, left, right in ((MountainCar, "force", 0, 2), (MountainCarContinuous, "power", [-1.0], [1.0])):
        plain, reversed_ = kind(), kind()
        setattr(reversed_, knob, -getattr(reversed_, knob))
        plain.reset(seed=0)
        reversed_.reset(seed=0)
        assert (plain.step(left)[0] == reversed_.step(right)[0]).all()


def test_gravity_and_goal():
    for kind, action in ((MountainCar, 1), (MountainCarContinuous, [0.0])):
        car = kind()
        car.gravity = 0.0
        car.reset(seed=0)
        assert car.step(action)[0][1] == 0.0
        car.goal_position = -0.3
        car.state = (-0.25, 0.0)
        assert car.step(action)[2]


@names
@pytest.mark.parametrize("clone", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["copy", "pickle"])
def test_clones_have_the_same_future_and_no_windows(kind, clone):
    env = kind(render_mode="rgb_array")
    env.reset(seed=5)
    env.transient = 0.3
    if kind is FrozenLake:
        env.goal_rewards = {"3,3": 0.5}
    picture = env.render()
    actions = [[0.3]] * 40 if kind is MountainCarContinuous else [1, 2, 0, 1] * 10
    for action in actions[:3]:
        env.step(action)
    other = clone(env)
    assert other.read_knobs() == env.read_knobs()
    assert all(getattr(other, name, None) is None for name in kind.surfaces)
    for action in actions:
        for one, two in zip(env.step(action), other.step(action), strict=True):
            assert np.array_equal(one, two)
    assert np.array_equal(env.render(), other.render())
    assert picture.shape == other.render().shape
    env.close()
    other.close()


def test_pictures_follow_the_map_and_keep_their_shape():
    lake = FrozenLake("rgb_array", is_slippery=False, room_for=[(4, 4)])
    lake.reset(seed=0)
    first = lake.render()
    lake.set_knobs({"map": ("SFFH", "FHFH", "FFFH", "HFFG")})
    second = lake.render()
    assert not np.array_equal(first, second)
    lake.set_knobs({"map": ("SF", "FG")})
    third = lake.render()
    assert first.shape == second.shape == third.shape
    assert lake.cell_size == (128, 128)
    fresh = FrozenLake("rgb_array", desc=["SF", "FG"], is_slippery=False, room_for=[(4, 4)])
    fresh.reset(seed=0)
    assert np.array_equal(third, fresh.render())
    lake.close()
    fresh.close()


def test_a_drawn_number_is_any_but_the_one_before():
    rng = np.random.default_rng(0)
    drawn = [draw_number("shop", 4, {}, 2, rng) for _ in range(900)]
    assert [drawn.count(number) for number in (1, 3, 4)] == pytest.approx([300] * 3, rel=0.2)
