"""The oracle of the cars against Gymnasium's dynamics."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

from drift_envs.envs.mountain_car.dynamics import (
    CarSetting,
    car_magnitude,
    carried_success,
    drive,
    drive_one,
    measure,
    pump,
    replayed_success,
    solve_car,
)
from drift_envs.envs.mountain_car.env import MOUNTAIN_CAR_CONTINUOUS_KNOBS, MOUNTAIN_CAR_KNOBS
from drift_envs.envs.mountain_car.oracle import CarOracle
from drift_envs.errors import ArgumentError
from drift_envs.oracle import PlannedKnobs
from drift_envs.schedule import Schedule, Timeline


def make_car_oracle(*drifts: dict, continuous: bool = False, **base: float) -> CarOracle:
    table = MOUNTAIN_CAR_CONTINUOUS_KNOBS if continuous else MOUNTAIN_CAR_KNOBS
    schedule = Schedule(version=1, name="test", base=base, drifts=list(drifts))
    return CarOracle(PlannedKnobs(Timeline(schedule, table, 0), table), 999 if continuous else 300)


def state_text(position: float, velocity: float) -> str:
    return f'{{"position": {position:.6f}, "velocity": {velocity:.6f}}}'


def test_drive_equals_gymnasiums_dynamics() -> None:
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
            x, v, at_goal = drive(setting, np.array([position]), np.array([velocity]), np.array([action - 1.0]))
            assert (x[0], v[0]) == pytest.approx(env.state, abs=1e-15)
            assert at_goal[0] == terminated


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


def test_measured_steps_of_the_plan_agree_with_gymnasium() -> None:
    env, oracle, steps = gym.make("MountainCar-v0", max_episode_steps=300), make_car_oracle(), []
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
def test_the_plan_succeeds_under_all_shipped_settings(setting: CarSetting, most_steps: float) -> None:
    plan = solve_car(setting, 300)
    assert plan.success == 1.0
    assert plan.mean_steps <= most_steps


def test_success_is_zero_if_the_engine_is_too_weak() -> None:
    assert solve_car(CarSetting(0.0001), 300).success == 0.0


@pytest.mark.integration
def test_false_responses_increase_the_steps() -> None:
    sure, false = solve_car(CarSetting(0.001), 300), solve_car(CarSetting(0.001, transient=0.3), 300)
    assert sure.mean_steps + 10 < false.mean_steps
    assert solve_car(CarSetting(0.001, transient=1.0), 300).success < 0.5


def test_a_negative_force_mirrors_the_responses() -> None:
    state = (np.array([-0.4]), np.array([0.02]))
    forward, backward = CarSetting(0.001), CarSetting(-0.001)
    assert drive(forward, *state, np.array([1.0])) == drive(backward, *state, np.array([-1.0]))
    assert carried_success(forward, backward, 300) == 0.0
    assert solve_car(backward, 300).mean_steps == solve_car(forward, 300).mean_steps


@pytest.mark.integration
def test_replayed_sequences_fail_where_policies_succeed() -> None:
    old, new = CarSetting(0.001), CarSetting(0.0008)
    assert carried_success(old, new, 300) == 1.0
    assert replayed_success(old, new, 300) == 0.0


@pytest.mark.integration
def test_all_actions_are_allowed_beyond_the_old_goal() -> None:
    low, high = CarSetting(0.001, goal_position=-0.3), CarSetting(0.001, goal_position=0.5)
    assert carried_success(low, high, 300) == 1.0


def test_a_replay_ends_where_the_old_episode_ended() -> None:
    # The sequence ends at the low flag; pushes after that do not count.
    low, high = CarSetting(0.003, goal_position=0.0), CarSetting(0.003, goal_position=0.5)
    assert replayed_success(low, high, 300) == 0.0
    assert replayed_success(high, low, 300) == 1.0


def test_magnitude_counts_differing_pairs_only() -> None:
    assert car_magnitude(CarSetting(0.001), CarSetting(0.001)) == 0.0
    # The response to no push does not depend on the force, nor do some responses at the speed limit.
    assert 0.6 < car_magnitude(CarSetting(0.001), CarSetting(-0.001)) < 2 / 3
    assert 0.0 < car_magnitude(CarSetting(0.001, goal_position=0.4), CarSetting(0.001)) < 0.1
    assert car_magnitude(CarSetting(0.001), CarSetting(0.001, transient=0.1)) == 1.0


class TestResponses:
    def test_changed_depends_on_state_and_action(self) -> None:
        oracle = make_car_oracle({"at": 5, "set": {"force": -0.001}}, force=0.001)
        here = state_text(-0.5, 0.01)
        assert oracle.changed(here, "2", 0, 5)
        assert not oracle.changed(here, "1", 0, 5)
        assert not oracle.changed(here, "2", 0, 4)
        assert not oracle.changed(np.array([-0.5, 0.01]), 1, 0, 9)

    def test_changed_sees_small_forces_and_a_moved_flag(self) -> None:
        oracle = make_car_oracle(
            {"at": 1, "set": {"force": 0.0008}},
            {"at": 2, "set": {"goal_position": 0.4}},
            {"at": 3, "set": {"transient": 0.1}},
        )
        assert oracle.changed(state_text(-0.5, 0.01), 0, 0, 1)
        assert not oracle.changed(state_text(-0.5, 0.01), 0, 1, 2)
        assert oracle.changed(state_text(0.38, 0.03), 2, 1, 2)
        assert oracle.changed(state_text(-0.5, 0.01), 1, 2, 3)

    def test_no_push_is_unchanged_when_a_car_with_false_responses_is_reversed(self) -> None:
        oracle = make_car_oracle({"at": 1, "set": {"force": -0.001}}, transient=0.1)
        assert not oracle.changed(state_text(-0.5, 0.01), 1, 0, 1)
        assert oracle.changed(state_text(-0.5, 0.01), 2, 0, 1)

    def test_response_lists_false_responses_of_the_discrete_car(self) -> None:
        responses = make_car_oracle(transient=0.1).response(state_text(-0.5, 0.0), 2, 0)
        assert [response.probability for response in responses] == [0.9, 0.05, 0.05]
        assert len({response.state for response in responses}) == 3
        (response,) = make_car_oracle(transient=0.1, continuous=True).response(state_text(-0.5, 0.0), "1.0", 0)
        assert response.probability == 0.9

    def test_response_at_the_flag(self) -> None:
        (response,) = make_car_oracle().response(state_text(0.48, 0.03), 2, 0)
        assert response.ended
        assert response.score == 1.0

    def test_holds_tolerates_rounding_only(self) -> None:
        oracle = make_car_oracle({"at": 1, "set": {"force": 0.0008}}, transient=0.2)
        here = state_text(-0.5, 0.01)
        (true, *false) = oracle.response(here, 2, 0)
        assert oracle.holds(here, 2, true.state, False, 0)
        assert not oracle.holds(here, 2, true.state, True, 0)
        assert not oracle.holds(here, 2, true.state, False, 1)
        assert not any(oracle.holds(here, 2, one.state, False, 0) for one in false)

    def test_all_responses_of_the_environment_hold(self) -> None:
        oracle, env = make_car_oracle(), gym.make("MountainCar-v0")
        observation, _ = env.reset(seed=3)
        generator = np.random.default_rng(1)
        for _ in range(150):
            action = int(generator.integers(3))
            after, _, terminated, truncated, _ = env.step(action)
            assert oracle.holds(state_text(*observation), str(action), state_text(*after), terminated, 0)
            observation = after
            if terminated or truncated:
                break

    def test_continuous_actions(self) -> None:
        oracle = make_car_oracle(continuous=True)
        action = oracle.action(state_text(-0.5, 0.01), 0)
        assert action.shape == (1,)
        assert action.dtype == np.float32
        assert oracle.response(state_text(-0.5, 0.01), action, 0) == oracle.response(
            state_text(-0.5, 0.01), f"[{action[0]}]", 0
        )
        assert oracle.response(state_text(-0.5, 0.01), "7", 0) == oracle.response(state_text(-0.5, 0.01), 1.0, 0)

    @pytest.mark.parametrize("state", ["nonsense", "{}", "[1, 2]", (1.0,), state_text(0, float("nan"))])
    def test_an_invalid_state_is_refused(self, state: object) -> None:
        with pytest.raises(ArgumentError, match="`state` should be"):
            make_car_oracle().action(state, 0)

    @pytest.mark.parametrize("action", ["left", 3, 0.5, None, [1, 2]])
    def test_an_invalid_action_is_refused(self, action: object) -> None:
        with pytest.raises(ArgumentError, match="`action` should be one of 0, 1, 2"):
            make_car_oracle().response(state_text(-0.5, 0), action, 0)
