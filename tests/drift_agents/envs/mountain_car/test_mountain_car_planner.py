from __future__ import annotations

import re

import numpy as np
import pytest
from drift_agents.envs.mountain_car.fitted_dynamics import fit_model, read_evidence
from drift_agents.envs.mountain_car.planner import EnergyPumping, MountainCarPlanner, make_plan
from drift_agents.envs.mountain_car.states import read_state
from drift_agents.errors import ArgumentError
from drift_agents.policy.base import Policy
from drift_agents.prompt.view import PromptView

ACTIONS = ("0", "1", "2")


def drive(env, policy, memories, seed, limit=300):
    """One episode with a fixed memory: whether the flag was reached, and in how many steps."""
    rng = np.random.default_rng(seed)
    state, info = env.reset(seed=seed)
    for step in range(1, limit + 1):
        view = PromptView(info["task"], state, ACTIONS, elsewhere=tuple(memories), step=step)
        state, _, ended, _, info = env.step(policy.decide(view, rng).text)
        if ended:
            return True, step
    return False, limit


@pytest.fixture
def memories(drive_car, recall_experience):
    """A handful of random steps: the flag has never been reached."""

    def make(env, seed=0, steps=40):
        return [recall_experience(e, last=e.now.step) for e in drive_car(env, steps, seed=seed, hold=4)]

    return make


@pytest.mark.parametrize("force", [0.001, 0.0008, -0.001])
@pytest.mark.parametrize("seed", range(2))
def test_forty_random_steps_are_enough_to_reach_the_flag(TextCar, memories, force, seed):
    env = TextCar(force=force)
    reached, steps = drive(env, MountainCarPlanner(), memories(env, seed), seed=100 + seed)
    assert reached
    # Energy pumping takes 113 to 215.
    assert steps <= 170


def test_the_plan_follows_gravity_and_flag(TextCar, memories, step_car, recall_experience):
    env = TextCar(gravity=0.0032, goal_position=0.2)
    won = recall_experience(step_car(env, 0.19, 0.03, "2"))
    reached, steps = drive(env, MountainCarPlanner(), [*memories(env), won], seed=5)
    assert reached
    assert steps < 160


def test_stale_memories_mislead(TextCar, memories):
    old = memories(TextCar(force=0.001))
    assert drive(TextCar(force=-0.001), MountainCarPlanner(), old, seed=5) == (False, 300)


@pytest.mark.parametrize(("conflict", "reached"), [("newest", True), ("majority", False)])
def test_conflict_decides_between_old_and_new(TextCar, memories, step_car, recall_experience, conflict, reached):
    """Everything was answered three times as before the controls were reversed, and once after."""
    old = [item._replace(n=3.0) for item in memories(TextCar(force=0.001), seed=1, steps=90)]
    after = TextCar(force=-0.001)
    again = [(*read_state(item.state), item.action) for item in old]
    new = [recall_experience(step_car(after, *state), last=1000 + i) for i, state in enumerate(again)]
    assert drive(after, MountainCarPlanner(conflict=conflict), old + new, seed=6)[0] is reached


def test_experience_from_this_state_is_believed_first(TextCar, step_car, recall_experience):
    """In one state the controls are known to be reversed; memories of its neighbours are stale."""
    old, new = TextCar(force=0.001), TextCar(force=-0.001)
    stale = [
        recall_experience(step_car(old, x, 0.0, a), last=i) for i, x in enumerate((-0.7, -0.6, -0.51)) for a in ACTIONS
    ]
    here = [recall_experience(step_car(new, -0.42, 0.0, a), last=9) for a in ACTIONS]
    state = '{"position": -0.490000, "velocity": 0.005000}'
    rng = np.random.default_rng(0)
    told = PromptView("", state, ACTIONS, tuple(here), tuple(stale))
    with_lesson = MountainCarPlanner().decide(told, rng).text
    untold = MountainCarPlanner().decide(PromptView("", state, ACTIONS, (), tuple(stale + here)), rng).text
    assert (with_lesson, untold) == ("0", "2")


def test_unknown_actions_are_tried_first(TextCar, step_car, recall_experience):
    known = [
        recall_experience(step_car(TextCar(), -0.5, 0.0, "1")),
        recall_experience(step_car(TextCar(), -0.5, 0.0, "2")),
    ]
    view = PromptView("", '{"position": -0.500000, "velocity": 0.000000}', ACTIONS, elsewhere=tuple(known))
    assert {MountainCarPlanner().decide(view, np.random.default_rng(s)).text for s in range(20)} == {"0"}


def test_a_wall_that_hid_an_action_does_not_hold_the_car(TextCar, step_car, recall_experience):
    """Pushing against the wall showed nothing; there it is not tried again, farther away it is."""
    known = [
        recall_experience(step_car(TextCar(), x, 0.0, a), last=i) for a in "12" for i, x in enumerate((-0.5, -0.4))
    ]
    known.append(recall_experience(step_car(TextCar(), -1.19, -0.03, "0")))
    rng = np.random.default_rng(0)

    def choice(x):
        view = PromptView("", f'{{"position": {x}, "velocity": 0.0}}', ACTIONS, elsewhere=tuple(known))
        return MountainCarPlanner().decide(view, rng).text

    assert choice(-1.2) != "0"
    assert choice(-0.8) == "0"


