"""The held-out shop: another catalogue, and no goal that the default one has."""

from __future__ import annotations

import gymnasium as gym
import pytest

from drift_envs.envs.webshop.tasks import HELD_OUT_SEED, list_development_texts
from drift_envs.errors import ArgumentError
from drift_envs.schedule.loader import load_schedule
from tests.core_ids import by_file
from webshop_server.inventory import Inventory

pytestmark = pytest.mark.integration

SCHEDULES = ["webshop/explicit", "webshop/implicit", "webshop/soldout", "webshop/explicit:transient"]


@pytest.mark.parametrize("kind", ["color_class", pytest.param("synthetic", marks=pytest.mark.slow)])
def test_catalogues_share_goals_so_that_excluding_them_matters(kind: str) -> None:
    texts = list_development_texts(kind)
    shared = [goal for goal in Inventory.default(seed=HELD_OUT_SEED).goals(kind) if goal.text in texts]
    assert len(shared) > 50


@pytest.mark.parametrize("name", by_file(SCHEDULES))
def test_goals_are_none_of_the_default_catalogue(make_shop, name: str) -> None:
    env = make_shop(f"{name}{'-' if ':' in name else ':'}held-out", text=True)
    shop = env.unwrapped
    texts = list_development_texts(shop.shop.goal_kind)
    for seed in range(1000, 1015):
        shop.reset(seed=seed)
        for number in (*shop.task_pool, *shop.other_tasks(5)):
            goal = shop.shop.goals[number]
            assert goal.text not in texts
            assert goal.title not in texts


def test_draws_without_a_pool_exclude_them_too() -> None:
    shop = gym.make("DriftWebShop-v0", schedule=None, held_out=True).unwrapped
    texts = list_development_texts("synthetic")
    shop.reset(seed=0)
    for _ in range(200):
        _, info = shop.reset()
        assert info["task"] not in texts


@pytest.mark.parametrize("name", SCHEDULES)
def test_drifts_are_those_of_the_default_shop(name: str) -> None:
    default, held_out = load_schedule(name), load_schedule(f"{name}{'-' if ':' in name else ':'}held-out")
    assert held_out.base == default.base
    assert held_out.drifts == default.drifts
    assert held_out.tasks == default.tasks.model_copy(update={"held_out": True})


@pytest.mark.parametrize("name", SCHEDULES)
def test_goals_can_be_bought_in_every_phase(make_shop, name: str) -> None:
    env = make_shop(f"{name}{'-' if ':' in name else ':'}held-out", text=True)
    oracle = env.get_wrapper_attr("oracle")
    for tick in (0, 20, 40):
        env.reset(seed=1000)
        for goal in env.unwrapped.task_pool:
            state, info = env.reset(options={"goal_index": goal, "drift_tick": tick})
            done, score = False, 0.0
            while not done:
                state, score, done, _, info = env.step(oracle.action(state, tick))
            assert info["score"] == score == 1.0


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [({"held_out": 1}, "true or false"), ({"held_out": True, "catalogue": "shop.sqlite"}, "not be given with")],
)
def test_wrong_arguments(arguments: dict[str, object], rule: str) -> None:
    with pytest.raises(ArgumentError, match=rule):
        gym.make("DriftWebShop-v0", schedule=None, **arguments)
