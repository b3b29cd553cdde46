"""What TRL's trainer calls; `tests/extras/trl` has the trainer itself."""

from __future__ import annotations

import inspect
import json
import re

import pytest

from drift_envs.errors import ArgumentError
from drift_envs.integrations.trl import OVER, LifetimeRollout, lifetime_rows

SCHEDULES = ["frozen_lake/explicit:family", "webshop/explicit", "house/explicit", "tools/explicit"]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_model_is_shown_no_drift(schedule):
    (row,) = lifetime_rows([schedule], 1, first_seed=3)
    rollout = LifetimeRollout(rounds=1)
    texts = [json.dumps(row["prompt"]), rollout.reset(**row), LifetimeRollout.act.__doc__]
    while texts[-1] != OVER:
        texts.append(rollout.act("no action"))
    assert len(texts) > 8
    words = {"phase", "tick", "drift", "seed", "source", schedule.rpartition("/")[2]}
    assert not [text for text in texts if words & set(re.findall(r"[a-z:_-]+", text.lower()))]


def test_an_early_end_gains_nothing(tmp_path):
    """Where the clock counts steps, no plan says how many episodes there are."""
    schedule = {"version": 1, "name": "step", "env": "DriftFrozenLake-v0", "clock": "step", "base": {"map": ["SG"]}}
    path = tmp_path / "step.yaml"
    path.write_text(json.dumps(schedule), encoding="utf-8")
    rollout = LifetimeRollout(episodes=4)
    rollout.reset(schedule=str(path), seed=0)
    rollout.act("2")
    assert rollout.get_reward() == 0.25


def test_a_rollout_can_be_used_again():
    rollout, fresh = LifetimeRollout(rounds=1), LifetimeRollout(rounds=1)
    row = {"schedule": "frozen_lake/explicit:family", "seed": 7, "prompt": []}
    first = [rollout.reset(**row), *(rollout.act(str(number % 4)) for number in range(50))]
    assert [rollout.reset(**row), *(rollout.act(str(number % 4)) for number in range(50))] == first
    assert [fresh.reset(**row), *(fresh.act(str(number % 4)) for number in range(50))] == first


def test_the_only_tool_is_act():
    """The trainer gives every public method but two to the model."""
    public = [name for name, _ in inspect.getmembers(LifetimeRollout, inspect.isfunction) if not name.startswith("_")]
    assert sorted(public) == ["act", "get_reward", "reset"]


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [(([], 1), "at least one schedule"), (("lake", 1), "a list"), ((["frozen_lake/null"], 0), "`lifetimes`")],
)
def test_mistakes_name_the_rule(arguments, rule):
    with pytest.raises(ArgumentError, match=rule):
        lifetime_rows(*arguments)


def test_a_schedule_without_an_environment_is_refused(tmp_path):
    path = tmp_path / "nowhere.yaml"
    path.write_text("version: 1\ndrifts: [{at: 3, set: {slip: 0.5}}]\n", encoding="utf-8")
    with pytest.raises(ArgumentError, match="`env`"):
        LifetimeRollout().reset(schedule=str(path), seed=0)
