"""Gaits that are known beforehand, and what records decide about them."""

import json
from pathlib import Path

import drift_agents.policy.control.gaits as gaits
import drift_envs.oracle.controllers as controllers
import numpy as np
import pytest
from drift_agents.matching.smooth import find_field_world
from drift_agents.policy.control.gaits import find_runner, read_direction, read_sign
from drift_agents.policy.control.model import read_control_records
from drift_agents.policy.planner import Planner
from drift_agents.prompt.view import PromptView, Recollection
from drift_agents.types import Outcome

from drift_envs.wrappers.field_text import FIELD_TEXTS

TEXT = FIELD_TEXTS["Hopper"]
TORQUES = np.array([json.loads(action) for action in TEXT.actions])
JOINTS = [TEXT.fields.index(f"velocity_{limb}") for limb in ("thigh", "leg", "foot")]
SPEED = TEXT.fields.index("velocity_x")


def write(numbers, score):
    return json.dumps({**dict(zip(TEXT.fields, np.round(numbers, 6).tolist(), strict=True)), "score": round(score, 6)})


def records(sign, direction, count=60, start=0, seed=0):
    """Steps in which torques turn joints by `sign`, and speed pays by `direction`."""
    rng = np.random.default_rng(seed)
    pull = np.random.default_rng(9).normal(size=(len(TEXT.fields), len(TEXT.fields)))
    found = []
    for number in range(start, start + count):
        state, action = rng.normal(size=len(TEXT.fields)), int(rng.integers(len(TORQUES)))
        after = state + 0.1 * pull @ state
        after[JOINTS] += sign * TORQUES[action]
        paid = 0.001 * (direction * after[SPEED] + 1.0)
        outcome = Outcome(write(after, 0.1 + paid), 0.1 + paid, False)
        found.append(Recollection(write(state, 0.1), TEXT.actions[action], outcome, 1.0, number))
    return found


def read(items):
    return read_control_records(items, TEXT.actions, [])


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("direction", [1.0, -1.0])
def test_sign_and_direction_are_read_from_records(sign, direction):
    evidence = read(records(sign, direction))
    assert read_sign(evidence, TORQUES, JOINTS, "majority") == sign
    assert read_direction(evidence, TORQUES, SPEED) == direction


@pytest.mark.parametrize(("conflict", "expected"), [("majority", 1.0), ("frequency", 1.0), ("newest", -1.0)])
def test_contradictions_are_settled_by_the_rule(conflict, expected):
    evidence = read([*records(1.0, 1.0), *records(-1.0, 1.0, count=20, start=60, seed=1)])
    assert read_sign(evidence, TORQUES, JOINTS, conflict) == expected


def test_the_opposite_action_is_taken_where_actuators_are_reversed():
    rng, chosen = np.random.default_rng(3), []
    for _ in range(20):
        state = write(rng.normal(size=len(TEXT.fields)), 0.0)
        pair = []
        for sign in (1.0, -1.0):
            view = PromptView("Hop.", state, TEXT.actions, elsewhere=tuple(records(sign, 1.0)))
            answer = Planner().decide(view.render(), np.random.default_rng(0)).text
            pair.append(json.loads(answer))
        assert np.array_equal(pair[0], -np.array(pair[1]))
        chosen.append(pair[0])
    assert len({str(one) for one in chosen}) > 1


def test_without_records_actions_are_drawn_and_with_them_a_gait_is_played():
    for items, drawn in (((), True), (tuple(records(1.0, 1.0)), False), (tuple(records(1.0, -1.0)), False)):
        view = PromptView("Hop.", write(np.zeros(len(TEXT.fields)), 0.0), TEXT.actions, elsewhere=items)
        found = {Planner().decide(view.render(), np.random.default_rng(seed)).text for seed in range(40)}
        assert len(found) > 5 if drawn else len(found) == 1


def test_another_gait_is_played_where_backward_pays():
    rng = np.random.default_rng(5)
    states = [write(rng.normal(size=len(TEXT.fields)), 0.0) for _ in range(20)]
    played = [
        [
            Planner()
            .decide(PromptView("Hop.", state, TEXT.actions, elsewhere=items).render(), np.random.default_rng(0))
            .text
            for state in states
        ]
        for items in (tuple(records(1.0, 1.0)), tuple(records(1.0, -1.0)))
    ]
    assert played[0] != played[1]


def test_the_runners_are_told_by_their_fields():
    for name, actuators in (("Hopper", 3), ("HalfCheetah", 6)):
        fields = FIELD_TEXTS[name].fields
        runner = find_runner(fields)
        assert find_field_world(fields).contacts
        assert set(runner.gaits) == {1.0, -1.0}
        assert all(gait.weights.shape == (actuators, len(fields)) for gait in runner.gaits.values())
        assert [fields[joint].startswith("velocity_") for joint in runner.joints] == [True] * actuators
    assert find_runner(("angle",)) is None
    assert not find_field_world(("angle", "angular_velocity")).contacts


def test_the_weights_are_few_and_say_where_they_come_from():
    known = json.loads(Path(controllers.GAITS).read_text(encoding="utf-8"))
    assert json.loads(Path(gaits.GAITS).read_text(encoding="utf-8")) == known
    assert set(known) == {f"{runner}/{way}" for runner in ("half_cheetah", "hopper") for way in ("forward", "backward")}
    for gait in known.values():
        assert np.size(gait["weights"]) + np.size(gait["bias"]) <= 200
        assert gait["script"] == "examples/search_linear.py"
        assert {"seed", "rounds", "versions", "return"} <= set(gait)
