"""The planner for worlds whose state is a list of numbers."""

import gymnasium as gym
import numpy as np
import pytest
from drift_agents.agent import Agent
from drift_agents.experiment.worlds import agent_side
from drift_agents.matching.base import make_matching
from drift_agents.matching.smooth import read_field_state
from drift_agents.memory.vanilla import VanillaMemory
from drift_agents.policy.control.model import fit_model, read_control_records
from drift_agents.policy.control.planner import ControlPlanner
from drift_agents.policy.planner import Planner
from drift_agents.prompt.view import PromptView, Recollection
from drift_agents.types import Outcome

import drift_envs  # noqa: F401

STATE = '{{"angle": {:.6f}, "angular_velocity": {:.6f}, "score": 0.0}}'


def record(angle, velocity, action, push, last, n=1.0):
    """A step of a pendulum in which the torque adds `push` to the velocity."""
    speed = velocity + 0.75 * np.sin(angle) + push
    return Recollection(
        STATE.format(angle, velocity), action, Outcome(STATE.format(angle + 0.05 * speed, speed), 0.0, False), n, last
    )


def records(sign, count=60, start=0, seed=0):
    rng = np.random.default_rng(seed)
    return [
        record(*rng.uniform((-3, -4), (3, 4)), action, sign * 0.15 * float(action), start + number)
        for number in range(count)
        for action in ("-2.0", "2.0")
    ]


@pytest.mark.parametrize(("conflict", "expected"), [("majority", 0.3), ("newest", -0.3), ("frequency", 0.1)])
def test_contradictions_nearby_are_settled_by_the_rule(conflict, expected):
    here = read_field_state(STATE.format(0.1, 0.0))
    near = [record(0.1, 0.0, "2.0", 0.3, 500, n=2.0), record(0.11, 0.0, "2.0", -0.3, 900)]
    evidence = read_control_records([*records(1.0), *near], ("-2.0", "2.0"), [0])
    model = fit_model(evidence, here, 2, np.array([0.5, 2.0]), [0], conflict, neighbours=2)
    assert model.effects[1, 1] - model.effects[0, 1] == pytest.approx(expected + 0.3, abs=0.05)


def test_the_plan_follows_the_records():
    state = STATE.format(0.1, 0.0)  # leaning: the torque against it keeps the pendulum up
    cost = '{{"angle": {:.6f}, "angular_velocity": {:.6f}, "score": {:.6f}}}'

    def paid(item):
        angle, speed = read_field_state(item.outcome.state).numbers
        before = read_field_state(item.state).numbers
        pay = -0.001 * (before[0] ** 2 + 0.1 * before[1] ** 2)
        return item._replace(outcome=Outcome(cost.format(angle, speed, pay), pay, False))

    chosen = {}
    for sign in (1.0, -1.0):
        view = PromptView("Swing.", state, ("-2.0", "2.0"), elsewhere=tuple(map(paid, records(sign))))
        chosen[sign] = ControlPlanner().decide(view.render(), np.random.default_rng(0)).text
    assert chosen == {1.0: "-2.0", -1.0: "2.0"}


def test_untried_actions_come_first_and_a_world_without_an_aim_is_played_at_random():
    view = PromptView("Swing.", STATE.format(0, 0), ("-2.0", "2.0", "0.0"), elsewhere=tuple(records(1.0)))
    assert Planner().decide(view.render(), np.random.default_rng(0)).text == "0.0"
    leg = PromptView("Hop.", '{"height": 1.0, "score": 0.0}', ("[0.0]", "[1.0]"))
    found = {ControlPlanner().decide(leg.render(), np.random.default_rng(seed)).text for seed in range(20)}
    assert found == {"[0.0]", "[1.0]"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("env_id", "least"), [("DriftPendulum-v0", 0.44), ("DriftCartPole-v0", 0.5), ("DriftAcrobot-v0", 1.0)]
)
def test_it_plays_from_memory(env_id, least):
    side = agent_side(env_id)
    rule = make_matching(side.matching.name, **side.matching.options)
    world = gym.make(env_id, schedule=None, text=True)
    agent = Agent(Planner(), VanillaMemory(matching=rule), matching=rule, recall=side.recall, seed=0)
    scores = [agent.run_episode(world, seed=seed).score for seed in range(3)]
    assert np.mean(scores[1:]) >= least
