"""Environments with recurring tasks: those in numbered places, and their order of tasks."""

from __future__ import annotations

from collections import Counter

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from drift_envs.envs.house.env import House
from drift_envs.envs.tools.env import ServiceDesk
from drift_envs.errors import ArgumentError, StateError
from drift_envs.task_sequence import TaskSequence, take_turns

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
def test_a_render_mode_order_or_pool_that_does_not_exist_is_refused(env_class: type[House | ServiceDesk]) -> None:
    for options in ({"render_mode": "x"}, {"observation_mode": "x"}, {"order": "x"}, {"pool": 0}, {"affected": 1}):
        with pytest.raises(ArgumentError, match=f"`{next(iter(options))}` should be"):
            env_class(**options)  # type: ignore[arg-type]


@every_env
def test_before_the_first_reset_there_is_no_episode(env_class: type[House | ServiceDesk]) -> None:
    env = env_class()
    for use in (lambda: env.episode, lambda: env.task, lambda: env.step("look")):
        with pytest.raises(StateError, match="call `reset` first"):
            use()


@every_env
def test_a_task_that_no_place_has_is_refused_and_changes_nothing(env_class: type[House | ServiceDesk]) -> None:
    env = env_class(pool=2)
    env.reset(seed=1)
    before = env.goal_index, env.np_random.bit_generator.state
    with pytest.raises(ArgumentError, match="`goal_index` should be"):
        env.reset(seed=5, options={"goal_index": 9_999})
    assert (env.goal_index, env.np_random.bit_generator.state) == before
