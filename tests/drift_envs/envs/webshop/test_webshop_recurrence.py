"""Goals recur, also if every episode has its own seed."""

from __future__ import annotations

import gymnasium as gym

import drift_envs  # noqa: F401


def test_a_seed_that_does_not_rewind_keeps_the_pool() -> None:
    env = gym.make("DriftWebShop-v0", schedule="webshop/explicit", text=True)
    env.reset(seed=0)
    tasks = [env.reset(seed=100 + i, options={"drift_clock": "continue"})[1]["task"] for i in range(14)]
    assert len(set(tasks)) == 5
    assert len(set(tasks[4:9])) == 5, "every goal of the pool comes once in each round of the order"


def test_a_seed_that_rewinds_draws_the_same_pool_again() -> None:
    env = gym.make("DriftWebShop-v0", schedule="webshop/explicit", text=True)

    def first(seed: int) -> list[str]:
        tasks = [env.reset(seed=seed)[1]["task"]]
        return [*tasks, *(env.reset(seed=i, options={"drift_clock": "continue"})[1]["task"] for i in range(4))]

    one, other = first(0), first(1)
    assert first(0) == one
    assert set(one) != set(other)
