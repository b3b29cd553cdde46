from __future__ import annotations

import itertools
import re

import pytest
from drift_agents.envs.matching import Exact
from drift_agents.envs.mountain_car.states import MountainCarMatching, read_motion, weigh_slopes
from drift_agents.errors import ArgumentError
from drift_agents.types import Outcome, Transition


@pytest.fixture
def taught(TextCar, drive_car):
    """A rule that has learned what the hill does."""
    rule = MountainCarMatching()
    for experience in drive_car(TextCar(), 200, hold=10):
        rule.learn(experience)
    return rule


def in_one_cell(rule, experiences):
    """All pairs with equal state keys and equal actions."""
    groups = {}
    for e in experiences:
        groups.setdefault((rule.state_key(e.state), e.action), []).append(e.transition)
    return [pair for group in groups.values() for pair in itertools.combinations(group, 2)]


def test_exact_matching_never_fires_on_a_car(TextCar, drive_car):
    states = [Exact().state_key(e.state) for e in drive_car(TextCar(), 600, hold=5)]
    assert len(set(states)) == len(states)


def test_gravity_is_learned(taught):
    assert taught.gravity == pytest.approx(-0.0025, abs=2e-6)


def test_the_hill_alone_is_not_mistaken_for_a_drift(taught, TextCar, drive_car):
    experiences = list(drive_car(TextCar(), 900, seed=3, hold=15))
    pairs = in_one_cell(taught, experiences)
    assert len(pairs) > 5000
    assert all(taught.same_outcome(a, b) for a, b in pairs)
    # Without the subtraction the hill looks like one: this is what the rule is for.
    naked = [read_motion(a.state, a.outcome.state).low - read_motion(b.state, b.outcome.state).low for a, b in pairs]
    assert sum(abs(gap) > taught.tolerance for gap in naked) > len(pairs) / 3


@pytest.mark.parametrize("force", [0.0008, 0.0012, -0.001])
def test_a_change_of_the_engine_is_noticed_everywhere(taught, TextCar, step_car, force):
    before, after = TextCar(force=0.001), TextCar(force=force)
    for x, v in itertools.product((-1.04, -0.74, -0.54, -0.36, 0.01, 0.33), (-0.04, 0.0, 0.03)):
        for action in ("0", "2"):
            old, new = step_car(before, x, v, action), step_car(after, x + 0.03, v - 0.01, action)
            assert taught.state_key(old.state) == taught.state_key(new.state)
            assert not taught.same_outcome(old.transition, new.transition)
            assert not taught.same_outcome(new.transition, old.transition)


def test_tolerance_decides(taught, TextCar, step_car):
    old, near = step_car(TextCar(), -0.33, 0.0, "2"), step_car(TextCar(force=0.00109), -0.33, 0.0, "2")
    far = step_car(TextCar(force=0.00112), -0.33, 0.0, "2")
    assert taught.same_outcome(old.transition, near.transition)
    assert not taught.same_outcome(old.transition, far.transition)
    taught.tolerance = 2e-4
    assert taught.same_outcome(old.transition, far.transition)


def test_a_drift_of_gravity_is_noticed_and_then_followed(taught, TextCar, drive_car, step_car):
    heavy = TextCar(gravity=0.0035)
    old, new = step_car(TextCar(), -0.81, 0.0, "1"), step_car(heavy, -0.84, 0.0, "1")
    assert not taught.same_outcome(old.transition, new.transition)
    for experience in drive_car(heavy, 300, seed=1, hold=10):
        taught.learn(experience)
    assert taught.gravity == pytest.approx(-0.0035, abs=5e-6)
    experiences = list(drive_car(heavy, 300, seed=2, hold=10))
    assert all(taught.same_outcome(a, b) for a, b in in_one_cell(taught, experiences))


def test_false_responses_do_not_bend_the_hill(TextCar, drive_car):
    rule = MountainCarMatching()
    env, other = TextCar(), TextCar(force=-0.001)
    for i, experience in enumerate(drive_car(env, 300, hold=10)):
        # Every eighth response is that of the opposite push.
        env.set_knobs(force=(-0.001 if i % 8 == 6 else 0.001))
        rule.learn(experience)
    assert rule.gravity == pytest.approx(-0.0025, abs=2e-5)
    assert other.unwrapped.force == -0.001


def test_nothing_differs_before_the_hill_is_known(TextCar, step_car):
    rule = MountainCarMatching()
    old, new = step_car(TextCar(), -0.33, 0.0, "2"), step_car(TextCar(force=-0.001), -0.33, 0.0, "2")
    assert rule.gravity is None
    assert rule.same_outcome(old.transition, new.transition)


