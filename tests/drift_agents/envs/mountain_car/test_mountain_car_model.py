from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from drift_agents.envs.mountain_car import planner as car_plan
from drift_agents.envs.mountain_car.fitted_dynamics import (
    GRAIN,
    POINTS,
    TOP,
    fit_model,
    override_locally,
    read_evidence,
)
from drift_agents.envs.mountain_car.planner import make_plan
from drift_agents.errors import ArgumentError
from drift_agents.prompt.view import Recollection
from drift_agents.types import Outcome

ACTIONS = ("0", "1", "2")
G = 0.0025


def felt(x, push, action="2", n=1.0, last=0, v=0.0, gravity=G):
    """A recollection of a step with a given push."""
    v2 = v + push - gravity * math.cos(3 * x)
    after = Outcome(f'{{"position": {x + v2:.6f}, "velocity": {v2:.6f}}}', 0.0, False)
    return Recollection(f'{{"position": {x:.6f}, "velocity": {v:.6f}}}', action, after, n, last)


def was_at(x2, won, n=1.0, last=0):
    """A recollection of a step that led to a place, with or without an end."""
    after = Outcome(f'{{"position": {x2:.6f}, "velocity": 0.03}}', float(won), won)
    return Recollection(f'{{"position": {x2 - 0.03:.6f}, "velocity": 0.03}}', "2", after, n, last)


# Coasting along the valley, long ago: from this the pull of the hill is known.
COASTED = [felt(-1.1 + 0.1 * i, 0.0, action="1", last=-100 + i) for i in range(15)]


def fit(items, conflict="majority", neighbours=5):
    return fit_model(read_evidence(items, ACTIONS), ACTIONS, conflict, neighbours)


def pushes(model, action, x):
    """The responses to an action at a place: pushes and weights."""
    p, w = model.arrays()
    row, point = model.actions.index(action), int(np.abs(POINTS - x).argmin())
    return p[row, :, point], w[row, :, point]


def test_gravity_and_pushes_of_the_real_environment(TextCar, drive_car, recall_experience):
    items = [recall_experience(e, last=e.now.step) for e in drive_car(TextCar(), 300, hold=15)]
    model = fit(items)
    assert model.actions == ACTIONS
    assert model.gravity == pytest.approx(-0.0025, abs=GRAIN)
    p, _ = model.arrays()
    for row, push in enumerate((-0.001, 0.0, 0.001)):
        assert np.abs(p[row] - push).max() <= GRAIN


def test_order_does_not_matter(TextCar, drive_car, recall_experience):
    items = [recall_experience(e, last=e.now.step) for e in drive_car(TextCar(), 200, hold=7)]
    assert read_evidence(items, ACTIONS) == read_evidence(items[::-1], ACTIONS)
    assert fit(items) == fit(items[::-1])


def test_a_drift_does_not_bend_gravity(TextCar, drive_car, recall_experience):
    old = [recall_experience(e, last=e.now.step) for e in drive_car(TextCar(), 150, hold=15)]
    new = [recall_experience(e, last=1000 + e.now.step) for e in drive_car(TextCar(force=-0.001), 150, seed=1, hold=15)]
    assert fit(old + new).gravity == pytest.approx(-0.0025, abs=2 * GRAIN)


def test_what_was_felt_at_one_place_holds_for_others():
    push, weight = pushes(fit([*COASTED, felt(-0.5, 0.001), felt(0.0, 0.001, last=1)]), "2", -1.1)
    assert push == pytest.approx([0.001], abs=GRAIN)
    assert weight == [1.0]


def test_the_nearer_is_louder():
    items = [felt(-0.6, 0.001), felt(-0.61, 0.001, last=1), felt(-0.3, -0.001, last=2), felt(-0.29, -0.001, last=3)]
    model = fit(COASTED + items)
    assert pushes(model, "2", -0.6)[0] == pytest.approx([0.001], abs=GRAIN)
    assert pushes(model, "2", -0.3)[0] == pytest.approx([-0.001], abs=GRAIN)


CONTRADICTION = [
    felt(-0.5, 0.001, n=2, last=0),
    felt(-0.45, 0.001, last=1),
    felt(-0.5, -0.001, last=2),
    felt(-0.45, -0.001, last=3),
]


@pytest.mark.parametrize(
    ("conflict", "expected"),
    [
        ("majority", {0.001: 1.0}),
        ("newest", {-0.001: 1.0}),
        ("frequency", {0.001: 2 / 3, -0.001: 1 / 3}),
    ],
)
def test_conflicts_at_one_place(conflict, expected):
    push, weight = pushes(fit(COASTED + CONTRADICTION, conflict), "2", -0.5)
    found = {round(float(p), 4): float(w) for p, w in zip(push, weight, strict=True) if w > 0}
    # The pair .05 away counts a little, and it is undecided.
    assert found == pytest.approx(expected, abs=0.02)


def test_equally_loud_answers_go_to_the_newest():
    for newer in (0.001, -0.001):
        items = [felt(-0.5, newer, last=9), felt(-0.45, newer, last=8)]
        items += [felt(-0.5, -newer, last=1), felt(-0.45, -newer, last=0)]
        assert pushes(fit(COASTED + items), "2", -0.5)[0] == pytest.approx([newer], abs=GRAIN)


