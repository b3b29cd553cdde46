"""The drift wrapper's truth: access to it, refusals, warnings, and the state that copies share."""

import copy
import pickle
import re
import warnings

import gymnasium as gym
import pytest

from drift_envs.errors import (
    ArgumentError,
    DriftWarning,
    DrivenKnobError,
    NoOracleError,
    ScheduleError,
)
from drift_envs.wrappers import DriftWrapper
from tests.drift_envs.wrappers.cars import TWICE, car, force, plan


def test_the_warning_comes_once_after_ten_rewinds():
    env = car(plan(force(0.0008, at=3)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(10):
            env.reset(seed=1)
    with pytest.warns(DriftWarning, match=re.escape('`options={"drift_clock": "continue"}`')):
        env.reset(seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(30):
            env.reset(seed=1)


def test_no_warning_for_who_sees_the_drift_or_has_none():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        env = car(plan(force(0.0008, at=1)))
        for _ in range(30):
            env.reset(seed=1)
            env.reset()
        for schedule in (None, plan(base={"force": 0.0008})):
            env = car(schedule)
            for _ in range(30):
                env.reset(seed=1)
        env = car(plan(force(0.0008, at=1)))
        for _ in range(30):
            env.reset(seed=1, options={"drift_clock": "continue"})
    assert seen == []


@pytest.mark.parametrize("notify", ["none", "change", "full"])
def test_notify_tells_the_same_keys_at_every_step(notify):
    env = car(plan(*TWICE, clock="step"), notify=notify)
    infos = [env.reset(seed=0)[1]]
    infos += [env.step(1)[4] for _ in range(4)]
    infos.append(env.reset()[1])
    keys = {
        "none": None,
        "change": {"changed"},
        "full": {"phase", "tick", "changed", "knobs"},
    }[notify]
    for info in infos:
        assert ("drift" in info) == (notify != "none")
        if keys:
            assert set(info["drift"]) == keys
    if notify != "none":
        assert [info["drift"]["changed"] for info in infos] == [False, False, False, True, False, True]
    if notify == "full":
        assert infos[3]["drift"] == {
            "phase": "weak",
            "tick": 2,
            "changed": True,
            "knobs": {"force": 0.0008, "gravity": 0.0025, "goal_position": 0.5, "transient": 0.0, "poison_after": 0},
        }


def test_driven_knobs_refuse_from_every_side():
    env = car(plan(*TWICE))
    outer = gym.wrappers.TimeLimit(env, 10)
    outer.reset(seed=0)
    for act in (
        lambda: setattr(env, "force", 1),
        lambda: setattr(env.unwrapped, "force", 0.0),
        lambda: outer.set_wrapper_attr("force", 0.0),
        lambda: env.set_wrapper_attr("force", 0.0),
    ):
        with pytest.raises(DrivenKnobError, match="`force` is driven by the schedule"):
            act()
    env.unwrapped.gravity = 0.002
    outer.set_wrapper_attr("goal_position", 0.4)
    assert env.unwrapped.goal_position == 0.4
    assert env.unwrapped.force == 0.001


def test_a_knob_is_free_without_a_schedule():
    env = car(None)
    env.reset(seed=0)
    env.unwrapped.force = 0.0005
    env.set_wrapper_attr("gravity", 0.002)
    assert env.drift_state.knobs["gravity"] == 0.002
    assert env.drift_state.phase == "source"
    assert env.schedule is None


def test_the_oracle_is_built_when_asked_for():
    calls = []
    env = car(plan(*TWICE), oracle=lambda inner: calls.append(inner) or "optimum")
    env.reset(seed=0)
    assert calls == []
    outer = gym.wrappers.TimeLimit(env, 10)
    assert outer.get_wrapper_attr("oracle") == "optimum"
    assert env.oracle == "optimum"
    assert calls == [env]
    with pytest.raises(NoOracleError, match="no oracle is known"):
        _ = car(None).oracle
    assert not car(None).has_wrapper_attr("oracle")


@pytest.mark.parametrize(
    ("schedule", "error", "message"),
    [
        (plan({"at": 1, "set": {"map": ["SG"]}}), ScheduleError, "map"),
        (plan(force(7, at=1)), ScheduleError, "[-0.01, 0.01]"),
        ("no/such/schedule", ScheduleError, "no/such/schedule"),
        (plan(knobs={"friction": {"bounds": [0, 1]}}), ScheduleError, "MountainCar declares its own knobs"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_schedules_that_do_not_fit(schedule, error, message):
    with pytest.raises(error, match=re.escape(message)):
        car(schedule)


def test_arguments_that_do_not_fit():
    with pytest.raises(ArgumentError, match=r"`notify` should be one of none, change, full\. Received 'all'"):
        car(None, notify="all")
    with pytest.raises(ArgumentError, match=r"`env` should be a single environment, a `gymnasium\.Env`\. Received 3"):
        DriftWrapper(3)


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["copy", "pickle"])
@pytest.mark.parametrize("clock", ["episode", "step", "episode_step"])
def test_clones_have_the_same_future(clone, clock):
    drifts = (*TWICE, {"rate": 0.3, "walk": {"gravity": 0.0003}}, {"at": 1, "set": {"transient": 0.3}})
    env = car(plan(*drifts, clock=clock), notify="full", oracle=str)
    env.reset(seed=3)
    assert env.oracle
    for _ in range(3):
        env.step(2)
    other = clone(env)
    for _ in range(4):
        for _ in range(3):
            one, two = env.step(2), other.step(2)
            assert one[0].tolist() == two[0].tolist()
            assert one[1:] == two[1:]
        assert env.reset()[0].tolist() == other.reset()[0].tolist()
    assert env.drift_state == other.drift_state
    assert env.drift_log == other.drift_log
    with pytest.raises(DrivenKnobError):
        other.unwrapped.force = 0.0
