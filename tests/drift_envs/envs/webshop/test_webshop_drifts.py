"""Drifts of the shop, their visibility, and the oracle."""

from __future__ import annotations

import json
from itertools import pairwise, permutations

import gymnasium as gym
import numpy as np
import pytest

from drift_envs.envs.webshop.env import WebShop, to_settings
from drift_envs.envs.webshop.oracle import ShopOracle
from drift_envs.envs.webshop.tasks import check_goal, score_repetition
from drift_envs.errors import ArgumentError, DriftWarning
from drift_envs.schedule import shipped_schedules
from drift_envs.schedule.loader import load_schedule
from tests.core_ids import by_file
from webshop_server.generate import generate
from webshop_server.goals import GoalSet
from webshop_server.oracle import best_purchase, best_purchases, solve
from webshop_server.settings import Settings
from webshop_server.shop import Shop

NAMES = [name for name in shipped_schedules() if name.startswith("webshop/")]
PLAYED = [(number % 4, name) for number, name in enumerate(NAMES)]
"""Schedules with a seed of their own."""
SEEDS = range(4)


def phases(env):
    return env.get_wrapper_attr("timeline").phases(100)


def play(env, oracle, tick, most=30):
    """Play an episode with the oracle's actions."""
    state, info = env.reset(options={"drift_tick": tick})
    for _ in range(most):
        state, reward, terminated, truncated, info = env.step(oracle.action(state, tick))
        if terminated or truncated:
            return reward, info
    return 0.0, info


@pytest.mark.integration
@pytest.mark.parametrize(("seed", "name"), by_file(PLAYED))
def test_the_oracle_scores_one_in_every_phase(make_shop, seed, name):
    env = make_shop(name, text=True)
    env.reset(seed=seed)
    oracle = env.get_wrapper_attr("oracle")
    for phase in phases(env):
        for _ in range(5):
            assert play(env, oracle, phase.start)[0] == 1.0
        assert 0.999 < oracle.value(phase.start) <= 1.0


@pytest.mark.integration
@pytest.mark.parametrize(
    ("seed", "name"),
    by_file((number % 4, name) for number, name in enumerate(NAMES) if not load_schedule(name).control),
)
def test_every_drift_lowers_the_score_of_old_optimal_policies(make_shop, seed, name):
    """All ties: every listing that paid 1.0, however it is bought again."""
    env = make_shop(name)
    env.reset(seed=seed)
    base = env.unwrapped
    knobs = env.get_wrapper_attr("knobs_at")
    for before, after in pairwise(phases(env)):
        old, new = to_settings(knobs(before.start)), to_settings(knobs(after.start))
        for number in base.task_pool:
            goal = base.shop.goals[number]
            found = best_purchases(base.shop, goal, old)
            assert found
            assert found[0].score.reward == 1.0
            for purchase in found:
                plan = solve(Shop(base.shop.inventory, old).start(goal), purchase)
                session = Shop(base.shop.inventory, new).start(goal)
                for action in plan:
                    session.act(action)
                assert session.reward <= 0.95


@pytest.mark.integration
def test_a_wrong_colour_scores_three_quarters(make_shop):
    env = make_shop("webshop/implicit", text=True)
    for seed in SEEDS:
        env.reset(seed=seed)
        oracle = env.get_wrapper_attr("oracle")
        effect = oracle.effect(0, 20)
        assert (effect.before, effect.carried, effect.after) == (1.0, 0.75, 1.0)
        for episode in range(5):
            _, info = env.reset(options={"drift_tick": 20 + episode})
            assert "in a warm color" in info["task"]
            yellow = oracle.action  # as it would have been right before
            state, reward = env.unwrapped._observe(), 0.0
            while not reward:
                state, reward, *_ = env.step(yellow(state, 0))
            assert reward == 0.75


def test_pages_do_not_depend_on_the_right_button(make_shop):
    seen = set()
    for label in "ABCDE":
        env = make_shop({"version": 1, "name": "a", "base": {"ad_page": True, "ad_right_button": label}}, text=True)
        env = make_shop(
            {"version": 1, "name": "a", "base": {"ad_page": True, "ad_right_button": label}}, observation_mode="html"
        )
        env.reset(seed=0)
        base = env.unwrapped
        plan = solve(base.backend._shop.start(base.goal_index))
        answers = [env.step(action) for action in plan[: plan.index("click[buy now]") + 1]]
        seen.add(json.dumps([(answer[0], answer[4]) for answer in answers]))
    assert len(seen) == 1