def test_only_the_nearest_are_asked():
    items = [felt(-0.5, 0.001)] + [felt(-0.48, -0.001, last=i, v=0.001 * i) for i in range(1, 5)]
    assert pushes(fit(COASTED + items, neighbours=1), "2", -0.5)[0] == pytest.approx([0.001], abs=GRAIN)
    assert pushes(fit(COASTED + items, neighbours=5), "2", -0.5)[0] == pytest.approx([-0.001], abs=GRAIN)


def test_limits_hide_what_an_action_does(TextCar, step_car, recall_experience):
    at_wall = recall_experience(step_car(TextCar(), -1.19, -0.05, "0"))
    at_limit = recall_experience(step_car(TextCar(), -0.55, 0.0699, "2"))
    model = fit([at_wall, at_limit])
    assert model.actions == ()
    assert model.responses == 0


@pytest.mark.parametrize(
    ("items", "conflict", "goal"),
    [
        ([], "majority", TOP),
        ([was_at(0.3, False)], "majority", TOP),
        ([was_at(0.54, False)], "majority", 0.6),
        ([was_at(0.52, True), was_at(0.505, True), was_at(0.49, False)], "majority", 0.505),
        # It ended three times at .51, later it did not at .53: moved to the right?
        ([was_at(0.51, True, n=3), was_at(0.53, False, last=9)], "majority", 0.51),
        ([was_at(0.51, True, n=3), was_at(0.53, False, last=9)], "newest", 0.6),
        ([was_at(0.51, True, n=3), was_at(0.53, False, last=9), was_at(0.56, True, last=10)], "newest", 0.56),
        ([was_at(0.51, True), was_at(0.53, False, n=4, last=9), was_at(0.56, True, last=10)], "majority", 0.56),
        ([was_at(0.51, True), was_at(0.53, False, n=4, last=9), was_at(0.56, True, last=10)], "max", 0.51),
        ([was_at(0.51, True), was_at(0.53, False, n=4, last=9)], "frequency", 0.6),
        # It once passed .4, later it ended at .35: moved to the left.
        ([was_at(0.4, False), was_at(0.51, True), was_at(0.35, True, last=9)], "newest", 0.35),
    ],
)
def test_where_the_track_ends_well(items, conflict, goal):
    assert fit(items, conflict).goal == pytest.approx(goal)


def test_a_place_passed_on_the_way_down_says_nothing():
    """The flag counts only for a car that does not roll back."""
    back = was_at(0.55, False, n=4, last=9)
    back = back._replace(outcome=back.outcome._replace(state='{"position": 0.55, "velocity": -0.01}'))
    assert fit([was_at(0.51, True), back]).goal == pytest.approx(0.51)


def test_an_end_without_a_score_is_no_goal():
    lost = was_at(0.3, True)
    lost = lost._replace(outcome=lost.outcome._replace(score=0.0))
    assert fit([lost]).goal == pytest.approx(TOP)


def test_the_present_state_outweighs_its_neighbours():
    here = [felt(-0.42, -0.001, last=9)]
    stale = [felt(-0.5 - 0.004 * i, 0.001, last=i) for i in range(4)]
    model = fit(COASTED + here + stale)
    assert pushes(model, "2", -0.49)[0] == pytest.approx([0.001], abs=GRAIN)
    found = override_locally(model, read_evidence(here, ACTIONS), ACTIONS, -0.49, "majority", 5)
    for x in (-0.49, -0.45, -0.42):
        assert pushes(found, "2", x)[0] == pytest.approx([-0.001], abs=GRAIN)
    # Beyond the stretch everything stays.
    assert pushes(found, "2", -0.51)[0] == pytest.approx([0.001], abs=GRAIN)
    assert pushes(found, "2", -0.3)[0] == pushes(model, "2", -0.3)[0]


def test_other_environments_are_refused():
    lake = Recollection('{"cur_pos": [0, 0]}', "2", Outcome('{"cur_pos": [0, 1]}', 0.0, False), 1.0, 0)
    with pytest.raises(ArgumentError, match="should be a JSON object with the numbers"):
        read_evidence([lake], ACTIONS)


@pytest.mark.parametrize("optimistic", [False, True])
@pytest.mark.parametrize("point", [0, 60, 180])
def test_a_plan_does_not_depend_on_the_plans_made_before(point, optimistic):
    """What is mended after a change at one point is what would have been made from the start."""
    before = fit([*COASTED, felt(-0.5, 0.001), felt(-0.3, -0.001, action="0")], conflict="frequency")
    changed = np.frombuffer(before.pushes).copy()
    changed[[point, 2 * len(POINTS) + point]] += 5e-4
    after = replace(before, pushes=changed.tobytes())
    make_plan(before, optimistic=optimistic)
    mended = make_plan(after, optimistic=optimistic)
    for cache in (make_plan, car_plan._held_moves):
        cache.cache_clear()
    fresh = make_plan(after, optimistic=optimistic)
    assert mended is not fresh
    assert np.array_equal(mended._values, fresh._values)
    assert not np.array_equal(fresh._values, make_plan(before, optimistic=optimistic)._values)
