"""Environments with recurring tasks: those in numbered places, and their order of tasks."""

from __future__ import annotations

import re
from collections import Counter

import gymnasium as gym
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from drift_envs.envs.house.env import House
from drift_envs.envs.tools.env import ServiceDesk
from drift_envs.errors import ArgumentError, StateError
from drift_envs.oracle.recurring import RecurringTasksOracle
from drift_envs.tasks.recurring_tasks import TaskSequence, take_turns
from drift_envs.wrappers.twin import twin

every_env = pytest.mark.parametrize("env_class", [House, ServiceDesk], ids=lambda one: one.__name__)


def draw(place: int, count: int, seed: int, without: tuple[int, ...]) -> tuple[int, ...]:
    rng = np.random.default_rng(seed)
    left = [number for number in range(100) if number not in without]
    return tuple(100 * place + int(one) for one in rng.choice(left, count, replace=False))


@given(seed=st.integers(0, 2**31), size=st.integers(1, 20), rounds=st.integers(1, 4))
def test_every_round_has_each_task_of_the_pool_once(seed: int, size: int, rounds: int) -> None:
    for order in ("shuffled", "fixed"):
        tasks, again = TaskSequence(size, order, draw, range), TaskSequence(size, order, draw, range)
        for one in (tasks, again):
            one.seed(seed)
        played = [tasks.next(3) for _ in range(rounds * size)]
        assert Counter(played) == dict.fromkeys(tasks.pool(3) or (), rounds)
        assert played == [again.next(3) for _ in played]
        assert order == "shuffled" or played[:size] == list(tasks.pool(3) or ())


def test_without_a_pool_all_tasks_of_the_place_come() -> None:
    tasks = TaskSequence(None, "shuffled", draw, lambda place: range(10 * place, 10 * place + 5))
    tasks.seed(0)
    assert tasks.pool(2) is None
    assert {tasks.next(2) for _ in range(100)} == set(range(20, 25))


@given(types=st.lists(st.sampled_from("abc"), max_size=30), seed=st.integers(0, 99))
def test_types_take_turns_until_they_are_used_up(types: list[str], seed: int) -> None:
    order = take_turns(types, ("a", "b", "c"), np.random.default_rng(seed))
    assert sorted(order) == list(range(len(types)))
    least = min(Counter(types).get(name, 0) for name in "abc")
    for start in range(0, 3 * least, 3):
        assert {types[place] for place in order[start : start + 3]} == set("abc")


@every_env
def test_wrong_use_is_refused_with_name_and_value(env_class: type[House | ServiceDesk]) -> None:
    wrong = {"render_mode": "svg", "observation_mode": "html", "order": "random", "pool": 0, "affected": 1}
    for name, value in wrong.items():
        with pytest.raises(ArgumentError, match=f"`{name}` should be"):
            env_class(**{name: value})  # type: ignore[arg-type]
    env = env_class(pool=2)
    for use in (lambda: env.episode, lambda: env.task, lambda: env.step("look")):
        with pytest.raises(StateError, match="call `reset` first"):
            use()
    env.reset(seed=1)
    for action in (5, b"look"):
        with pytest.raises(ArgumentError, match=r"`action` should be a text\. Received"):
            env.step(action)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"no keys but goal_index\. Received task"):
        env.reset(options={"task": 1})


@every_env
def test_a_task_that_no_place_has_is_refused_and_changes_nothing(env_class: type[House | ServiceDesk]) -> None:
    env = env_class(pool=2)
    env.reset(seed=1)
    before = env.goal_index, env.np_random.bit_generator.state
    with pytest.raises(ArgumentError, match=r"`goal_index` should be a (task of house|request of shop) 7, which has"):
        env.reset(seed=5, options={"goal_index": 79_999})
    assert (env.goal_index, env.np_random.bit_generator.state) == before


@pytest.mark.parametrize("env_id", ["DriftHouse-v0", "DriftTools-v0", "DriftFacts-v0", "DriftRepository-v0"])
@pytest.mark.parametrize("place", [0, 3, 123_456])
def test_the_error_for_a_number_lists_the_numbers_that_are_taken(env_id: str, place: int) -> None:
    env = gym.make(env_id)
    with pytest.raises(ArgumentError) as refused:
        env.reset(seed=0, options={"goal_index": 10_000 * place + 4_999})
    found = re.search(rf"{place}, which has (\d+) \((\d+) to (\d+)\)\. Received (\d+)$", str(refused.value))
    assert found is not None
    count, first, last, received = map(int, found.groups())
    assert (first, last, received) == (10_000 * place, first + count - 1, 10_000 * place + 4_999)
    for number in (first, last):
        env.reset(options={"goal_index": number})
        assert env.unwrapped.goal_index == number  # type: ignore[attr-defined]
    with pytest.raises(ArgumentError, match=rf"Received {last + 1}$"):
        env.reset(options={"goal_index": last + 1})


@pytest.mark.parametrize("env_id", ["DriftHouse-v0", "DriftTools-v0", "DriftWebShop-v0"])
def test_the_oracle_without_a_schedule_and_in_a_twin(env_id: str) -> None:
    env = gym.make(env_id, schedule=None, text=True, pool=2)
    state, _ = env.reset(seed=2)
    oracle = env.get_wrapper_attr("oracle")
    assert isinstance(oracle, RecurringTasksOracle)
    assert oracle.value(0) == 1.0
    second = twin(env)
    other, _ = second.reset()
    assert other == state
    assert second.step(oracle.action(state, 0))[0] == env.step(oracle.action(state, 0))[0]