@pytest.mark.integration
@pytest.mark.parametrize("pick", range(3))
def test_labels_and_positions_of_the_right_button(make_shop, pick):
    """An agent without memory that picks by place (or label) wins once in n environments, whatever stands where."""
    labels = ["A", "B", "C"]
    for by_place in (True, False):
        won = []
        for shown in permutations(labels):
            for right in labels:
                base = {"ad_page": True, "ad_buttons": 3, "ad_labels": list(shown), "ad_right_button": right}
                env = make_shop({"version": 1, "name": "p", "base": base})
                env.reset(seed=0)
                shop = env.unwrapped
                for action in solve(shop.backend._shop.start(shop.goal_index)):
                    if env.unwrapped.page.path.startswith("/ad/"):
                        action = f"click[{(shown if by_place else labels)[pick]}]"
                    _, reward, *_ = env.step(action)
                won.append(reward)
        assert won.count(1.0) == len(won) / 3


def test_no_button_leaves_the_advertisements_of_the_explicit_schedule(make_shop):
    env = make_shop("webshop/explicit", max_episode_steps=30)
    env.reset(seed=0)
    shop = env.unwrapped
    plan = solve(shop.backend._shop.start(shop.goal_index))
    for action in plan[: plan.index("click[a]")]:
        env.step(action)
    env.step("click[b]")
    truncated, buttons = False, 0
    while not truncated:
        assert env.unwrapped.page.path.startswith("/ad/")
        _, reward, terminated, truncated, _ = env.step(f"click[{'abcde'[buttons % 5]}]")
        assert (reward, terminated) == (0.0, False)
        buttons += 1
    assert buttons > 20


def test_every_drift_affects_the_goals_of_the_pool(make_shop):
    env = make_shop("webshop/soldout")
    env.reset(seed=0)
    base = env.unwrapped
    knobs = env.get_wrapper_attr("knobs_at")
    steps = [to_settings(knobs(tick)) for tick in (0, 20)]
    assert all(check_goal(base.shop, base.shop.goals[number], steps) == (True, True) for number in base.task_pool)
    judged = [check_goal(base.shop, base.shop.goals[number], steps) for number in range(60)]
    assert (False, False) not in [one for one in judged if one[1]]
    assert {(True, True), (True, False)} <= set(judged)
    for number, (_, is_touched) in enumerate(judged):
        goal = base.shop.goals[number]
        paid = [score_repetition(base.shop, goal, one, steps[1]) for one in best_purchases(base.shop, goal, steps[0])]
        assert is_touched == (max(paid) <= 0.95)


@pytest.mark.integration
def test_unaffected_goals_fill_a_pool(make_shop, tmp_path):
    schedule = {"version": 1, "name": "u", "drifts": [{"at": 5, "set": {"sold_out": ["seller:absent"]}}]}
    env = make_shop(schedule)
    with pytest.warns(DriftWarning, match="only 0 of the 5 goals are touched by every drift"):
        env.reset(seed=0)
    assert len(env.unwrapped.task_pool) == 5
    generate(tmp_path / "small.sqlite", 60, 0)
    dear = {"version": 1, "name": "d", "drifts": [{"at": 5, "set": {"price_factor": 100}}]}
    env = make_shop(dear, catalogue=str(tmp_path / "small.sqlite"))
    with pytest.raises(ArgumentError, match=r"can be bought at 1\.0 in every phase of the schedule\. Found 0 among"):
        env.reset(seed=0)


