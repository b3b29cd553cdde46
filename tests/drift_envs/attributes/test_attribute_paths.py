"""Knobs that stand for nested, indexed, named and private attributes of any environment."""

from __future__ import annotations

import importlib.util
import re
from types import SimpleNamespace
from typing import ClassVar

import gymnasium as gym
import numpy as np
import pytest

from drift_envs.attributes.path import AttributePath
from drift_envs.cli import main
from drift_envs.errors import DrivenKnobError, KnobError, ScheduleError
from drift_envs.schedule import load_schedule
from drift_envs.wrappers import DriftWrapper


class Robot(gym.Env):
    """An environment of another package, with all kinds of attributes."""

    observation_space = gym.spaces.Discrete(3)
    action_space = gym.spaces.Discrete(2)
    limits: ClassVar[list[float]] = [1.0, 2.0]

    def __init__(self):
        self._ctrl_cost_weight = 0.1
        gravity = np.array([0.0, 0.0, -9.81])
        bodies = {"torso": SimpleNamespace(id=1), "foot": SimpleNamespace(id=2)}
        self.model = SimpleNamespace(
            opt=SimpleNamespace(gravity=gravity, wind=(0.0, 1.0)),
            geom_friction=np.ones((2, 3), np.float32),
            body_mass=np.array([0.0, 4.0, 1.0]),
            body=bodies.__getitem__,
        )
        self.names = {"torso": 1}
        self.surface = "ice"
        self.flags = [True, "a"]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        return action, 0.0, False, False, {}


def plan(knobs, base=None, drifts=()):
    return {"version": 1, "name": "test", "knobs": knobs, "base": base or {}, "drifts": list(drifts)}


def drifting(attribute, value, **spec):
    """A robot whose attribute gets the value at the second episode; before and after."""
    is_number = spec.get("kind", "float") in ("float", "integer")
    knobs = {"knob": {"attribute": attribute, **({"bounds": [-20, 20]} if is_number else {}), **spec}}
    env = DriftWrapper(Robot(), plan(knobs, drifts=[{"at": 1, "set": {"knob": value}}]))
    env.reset(seed=0)
    before = AttributePath.parse(attribute).read(env.unwrapped)
    env.reset()
    assert env.drift_state.knobs["knob"] == (tuple(map(_frozen, value)) if isinstance(value, list) else value)
    env.reset()
    return before, AttributePath.parse(attribute).read(env.unwrapped)


def _frozen(value):
    return tuple(value) if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("attribute", "value", "spec", "before"),
    [
        ("model.opt.gravity[2]", -4.0, {}, -9.81),
        ("model.opt.gravity[-1]", -4.0, {}, -9.81),
        ("model.opt.wind[1]", 3.0, {}, 1.0),
        ("_ctrl_cost_weight", 0.5, {}, 0.1),
        ('model.body_mass["torso"]', 8.0, {}, 4.0),
        ("model.body_mass['foot']", 8.0, {}, 1.0),
        ('names["torso"]', 5, {"kind": "integer"}, 1),
        ("model.geom_friction[:, 0]", [0.5, 2.0], {"kind": "array"}, (1.0, 1.0)),
        ("model.geom_friction[1, :2]", [0.5, 2.0], {"kind": "array", "bounds": [0, 3]}, (1.0, 1.0)),
        ("model.opt.gravity", [0.0, 1.0, -3.0], {"kind": "array"}, (0.0, 0.0, -9.81)),
        ("limits", [3.0, 4.0], {"kind": "array"}, (1.0, 2.0)),
        ("limits[0]", 3.0, {}, 1.0),
        ("surface", "gravel", {"kind": "string"}, "ice"),
        ("flags", [False, "b", 3], {"kind": "list"}, (True, "a")),
    ],
)
def test_attributes_of_every_form(attribute, value, spec, before):
    found, after = drifting(attribute, value, **spec)
    assert found == before
    assert after == _frozen(value)
    assert Robot.limits == [1.0, 2.0]  # the class is not changed


def test_a_factor_scales_an_array_and_can_rise_slowly():
    knobs = {"load": {"attribute": "model.body_mass", "kind": "factor", "bounds": [0.5, 4]}}
    env = DriftWrapper(Robot(), plan(knobs, drifts=[{"at": 1, "kind": "incremental", "over": 2, "set": {"load": 3}}]))
    masses = []
    for episode in range(4):
        env.reset(seed=0 if episode == 0 else None)
        masses.append(env.unwrapped.model.body_mass.tolist())
    assert masses == [[0, 4, 1], [0, 4, 1], [0, 8, 2], [0, 12, 3]]
    assert env.drift_state.knobs["load"] == 3.0


