"""Task shifts without drifts of the shop: groups of similar goals, one after the other."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drift_envs.envs import WebShop
from drift_envs.envs.webshop.tasks import group_texts
from drift_envs.errors import ArgumentError, ScheduleError
from drift_envs.schedule.loader import load_schedule

CLUSTERED = {
    "version": 1,
    "name": "s",
    "tasks": {"pool": 6, "order": "clustered", "clusters": 2, "repeats": 3},
}


def play_goals(env, episodes, seed=0):
    goals = []
    for episode in range(episodes):
        env.reset(seed=seed if episode == 0 else None)
        goals.append(env.unwrapped.goal_index)
    return goals


def test_one_group_comes_after_the_other(make_shop):
    env = make_shop(CLUSTERED)
    goals = play_goals(env, 36)
    groups = [goals[start : start + 9] for start in (0, 9, 18, 27)]
    for group in groups:
        assert set(Counter(group).values()) == {3}
        assert all(len(set(group[start : start + 3])) == 3 for start in (0, 3, 6)), "each once before any comes again"
    assert not set(groups[0]) & set(groups[1])
    assert set(groups[0]) == set(groups[2])
    assert set(groups[1]) == set(groups[3])
    assert set(env.unwrapped.task_pool) == set(goals)
    assert play_goals(env, 36) == goals
    assert play_goals(env, 36, seed=1) != goals


def test_mixed_has_the_goals_of_clustered_in_another_order(make_shop):
    mixed, shifted = make_shop("webshop/task-shift:mixed"), make_shop("webshop/task-shift")
    for seed in (0, 1):
        goals, others = play_goals(mixed, 60, seed), play_goals(shifted, 60, seed)
        assert Counter(goals) == Counter(others)
        assert set(Counter(goals).values()) == {4}
        rounds = [goals[start : start + 15] for start in (0, 15, 30, 45)]
        assert all(len(set(one)) == 15 for one in rounds), "each once before any comes again"
        assert rounds[0] != rounds[1]
        groups = [set(others[start : start + 20]) for start in (0, 20, 40)]
        assert all(group & set(goals[:20]) for group in groups), "all kinds of tasks from the beginning"


def test_goals_of_a_group_are_similar(make_shop):
    env = make_shop("webshop/task-shift")
    shop = env.unwrapped.shop
    within, across = [], []
    for seed in range(3):
        goals = [set(shop.goals[g].product_category.split(" › ")) for g in play_goals(env, 60, seed)]
        for first in range(0, 60, 4):
            for second in range(first + 1, 60, 4):
                shared = len(goals[first] & goals[second])
                (within if first // 20 == second // 20 else across).append(shared)
    assert sum(within) / len(within) > 2 * sum(across) / len(across)


@given(st.lists(st.text("abc ", max_size=12), min_size=1, max_size=20), st.integers(1, 4), st.integers(1, 4))
def test_groups_are_disjoint_and_of_equal_size(texts, groups, size):
    if len(texts) < groups * size:
        with pytest.raises(ArgumentError, match="texts"):
            group_texts(texts, groups, size)
        return
    found = group_texts(texts, groups, size)
    assert [len(group) for group in found] == [size] * groups
    assert len({place for group in found for place in group}) == groups * size
    assert found == group_texts(texts, groups, size)


def test_outliers_are_in_no_group():
    texts = ["red shoe", "odd thing", "red big shoe", "brass lamp", "tall brass lamp"]
    assert group_texts(texts, 2, 2) == ((0, 2), (3, 4))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"order": "clustered", "pool": 5, "clusters": 2}, "`pool` should be a multiple of `clusters`"),
        ({"order": "mixed", "pool": 5, "clusters": 2}, "where `order` is mixed. Received 5 and 2"),
        ({"order": "clustered"}, "`pool` should be a multiple of `clusters`"),
        ({"clusters": 0}, "`clusters` should be a whole number in the interval [1, 1000000]. Received 0"),
        ({"repeats": True}, "`repeats` should be a whole number in the interval [1, 1000000]. Received True"),
    ],
    ids=str,
)
def test_groups_that_cannot_be_filled_are_refused(arguments, message):
    with pytest.raises(ArgumentError, match=re.escape(message)):
        WebShop(**arguments)


@pytest.mark.parametrize("order", ["clustered", "mixed"])
def test_a_schedule_whose_groups_cannot_be_filled_is_refused(order):
    tasks = {"pool": 5, "order": order, "clusters": 3}
    with pytest.raises(ScheduleError, match=f"`pool` should be a multiple of `clusters` where `order` is {order}"):
        load_schedule({**CLUSTERED, "tasks": tasks})