def test_the_answer_is_a_function_of_view_and_generator(TextCar, memories):
    """Neither what was asked before nor anything but the view counts."""
    items = memories(TextCar(), steps=120)
    views = [
        PromptView("", item.state, ACTIONS, (item,), tuple(items[: 20 + i]), step=i) for i, item in enumerate(items)
    ]
    used = MountainCarPlanner()
    forth = [used.decide(p, np.random.default_rng(i)).text for i, p in enumerate(views)]
    back = [used.decide(p, np.random.default_rng(i)).text for i, p in reversed(list(enumerate(views)))]
    fit_model.cache_clear()
    make_plan.cache_clear()
    fresh = [MountainCarPlanner().decide(p, np.random.default_rng(i)).text for i, p in enumerate(views)]
    assert forth == back[::-1] == fresh
    assert {"0", "2"} <= set(forth)


def test_the_continuous_car_takes_its_actions_from_the_prompt(TextCar, memories):
    pushes = {"0": "-1.0", "1": "0.0", "2": "1.0"}
    items = [item._replace(action=pushes[item.action]) for item in memories(TextCar(), steps=60)]
    view = PromptView("", '{"position": -0.5, "velocity": 0.02}', tuple(pushes.values()), elsewhere=tuple(items))
    assert MountainCarPlanner().decide(view, np.random.default_rng(0)).text == "1.0"


def test_a_hopeful_plan_takes_the_best_answer_and_a_mean_one_weighs(TextCar, memories):
    old = memories(TextCar(force=0.001), steps=60)
    new = memories(TextCar(force=-0.001), steps=60)
    evidence = read_evidence(old + new, ACTIONS)
    values = {
        conflict: make_plan(fit_model(evidence, ACTIONS, conflict, 6), optimistic=conflict == "max").action_value(
            "2", -0.5, 0.01
        )
        for conflict in ("max", "frequency")
    }
    sure = make_plan(fit_model(read_evidence(old, ACTIONS), ACTIONS, "majority", 5), optimistic=False)
    assert 0 < values["frequency"] < values["max"]
    assert values["max"] >= sure.action_value("2", -0.5, 0.01) - 0.02


def test_worth_counts_the_steps_to_the_flag(TextCar, memories):
    plan = make_plan(fit_model(read_evidence(memories(TextCar()), ACTIONS), ACTIONS, "majority", 5), optimistic=False)
    goal = plan.model.goal
    assert plan.action_value("2", goal - 0.01, 0.03) == pytest.approx(0.99)
    assert plan.action_value("2", goal - 0.05, 0.03) == pytest.approx(0.99**2)
    assert plan.action_value("2", -0.5, 0.0) < 0.6


@pytest.fixture
def plan(TextCar, memories):
    return make_plan(fit_model(read_evidence(memories(TextCar()), ACTIONS), ACTIONS, "majority", 5), optimistic=False)


def test_values_are_the_worth_of_the_best_action(plan):
    """Between the nodes they differ a little; at walls and limits as little as elsewhere."""
    rng = np.random.default_rng(0)
    states = [*zip(rng.uniform(-1.1, 0.4, 60), rng.uniform(-0.06, 0.06, 60), strict=True)]
    states += [(-1.17, -0.07), (-1.2, -0.035), (-1.14, -0.0665), (-1.2, 0.0)]
    gaps = [plan.value(x, v) - max(plan.action_value(a, x, v) for a in ACTIONS) for x, v in states]
    assert max(map(abs, gaps[-4:])) < 0.01
    assert np.median(np.abs(gaps)) < 0.01
    assert max(map(abs, gaps)) < 0.06


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"conflict": "mean"}, "`conflict` should be one of majority, newest, frequency, max. Received 'mean'"),
        ({"neighbours": 0}, "`neighbours` should be a whole number, at least 1. Received 0"),
        ({"neighbours": True}, "`neighbours` should be a whole number, at least 1. Received True"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(ArgumentError, match=re.escape(message)):
        MountainCarPlanner(**options)


@pytest.mark.parametrize("policy", [MountainCarPlanner(), EnergyPumping()], ids=lambda p: p.name)
def test_other_views_are_refused(policy):
    rng = np.random.default_rng(0)
    assert isinstance(policy, Policy)
    with pytest.raises(ArgumentError, match="should be a JSON object with the numbers"):
        policy.decide(PromptView("", '{"cur_pos": [0, 0]}', ACTIONS), rng)
    with pytest.raises(ArgumentError, match="names no admissible action"):
        policy.decide(PromptView("", '{"position": 0, "velocity": 0}', ()), rng)


@pytest.mark.parametrize(("force", "reached"), [(0.001, True), (-0.001, False)])
def test_energy_pumping_knows_the_controls_and_nothing_else(TextCar, force, reached):
    assert drive(TextCar(force=force), EnergyPumping(), [], seed=3)[0] is reached
