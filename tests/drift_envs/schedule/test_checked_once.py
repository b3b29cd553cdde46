"""A schedule is checked against a table of knobs once: `load_schedule` returns it, later users trust it."""

import copy
import pickle
from dataclasses import replace

import gymnasium as gym
import pytest

from drift_envs.errors import ScheduleError
from drift_envs.knobs import KnobTable
from drift_envs.registration import knob_table_of
from drift_envs.schedule import load_schedule, loader
from tests.core_ids import CORE_IDS

CONTENT = {"version": 1, "name": "thaw", "drifts": [{"at": 3, "set": {"slip": 1}}]}


@pytest.fixture
def count_checks(monkeypatch):
    """The number of times that knobs were checked so far."""
    checked = []

    def counting(data, table):
        checked.append(data["name"])
        return found(data, table)

    found = loader.knob_findings
    monkeypatch.setattr(loader, "knob_findings", counting)
    return lambda: len(checked)


@pytest.mark.parametrize("env_id", CORE_IDS)
@pytest.mark.parametrize("text", [False, True])
def test_an_environment_checks_its_schedule_once(env_id, text, count_checks):
    env = gym.make(env_id, text=text)
    assert count_checks() == 1
    schedule = env.get_wrapper_attr("schedule")
    other = gym.make(env_id, schedule=schedule)
    assert count_checks() == 1
    assert other.get_wrapper_attr("schedule") is schedule
    env.close()
    other.close()


def test_a_schedule_is_checked_once_for_two_environments(count_checks):
    schedule = load_schedule(CONTENT)
    for _ in range(2):
        assert gym.make("DriftFrozenLake-v0", schedule=schedule).get_wrapper_attr("schedule") is schedule
    assert count_checks() == 1


def test_a_checked_schedule_comes_back_as_it_is():
    table = knob_table_of("DriftFrozenLake-v0")
    schedule = load_schedule(CONTENT, table=table)
    assert load_schedule(schedule, table=table) is schedule
    assert load_schedule(schedule, table=knob_table_of("DriftFrozenLake-v0")) is schedule
    assert load_schedule(schedule) == schedule


@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, lambda schedule: pickle.loads(pickle.dumps(schedule)), lambda s: s.model_copy()],
    ids=["copy", "deepcopy", "pickle", "model_copy"],
)
def test_a_copy_is_equal_and_checked_again(copied, count_checks):
    table = knob_table_of("DriftFrozenLake-v0")
    schedule = load_schedule(CONTENT, table=table)
    other = copied(schedule)
    assert other == schedule
    assert hash(other) == hash(schedule)
    load_schedule(other, table=table)
    assert count_checks() == 2


def test_a_changed_copy_is_refused():
    table = knob_table_of("DriftFrozenLake-v0")
    schedule = load_schedule(CONTENT, table=table)
    with pytest.raises(ScheduleError, match="slipp"):
        load_schedule(schedule.model_copy(update={"base": {"slipp": 1}}), table=table)


def test_another_table_is_another_check():
    table = knob_table_of("DriftFrozenLake-v0")
    schedule = load_schedule(CONTENT, table=table)
    narrow = KnobTable(tuple(replace(k, bounds=(0.0, 0.5)) if k.name == "slip" else k for k in table.knobs), table.rule)
    with pytest.raises(ScheduleError, match="should be in the interval"):
        load_schedule(schedule, table=narrow)
    with pytest.raises(ScheduleError, match="slip"):
        load_schedule(schedule, table=knob_table_of("DriftMountainCar-v0"))
    other_default = KnobTable(
        tuple(replace(k, default=("SG",)) if k.name == "map" else k for k in table.knobs), table.rule
    )
    assert not schedule.fits(other_default)
    with_map = load_schedule({**CONTENT, "base": {"map": ["SFG"]}}, table=table)
    assert with_map.fits(other_default)