def test_walls_and_the_speed_limit_teach_nothing(TextCar, step_car):
    rule, env = MountainCarMatching(), TextCar()
    for i in range(40):
        rule.learn(step_car(env, -1.15 - 0.001 * i, -0.06, "0"))
        rule.learn(step_car(env, -0.55 + 0.001 * i, 0.0699, "2"))
    assert rule.gravity is None


def test_old_pairs_are_forgotten(TextCar, drive_car):
    rule = MountainCarMatching(window=50)
    for experience in drive_car(TextCar(), 600, hold=10):
        rule.learn(experience)
    for experience in drive_car(TextCar(gravity=0.0035), 150, hold=10):
        rule.learn(experience)
    assert rule.gravity == pytest.approx(-0.0035, abs=5e-6)


def test_at_the_wall_one_bound_is_known(taught, TextCar, step_car):
    # The wall stops both; the one that came fast says nothing about how strong its push was.
    hit, slow = step_car(TextCar(), -1.17, -0.06, "0"), step_car(TextCar(force=-0.001), -1.15, -0.01, "0")
    assert read_motion(hit.state, hit.outcome.state).x2 == -1.2
    assert taught.same_outcome(hit.transition, slow.transition)
    # One that is stopped although the other one's push would have carried it off does differ.
    free = step_car(TextCar(force=0.005), -1.19, 0.0, "2")
    stopped = step_car(TextCar(force=-0.005), -1.19, -0.009, "2")
    assert read_motion(stopped.state, stopped.outcome.state).x2 == -1.2
    assert not taught.same_outcome(free.transition, stopped.transition)


def test_an_end_is_an_end_from_there_on_to_the_right(taught, TextCar, step_car):
    short, there = step_car(TextCar(), 0.41, 0.03, "2"), step_car(TextCar(), 0.48, 0.03, "2")
    assert (short.outcome.ended, there.outcome.ended) == (False, True)
    assert taught.same_outcome(short.transition, there.transition)
    passed = step_car(TextCar(goal_position=0.55), 0.49, 0.04, "2")
    assert not passed.outcome.ended
    assert not taught.same_outcome(there.transition, passed.transition)
    assert not taught.same_outcome(passed.transition, there.transition)
    early = step_car(TextCar(goal_position=0.42), 0.40, 0.03, "2")
    past = step_car(TextCar(), 0.43, 0.03, "2")
    assert not taught.same_outcome(early.transition, past.transition)


def test_position_moves_by_the_velocity(taught):
    def moved(x2):
        return Transition(
            '{"position": -0.55, "velocity": 0.01}',
            "1",
            Outcome(f'{{"position": {x2}, "velocity": 0.01}}', 0.0, False),
        )

    assert taught.same_outcome(moved(-0.54), moved(-0.54))
    assert not taught.same_outcome(moved(-0.54), moved(-0.53))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"position": 0}, "`position` should be in the interval (0, inf). Received 0"),
        ({"position": float("nan")}, "`position` should be in the interval (0, inf). Received nan"),
        ({"velocity": -0.1}, "`velocity` should be in the interval (0, inf), or None. Received -0.1"),
        ({"tolerance": "1e-4"}, "`tolerance` should be in the interval (0, inf). Received '1e-4'"),
        ({"tolerance": True}, "`tolerance` should be in the interval (0, inf). Received True"),
        ({"minimum": 1}, "`minimum` should be a whole number, at least 2. Received 1"),
        ({"minimum": 2.5}, "`minimum` should be a whole number, at least 2. Received 2.5"),
        ({"window": 9}, "`window` should be a whole number, at least 10. Received 9"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(ArgumentError, match=re.escape(message)):
        MountainCarMatching(**options)


@pytest.mark.parametrize("state", ["", "[]", '{"position": 1}', '{"position": "x", "velocity": 0}', "null"])
def test_other_environments_are_refused(state):
    with pytest.raises(ArgumentError, match="should be a JSON object with the numbers `position` and `velocity`"):
        MountainCarMatching().state_key(state)


def test_the_hill_is_a_weighted_median():
    assert weigh_slopes([]) == 0.0
    assert weigh_slopes([(-2.0, 1.0), (-2.0, 1.0), (50.0, 1.0)]) == -2.0
    # A long run outweighs two short ones.
    assert weigh_slopes([(-2.0, 1.0), (1.0, 0.1), (1.0, 0.1)]) == -2.0
