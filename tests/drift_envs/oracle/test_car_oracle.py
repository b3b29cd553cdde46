"""The cars' oracle against Gymnasium's own physics."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

from drift_envs.envs.mountain_car import MOUNTAIN_CAR_CONTINUOUS_KNOBS, MOUNTAIN_CAR_KNOBS
from drift_envs.errors import ArgumentError
from drift_envs.oracle import CarOracle, PlannedWorld
from drift_envs.oracle.car_physics import CarSetting, car_magnitude, drive, drive_one, pump
from drift_envs.oracle.car_plan import carried_success, measure, replayed_success, solve_car
from drift_envs.schedule import Schedule, Timeline


def oracle_of(*drifts: dict, continuous: bool = False, **base: float) -> CarOracle:
    table = MOUNTAIN_CAR_CONTINUOUS_KNOBS if continuous else MOUNTAIN_CAR_KNOBS
    schedule = Schedule(version=1, name="test", base=base, drifts=list(drifts))
    return CarOracle(PlannedWorld(Timeline(schedule, table, 0), table), 999 if continuous else 300)


def text(position: float, velocity: float) -> str:
    return f'{{"position": {position:.6f}, "velocity": {velocity:.6f}}}'


def test_drive_is_gymnasiums_physics() -> None:
    env = gym.make("MountainCar-v0").unwrapped
    generator = np.random.default_rng(0)
    setting = CarSetting(0.001)
    for seed in range(20):
        env.reset(seed=seed)
        # Begin anywhere, so that walls, the speed limit and the flag come up as well.
        env.state = (generator.uniform(-1.2, 0.6), generator.uniform(-0.07, 0.07))
        for _ in range(60):
            position, velocity = env.state
            action = int(generator.integers(3))
            _, _, terminated, _, _ = env.step(action)
            x, v, there = drive(setting, np.array([position]), np.array([velocity]), np.array([action - 1.0]))
            assert (x[0], v[0]) == pytest.approx(env.state, abs=1e-15)
            assert there[0] == terminated


@pytest.mark.parametrize("setting", [CarSetting(0.001), CarSetting(-0.0008, goal_position=0.3), CarSetting(0.0001)])
def test_one_car_is_driven_like_many(setting: CarSetting) -> None:
    generator = np.random.default_rng(1)
    position, velocity = generator.uniform(-1.2, 0.6, 400), generator.uniform(-0.07, 0.07, 400)
    position[:20], velocity[:20] = -1.2, -0.07
    plan = solve_car(setting, 300)
    pushes = plan.push(position, velocity)
    margins = np.sort(plan.costs(position, velocity), axis=0)
    clear = margins[1] - margins[0] > 1e-9 if not plan.pumps else np.ones(400, dtype=bool)
    assert clear.sum() > 50
    for x, v, push, is_clear in zip(position.tolist(), velocity.tolist(), pushes, clear, strict=True):
        many = drive(setting, np.array([x]), np.array([v]), np.array([push]))
        assert drive_one(setting, x, v, float(push)) == pytest.approx([part[0] for part in many], abs=1e-15)
        if is_clear:
            assert plan.push_one(x, v) == push


def test_the_plan_reaches_gymnasiums_flag_as_fast_as_it_says() -> None:
    env, oracle, steps = gym.make("MountainCar-v0", max_episode_steps=300), oracle_of(), []
    for seed in range(15):
        observation, _ = env.reset(seed=seed)
        for step in range(1, 301):
            observation, _, terminated, truncated, _ = env.step(oracle.action(observation, 0))
            if terminated or truncated:
                assert terminated
                steps.append(step)
                break
    plan = solve_car(CarSetting(0.001), 300)
    assert plan.success == 1.0
    assert np.mean(steps) == pytest.approx(plan.mean_steps, abs=4)
    assert plan.mean_steps < 100 < 115 < measure(plan.setting, lambda x, v: pump(plan.setting, x, v), 300)[1]


@pytest.mark.parametrize(
    ("setting", "most_steps"),
    [
        (CarSetting(0.001), 99),
        (CarSetting(0.0008), 130),
        (CarSetting(0.0006), 167),
        (CarSetting(0.0005), 200),
        (CarSetting(-0.001), 99),
        (CarSetting(0.001, gravity=0.0009), 61),
        (CarSetting(0.003), 34),
        (CarSetting(0.0005, goal_position=-0.3), 70),
    ],
)
def test_the_plan_solves_every_force_that_is_shipped(setting: CarSetting, most_steps: float) -> None:
    plan = solve_car(setting, 300)
    assert plan.success == 1.0
    assert plan.mean_steps <= most_steps


def test_too_weak_an_engine_never_arrives() -> None:
    assert solve_car(CarSetting(0.0001), 300).success == 0.0


def test_false_answers_slow_the_car() -> None:
    sure, false = solve_car(CarSetting(0.001), 300), solve_car(CarSetting(0.001, transient=0.3), 300)
    assert sure.mean_steps + 10 < false.mean_steps
    assert solve_car(CarSetting(0.001, transient=1.0), 300).success < 0.5


def test_a_reversal_mirrors_the_answers() -> None:
    state = (np.array([-0.4]), np.array([0.02]))
    forward, backward = CarSetting(0.001), CarSetting(-0.001)
    assert drive(forward, *state, np.array([1.0])) == drive(backward, *state, np.array([-1.0]))
    assert carried_success(forward, backward, 300) == 0.0
    assert solve_car(backward, 300).mean_steps == solve_car(forward, 300).mean_steps


def test_carrying_over_to_the_same_car_costs_nothing() -> None:
    setting = CarSetting(0.0008)
    assert carried_success(setting, setting, 300) == 1.0
    assert replayed_success(setting, setting, 300) == 1.0


def test_a_replay_goes_wrong_sooner_than_a_policy() -> None:
    old, new = CarSetting(0.001), CarSetting(0.0008)
    assert carried_success(old, new, 300) == 1.0
    assert replayed_success(old, new, 300) == 0.0


def test_a_policy_may_do_what_it_likes_where_its_episode_would_have_been_over() -> None:
    low, high = CarSetting(0.001, goal_position=-0.3), CarSetting(0.001, goal_position=0.5)
    assert carried_success(low, high, 300) == 1.0


def test_a_replay_ends_where_the_old_episode_ended() -> None:
    # At the low flag the sequence is over; what the plan would push beyond it does not count.
    low, high = CarSetting(0.003, goal_position=0.0), CarSetting(0.003, goal_position=0.5)
    assert replayed_success(low, high, 300) == 0.0
    assert replayed_success(high, low, 300) == 1.0


def test_magnitude_leaves_out_what_stays() -> None:
    assert car_magnitude(CarSetting(0.001), CarSetting(0.001)) == 0.0
    # Doing nothing is answered as before whatever the force, and at the speed limit pushing may be too.
    assert 0.6 < car_magnitude(CarSetting(0.001), CarSetting(-0.001)) < 2 / 3
    assert 0.0 < car_magnitude(CarSetting(0.001, goal_position=0.4), CarSetting(0.001)) < 0.1
    assert car_magnitude(CarSetting(0.001), CarSetting(0.001, transient=0.1)) == 1.0


class TestQuestions:
    def test_changed_asks_for_the_pair(self) -> None:
        oracle = oracle_of({"at": 5, "set": {"force": -0.001}}, force=0.001)
        here = text(-0.5, 0.01)
        assert oracle.changed(here, "2", 0, 5)
        assert not oracle.changed(here, "1", 0, 5)
        assert not oracle.changed(here, "2", 0, 4)
        assert not oracle.changed(np.array([-0.5, 0.01]), 1, 0, 9)

    def test_changed_sees_small_forces_and_a_moved_flag(self) -> None:
        oracle = oracle_of(
            {"at": 1, "set": {"force": 0.0008}},
            {"at": 2, "set": {"goal_position": 0.4}},
            {"at": 3, "set": {"transient": 0.1}},
        )
        assert oracle.changed(text(-0.5, 0.01), 0, 0, 1)
        assert not oracle.changed(text(-0.5, 0.01), 0, 1, 2)
        assert oracle.changed(text(0.38, 0.03), 2, 1, 2)
        assert oracle.changed(text(-0.5, 0.01), 1, 2, 3)

    def test_a_reversed_car_that_misfires_answers_to_nothing_as_before(self) -> None:
        oracle = oracle_of({"at": 1, "set": {"force": -0.001}}, transient=0.1)
        assert not oracle.changed(text(-0.5, 0.01), 1, 0, 1)
        assert oracle.changed(text(-0.5, 0.01), 2, 0, 1)

    def test_response_lists_false_answers_of_the_discrete_car(self) -> None:
        answers = oracle_of(transient=0.1).response(text(-0.5, 0.0), 2, 0)
        assert [answer.probability for answer in answers] == [0.9, 0.05, 0.05]
        assert len({answer.state for answer in answers}) == 3
        (answer,) = oracle_of(transient=0.1, continuous=True).response(text(-0.5, 0.0), "1.0", 0)
        assert answer.probability == 0.9

    def test_response_at_the_flag(self) -> None:
        (answer,) = oracle_of().response(text(0.48, 0.03), 2, 0)
        assert answer.ended
        assert answer.score == 1.0

    def test_holds_within_rounding_and_no_further(self) -> None:
        oracle = oracle_of({"at": 1, "set": {"force": 0.0008}}, transient=0.2)
        here = text(-0.5, 0.01)
        (truth, *lies) = oracle.response(here, 2, 0)
        assert oracle.holds(here, 2, truth.state, False, 0)
        assert not oracle.holds(here, 2, truth.state, True, 0)
        assert not oracle.holds(here, 2, truth.state, False, 1)
        assert not any(oracle.holds(here, 2, lie.state, False, 0) for lie in lies)

    def test_everything_that_a_real_car_answers_holds(self) -> None:
        oracle, env = oracle_of(), gym.make("MountainCar-v0")
        observation, _ = env.reset(seed=3)
        generator = np.random.default_rng(1)
        for _ in range(150):
            action = int(generator.integers(3))
            after, _, terminated, truncated, _ = env.step(action)
            assert oracle.holds(text(*observation), str(action), text(*after), terminated, 0)
            observation = after
            if terminated or truncated:
                break

    def test_continuous_actions(self) -> None:
        oracle = oracle_of(continuous=True)
        action = oracle.action(text(-0.5, 0.01), 0)
        assert action.shape == (1,)
        assert action.dtype == np.float32
        assert oracle.response(text(-0.5, 0.01), action, 0) == oracle.response(text(-0.5, 0.01), f"[{action[0]}]", 0)
        assert oracle.response(text(-0.5, 0.01), "7", 0) == oracle.response(text(-0.5, 0.01), 1.0, 0)

    @pytest.mark.parametrize("state", ["nonsense", "{}", "[1, 2]", (1.0,), text(0, float("nan"))])
    def test_a_state_that_is_none_is_refused(self, state: object) -> None:
        with pytest.raises(ArgumentError, match="`state` should be"):
            oracle_of().action(state, 0)

    @pytest.mark.parametrize("action", ["left", 3, 0.5, None, [1, 2]])
    def test_an_action_that_is_none_is_refused(self, action: object) -> None:
        with pytest.raises(ArgumentError, match="`action` should be one of 0, 1, 2"):
            oracle_of().response(text(-0.5, 0), action, 0)
