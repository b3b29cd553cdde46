"""The matching rule of classic control and MuJoCo."""

import re

import gymnasium as gym
import numpy as np
import pytest
from drift_agents.errors import ArgumentError
from drift_agents.matching.fields import FieldGrid
from drift_agents.matching.smooth import difference, expand, fit_smooth, read_field_state
from drift_agents.types import AgentClock, Experience, Outcome, Transition
from drift_agents.world import to_env

import drift_envs  # noqa: F401

WORLDS = {"DriftCartPole-v0": "cart_pole", "DriftAcrobot-v0": "acrobot", "DriftPendulum-v0": "pendulum"}


def collect(env_id, schedule, tick, steps, seed=0):
    """Transitions of random actions at a tick."""
    env, rng = gym.make(env_id, schedule=schedule, text=True), np.random.default_rng(seed)
    found = []
    state, info = env.reset(seed=seed, options={"drift_tick": tick})
    for _ in range(steps):
        action = info["actions"][int(rng.integers(len(info["actions"])))]
        after, _, terminated, truncated, info = env.step(to_env(env.action_space, action))
        found.append(Transition(state, action, Outcome(after, info["score"], terminated)))
        state = after
        if terminated or truncated:
            state, info = env.reset(options={"drift_tick": tick})
    return found


def learn(rule, transitions):
    for number, one in enumerate(transitions):
        rule.learn(Experience(one.state, one.action, one.outcome, 0.0, AgentClock(0, number)))


def share_of_same(rule, ones, others):
    """The share of pairs of one cell and action with the same outcome."""
    found = [
        rule.same_outcome(one, other)
        for one in ones
        for other in others
        if one.action == other.action and rule.state_key(one.state) == rule.state_key(other.state)
    ]
    assert len(found) > 30
    return np.mean(found)


@pytest.mark.parametrize("env_id", WORLDS)
def test_outcomes_differ_where_the_controls_are_reversed_and_nowhere_else(env_id):
    schedule = f"{WORLDS[env_id]}/explicit"
    rule = FieldGrid()
    before = collect(env_id, schedule, 0, 500)
    learn(rule, before)
    again, after = collect(env_id, schedule, 0, 200, seed=1), collect(env_id, schedule, 20, 200, seed=1)
    idle = {"1"} if env_id == "DriftAcrobot-v0" else {"0.0"}
    pushed = [one for one in after if one.action not in idle]
    assert share_of_same(rule, before, again) > 0.95
    assert share_of_same(rule, before, pushed) < 0.4


def test_pay_that_turns_into_cost_is_another_outcome():
    rule = FieldGrid()
    before = collect("DriftPendulum-v0", "pendulum/implicit", 0, 500)
    learn(rule, before)
    after = collect("DriftPendulum-v0", "pendulum/implicit", 20, 200, seed=1)
    hanging = [one for one in after if abs(read_field_state(one.state).numbers[0]) > 1.5]
    assert share_of_same(rule, before, hanging) < 0.1


def test_with_few_steps_all_outcomes_are_the_same():
    rule = FieldGrid()
    ones = collect("DriftPendulum-v0", "pendulum/explicit", 0, 59)
    learn(rule, ones)
    assert all(rule.same_outcome(ones[0], other) for other in ones)


def test_cells_and_neighbours():
    rule = FieldGrid(widths={"angle": 0.5}, reach=1)
    state = '{{"angle": {}, "angular_velocity": 0.1, "score": {}}}'
    assert rule.state_key(state.format(0.1, 0.2)) == rule.state_key(state.format(0.4, 0.9)) == (0, 0)
    assert rule.related(state.format(0.1, 0), state.format(0.6, 0))
    assert not rule.related(state.format(0.1, 0), state.format(1.1, 0))
    assert rule.related(state.format(3.1, 0), state.format(-3.1, 0))  # an angle goes round
    other = '{"height": 0.5, "score": 0.0}'
    assert rule.state_key(other) == other
    with pytest.raises(ArgumentError, match=re.escape("the state should be a JSON object of numbers with `score`")):
        rule.state_key("{}")
    with pytest.raises(ArgumentError, match=re.escape("`widths.angle` should be in the interval (0, inf)")):
        FieldGrid(widths={"angle": 0})
    with pytest.raises(ArgumentError, match="`widths` should map fields to widths"):
        FieldGrid(widths=3)


def test_the_smooth_part_is_fitted_exactly_where_it_is_quadratic():
    rng = np.random.default_rng(0)
    states = rng.uniform(-3, 3, size=(80, 2))
    target = (2 * np.sin(states[:, :1]) - states[:, 1:] * np.cos(states[:, :1])) + 0.5
    found = fit_smooth(expand(states, [0]), target)
    assert np.abs(expand(states, [0]) @ found - target).max() < 1e-3
    assert difference(np.array([[-3.1]]), np.array([[3.1]]), [0])[0, 0] == pytest.approx(2 * np.pi - 6.2)