class TestOracle:
    """The oracle against the shop itself."""

    @pytest.mark.integration
    @pytest.mark.parametrize("name", by_file(NAMES))
    def test_its_responses_equal_the_environments(self, make_shop, walker, name):
        env = make_shop(name, text=True)
        env.reset(seed=1)
        oracle = env.get_wrapper_attr("oracle")
        lies = 0
        for phase in phases(env):
            state, info = env.reset(options={"drift_tick": phase.start})
            for _ in range(60):
                action = walker.choose(info)
                after, reward, ended, truncated, info = env.step(action)
                answers = oracle.response(state, action, phase.start)
                assert sum(answer.probability for answer in answers) == pytest.approx(1.0)
                assert (after, reward, ended) in [answer[:3] for answer in answers], action
                if (after, reward, ended) == answers[0][:3]:
                    assert oracle.holds(state, action, after, ended, phase.start)
                    assert not oracle.holds(state, action, after, not ended, phase.start)
                else:
                    lies += 1
                    assert not oracle.holds(state, action, after, ended, phase.start)
                state = after
                if ended or truncated:
                    state, info = env.reset(options={"drift_clock": "hold"})
        assert (lies > 0) == bool(load_schedule(name).base.get("transient"))

    def test_changed(self, make_shop):
        env = make_shop(text=True)
        state, _ = env.reset(seed=0)
        oracle = env.get_wrapper_attr("oracle")
        while "/ad/" not in state:
            action = oracle.action(state, 0)
            assert not oracle.changed(state, action, 0, 20)
            state = env.step(action)[0]
        changed = [label for label in "abcde" if oracle.changed(state, f"click[{label}]", 0, 20)]
        assert changed == ["a", "b"]
        assert not oracle.changed(state, "click[a]", 20, 40)
        deeper = env.step("click[b]")[0]
        assert not any(oracle.changed(deeper, f"click[{label}]", 0, 20) for label in "abcde")

    def test_it_buys_from_any_page(self, make_shop, walker):
        base = {"ad_page": True, "ad_right_button": "A"}
        env = make_shop({"extends": "webshop/explicit", "name": "p", "base": base}, text=True)
        env.reset(seed=0)
        oracle = env.get_wrapper_attr("oracle")
        won = 0
        for _ in range(40):
            state, info = env.reset(options={"drift_clock": "hold"})
            for _ in range(8):
                if info["actions"]:
                    state, reward, ended, _, info = env.step(walker.choose(info))
            while not ended and not json.loads(state)["html"].startswith("Thank you"):
                state, reward, ended, truncated, info = env.step(oracle.action(state, 0))
                won += reward == 1.0
                if truncated:
                    break
        assert won >= 30

    @pytest.mark.integration
    def test_the_value_with_lost_actions(self):
        schedule = {"version": 1, "name": "t", "base": {"transient": 0.4}}
        env = gym.make("DriftWebShop-v0", schedule=schedule, text=True, max_episode_steps=10)
        env.reset(seed=0)
        shop = env.unwrapped
        oracle = ShopOracle(env.get_wrapper_attr("oracle")._source, shop.shop, lambda: shop.task_pool, limit=10)
        won = [play(env, oracle, 0, 10)[0] for _ in range(400)]
        error = 4 * np.std(won) / 20
        assert abs(oracle.value(0) - np.mean(won)) < max(error, 0.02)

    @pytest.mark.parametrize("state", ["", "{}", "[]", '{"html": "x", "url": "/a"}', 3, None], ids=repr)
    def test_invalid_states(self, make_shop, state):
        env = make_shop(text=True)
        env.reset(seed=0)
        with pytest.raises(ArgumentError, match="`state` should be a JSON text with `html` and `url`"):
            env.get_wrapper_attr("oracle").action(state, 0)

    @pytest.mark.integration
    def test_unreachable_pages(self, make_shop):
        env = make_shop(text=True)
        state, _ = env.reset(seed=0)
        oracle = env.get_wrapper_attr("oracle")
        start = json.loads(state)
        for path in ("/item_page/<session_id>/B0NOTHING0/a/1/%7B%7D", "/done/<session_id>/B0/%7B%7D", "/what/is/this"):
            with pytest.raises(ArgumentError, match="`state` should be"):
                oracle.action(json.dumps({**start, "url": f"http://127.0.0.1:3000{path}"}), 0)
        other = json.dumps({**start, "html": start["html"].replace("Find me", "Lose me")})
        with pytest.raises(ArgumentError, match="`state` should show an instruction of this shop"):
            oracle.action(other, 0)

    @pytest.mark.integration
    def test_all_goals_are_made_once_for_the_oracles_of_a_shop(self, make_shop, monkeypatch):
        for goal_index in (4321, 4322):
            env = make_shop("webshop/null", text=True)
            state, _ = env.reset(seed=0, options={"goal_index": goal_index})
            assert env.get_wrapper_attr("oracle").action(state, 0).startswith("search[")
            monkeypatch.setattr(GoalSet, "__iter__", lambda goals: pytest.fail("all goals are made again"))


def test_the_best_purchase_is_among_the_best():
    shop = WebShop().shop
    for number in range(40):
        goal = shop.goals[number]
        found = best_purchases(shop, goal)
        assert best_purchase(shop, goal) in found
        assert len({purchase.place // 10 for purchase in found}) == 1
        assert len({(purchase.asin, purchase.options) for purchase in found}) == len(found)


def test_all_colours_of_a_class_are_best_purchases():
    shop = WebShop(goals="color_class").shop
    settings = Settings(color_classes={"warm": ["yellow", "red"]})
    goal = next(goal for goal in shop.goals if goal.color_class == "warm")
    found = [purchase for purchase in best_purchases(shop, goal, settings) if purchase.asin == goal.asin]
    assert {value for purchase in found for _, value in purchase.options} == {"yellow", "red"}
    assert check_goal(shop, goal, [settings, Settings(color_classes={"warm": ["red"]})]) == (True, False)
    assert check_goal(shop, goal, [settings, Settings(color_classes={"warm": ["orange"]})]) == (True, True)