def test_single_precision_is_no_change_from_outside():
    knobs = {"slide": {"attribute": "model.geom_friction[0, 0]", "bounds": [0, 1]}}
    env = DriftWrapper(Robot(), plan(knobs, {"slide": 0.1}))
    env.reset(seed=0)
    env.reset(seed=1)
    env.unwrapped.model.geom_friction[0, 0] = 0.7
    with pytest.raises(DrivenKnobError, match="`slide` is driven"):
        env.reset(seed=2)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"attribute": "model.opt.gravty[2]"}, "Robot has no attribute `model.opt.gravty[2]`. Did you mean `gravity`?"),
        ({"attribute": "model.opt.gravity[3]"}, "Robot has no element `model.opt.gravity[3]`"),
        ({"attribute": 'model.body_mass["arm"]'}, "Robot has no element `model.body_mass[\"arm\"]`: 'arm'"),
        ({"attribute": 'model.opt.gravity["x"]'}, "the elements of this array have no names"),
        ({"attribute": "model.opt.gravity"}, "is an array of 3; the kind should be `array`, or `factor`"),
        ({"attribute": "surface", "kind": "factor"}, "should be a number or an array of numbers. Received 'ice'"),
        ({"attribute": "__class__"}, "should have no names that begin with two underscores"),
        ({"attribute": "model[print(1)]"}, "should have integers, slices or quoted names in brackets"),
        ({"attribute": "model.opt.gravity[2"}, "should be a path such as `model.opt.gravity[2]`"),
    ],
)
def test_refused_attributes_name_file_line_and_key(spec, message, tmp_path):
    file = tmp_path / "robot.yaml"
    text = spec["attribute"].replace("'", "''")
    file.write_text(
        "version: 1\nname: robot\nknobs:\n  wind:\n"
        f"    attribute: '{text}'\n    kind: {spec.get('kind', 'float')}\n    bounds: [-9, 9]\nbase: {{other: 1}}\n"
    )
    with pytest.raises(ScheduleError, match=re.escape(message)) as error:
        DriftWrapper(Robot(), file)
    assert error.value.problems[0].line == 5
    assert error.value.problems[0].key == "knobs.wind.attribute"


def test_lists_of_another_shape_or_outside_of_the_bounds_are_refused():
    knobs = {"pull": {"attribute": "model.opt.gravity", "kind": "array", "bounds": [-20, 0]}}
    for value, message in (
        ([0, 1], "`pull` should have the shape (3,)"),
        ([0, 0, -30], "the numbers of `pull` should be in the interval [-20.0, 0.0]"),
        ([0, 0, "a"], "`pull` should be a list of numbers"),
        (-3, "`pull` should be a list of numbers"),
    ):
        with pytest.raises(ScheduleError, match=re.escape(message)):
            DriftWrapper(Robot(), plan(knobs, {"pull": value}))


def test_the_command_reports_missing_attributes_of_the_named_environment(tmp_path, capsys):
    file = tmp_path / "pole.yaml"
    file.write_text(
        "version: 1\nname: pole\nenv: CartPole-v1\nclok: step\n"
        "knobs:\n  mass: {attribute: maspole, bounds: [0, 1]}\nbase: {mass: 1}\n"
    )
    assert main(["validate", str(file)]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith(f"{file}:4: clok: is no key that belongs here")
    assert lines[1] == (
        f"{file}:6: knobs.mass.attribute: CartPoleEnv has no attribute `maspole`. Did you mean `masspole`?"
    )
    file.write_text("version: 1\nname: pole\nenv: CartPol-v1\nbase: {masspole: 1}\n")
    assert main(["validate", str(file)]) == 1
    assert f"{file}:3: env: there is no such environment" in capsys.readouterr().err


@pytest.mark.parametrize("permutation", [[1, 0], {0: 1, 1: 0}, {"0": 1, "1": 0}, {0: 1}, (1, 0)])
def test_forms_of_a_permutation(permutation):
    if permutation == {0: 1}:
        with pytest.raises(ScheduleError, match="should use every action once"):
            DriftWrapper(Robot(), plan(None, {"action_permutation": permutation}))
        return
    env = DriftWrapper(Robot(), plan(None, {"action_permutation": permutation}))
    env.reset(seed=0)
    assert [env.step(action)[0] for action in (0, 1)] == [1, 0]


def test_paths_are_parsed_and_not_evaluated():
    assert AttributePath.parse("a._b[1, ::2]['x y'].c").steps == ("a", "_b", (1, slice(None, None, 2)), ("x y",), "c")
    for text in ("", "a..b", "a[", "a[]", "a]", "1a", "a b", "a[b]", "a[1.5]", "a.__dict__", "a[f(1)]", "a.b()"):
        with pytest.raises(KnobError):
            AttributePath.parse(text)
    assert load_schedule(plan({"a": {"attribute": "b[1]", "bounds": [0, 1]}})).knobs.specs["a"].attribute == "b[1]"


@pytest.mark.skipif(importlib.util.find_spec("mujoco") is None, reason="needs the extra `mujoco`")
def test_attributes_of_mujoco():
    knobs = {
        "gravity": {"attribute": "model.opt.gravity[2]", "bounds": [-20, 0]},
        "torso": {"attribute": 'model.body_mass["torso"]', "bounds": [0, 50]},
        "slide": {"attribute": "model.geom_friction[:, 0]", "kind": "factor", "bounds": [0, 2]},
        "cost": {"attribute": "_ctrl_cost_weight", "bounds": [0, 10]},
    }
    changed = {"gravity": -3, "torso": 9, "slide": 0.1, "cost": 2}
    env = DriftWrapper(gym.make("Hopper-v5"), plan(knobs, drifts=[{"at": 1, "set": changed}]))
    action = env.action_space.high
    results = []
    for episode in range(2):
        env.reset(seed=0 if episode == 0 else None)
        results.append(env.step(action)[1])
    model = env.unwrapped.model
    assert model.opt.gravity[2] == -3
    assert model.body("torso").mass[0] == 9
    assert model.geom_friction[0, 0] == pytest.approx(0.2 if model.geom_friction[0, 1] > 1 else 0.1, rel=1)
    assert results[0] - results[1] > 3  # the cost of the control alone
    with pytest.raises(ScheduleError, match=r"has no element `model.body_mass\[\"arm\"\]`.*torso"):
        DriftWrapper(gym.make("Hopper-v5"), plan({"a": {"attribute": 'model.body_mass["arm"]', "bounds": [0, 1]}}))
