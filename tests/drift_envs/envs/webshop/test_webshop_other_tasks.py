"""Goals outside the pool, for training on other tasks than those of the test."""

from __future__ import annotations

import gymnasium as gym
import pytest

from drift_envs.errors import ArgumentError


@pytest.mark.integration
@pytest.mark.parametrize("schedule", ["webshop/explicit", "webshop/implicit"])
def test_other_tasks_are_disjoint_and_depend_on_the_seed_alone(schedule: str) -> None:
    env = gym.make("DriftWebShop-v0", schedule=schedule, text=True)
    env.reset(seed=3)
    shop = env.unwrapped
    pool, others = shop.task_pool, shop.other_tasks(7)
    assert len(set(others)) == 7
    assert not set(others) & set(pool)
    titles = [shop.shop.goals[number].title for number in (*pool, *others)]
    assert len(set(titles)) == len(titles), "no listing twice: who has bought one has not bought another"
    env.reset()
    assert shop.other_tasks(7) == others
    assert shop.task_pool == pool, "asking for them leaves the pool and its order alone"
    env.reset(seed=4)
    assert shop.other_tasks(7) != others
    oracle = env.get_wrapper_attr("oracle")
    state, _ = env.reset(options={"goal_index": others[0], "drift_tick": 0})
    done, score = False, 0.0
    while not done:
        state, score, done, _, _ = env.step(oracle.action(state, 0))
    assert score == 1.0, "they can be bought like those of the pool"


def test_other_tasks_do_not_change_the_order_of_the_pool() -> None:
    orders = []
    for asks in (False, True):
        env = gym.make("DriftWebShop-v0", schedule="webshop/explicit", text=True)
        env.reset(seed=0)
        if asks:
            env.unwrapped.other_tasks(3)
        order = []
        for _ in range(8):
            env.reset()
            order.append(env.unwrapped.goal_index)
        orders.append(order)
    assert orders[0] == orders[1]


@pytest.mark.integration
def test_more_other_tasks_than_goals() -> None:
    env = gym.make("DriftWebShop-v0", schedule="webshop/implicit", text=True)
    env.reset(seed=0)
    with pytest.raises(ArgumentError, match="should have 5000 goals"):
        env.unwrapped.other_tasks(5000)
