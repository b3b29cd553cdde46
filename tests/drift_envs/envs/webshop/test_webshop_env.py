"""The shop's environment: observations, actions, info, goals, knobs, and invalid arguments."""

from __future__ import annotations

import json
import re

import gymnasium as gym
import numpy as np
import pytest

import drift_envs
from drift_envs.envs.webshop.env import OBSERVATION_MODES, WEBSHOP_KNOBS, WebShop
from drift_envs.errors import ArgumentError, KnobError, ScheduleError
from webshop_server.catalogue import CatalogueWriter
from webshop_server.generate import generate
from webshop_server.oracle import best_purchase, solve
from webshop_server.product import Instruction, Option, Product

INFO = {"task", "actions", "score", "last_action_error"}


def play(env, plan):
    return [env.step(action) for action in plan]


def solve_task(env):
    """The best way from the start, of an environment that has just been reset."""
    shop = env.unwrapped
    return solve(shop.backend._shop.start(shop.goal_index))


@pytest.mark.parametrize("mode", OBSERVATION_MODES)
def test_observations_fit_their_space(make_shop, walker, mode):
    env = make_shop(observation_mode=mode)
    for episode in range(12):
        observation, info = env.reset(seed=3 if episode == 0 else None)
        for _ in range(15):
            assert env.observation_space.contains(observation)
            assert set(info) == INFO
            for action in info["actions"]:
                assert env.action_space.contains(action)
            observation, reward, terminated, truncated, info = env.step(walker.choose(info))
            assert isinstance(reward, float)
            assert 0 <= reward <= 1
            if terminated or truncated:
                break


@pytest.mark.parametrize("mode", OBSERVATION_MODES)
def test_long_pages_and_tasks_fit_their_spaces(make_shop, tmp_path, mode):
    task = Instruction("a mug " * 1000, ("soft",))
    sizes = tuple(map(str, range(60)))
    with CatalogueWriter(tmp_path / "s.sqlite") as writer:
        writer.add([Product("B1", "Mug", attributes=("soft",), options=(Option("size", sizes),), synthetic=task)])
        writer.finish("x")
    env = make_shop(None, catalogue=tmp_path / "s.sqlite", observation_mode=mode, max_length=1000)
    _, info = env.reset(seed=0)
    for action in (info["actions"][0], "click[b1]", "click[7]"):
        assert env.action_space.contains(action)
        observation, *_, info = env.step(action)
        assert info["last_action_error"] is None
        assert env.observation_space.contains(observation)


def test_the_four_modes_show_the_same_page(make_shop):
    seen = {mode: make_shop(observation_mode=mode) for mode in OBSERVATION_MODES}
    for env in seen.values():
        env.reset(seed=1)
    page = {mode: env.step("search[sofa]")[0] for mode, env in seen.items()}
    texts = page["text"].split(" [SEP] ")
    state = json.loads(page["url+text"])
    assert state["html"].split("\n") == texts
    assert state["url"] == "http://127.0.0.1:3000/search_results/<session_id>/sofa/1"
    assert "[button] Back to Search [button_]" in page["text_rich"]
    assert page["html"].startswith("<!DOCTYPE html>")
    assert all(text in re.sub(r"&gt;", ">", page["html"]).replace("&amp;", "&").replace("&#39;", "'") for text in texts)


def test_text_observations_have_the_papers_form(make_shop):
    assert make_shop(text=True).unwrapped.observation_mode == "url+text"
    assert make_shop().unwrapped.observation_mode == "text"
    assert make_shop(text=True, observation_mode="text_rich").unwrapped.observation_mode == "text_rich"


def test_actions_in_any_case_and_available_actions(make_shop):
    env = make_shop()
    env.reset(seed=0)
    assert env.unwrapped.get_available_actions() == {"has_search_bar": True, "clickables": ["search"]}
    lower = env.step("search[sofa]")[0]
    available = env.unwrapped.get_available_actions()
    assert available["has_search_bar"] is False
    assert available["clickables"][:2] == ["back to search", "next >"]
    env.step("CLICK[Back To SEARCH]")
    assert env.step(" Search[ SOFA ] ")[0] == lower


def test_admissible_actions_can_all_be_done(make_shop, walker):
    env = make_shop("webshop/relabel")
    _, info = env.reset(seed=0)
    done = 0
    for _ in range(120):
        action = str(walker.random.choice(info["actions"]))
        *_, terminated, truncated, info = env.step(action)
        assert info["last_action_error"] is None, action
        done += 1
        if terminated or truncated:
            _, info = env.reset()
    assert done == 120


@pytest.mark.parametrize(
    ("action", "error"),
    [
        ("", "`action` should be search[words] or click[label]. Received ''"),
        ("buy it", "`action` should be search[words] or click[label]. Received 'buy it'"),
        ("click[buy now]", "there is no button 'buy now' on this page"),
        ("click[search]", "a search needs words: search[words]"),
        ("search[   ]", "a search needs words: search[words]"),
        ("think[hm]", "`action` should be search[words] or click[label]. Received 'think[hm]'"),
        ("search[" + "x" * 99_993 + "]", "`action` should have at most 4096 characters. Received 100001"),
        ("click[\u2603]", "there is no button '?' on this page"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_invalid_actions_change_nothing(make_shop, action, error):
    env = make_shop(text=True)
    before, _ = env.reset(seed=0)
    observation, reward, terminated, truncated, info = env.step(action)
    assert (observation, reward, terminated, truncated) == (before, 0.0, False, False)
    assert info["last_action_error"] == error
    assert set(info["last_action_error"]) <= env.observation_space.character_set
    assert env.step("search[sofa]")[4]["last_action_error"] is None


def test_a_purchase_ends_the_episode_and_shows_the_score_alone(make_shop):
    env = make_shop(text=True)
    env.reset(seed=0)
    goal = env.unwrapped.shop.goals[env.unwrapped.goal_index]
    answers = play(env, solve_task(env))
    assert [answer[1] for answer in answers] == [0.0] * (len(answers) - 1) + [1.0]
    assert [answer[4]["score"] for answer in answers] == [answer[1] for answer in answers]
    assert [answer[2] for answer in answers] == [False] * (len(answers) - 1) + [True]
    last = json.loads(answers[-1][0])
    assert last["html"] == "Thank you for shopping with us!\nYour score (min 0.0, max 1.0)\n1.0"
    assert goal.title not in answers[-1][0]
    again = env.step("click[buy now]")
    assert (again[1], again[2]) == (0.0, True)
    assert again[4]["last_action_error"] == "the session is over: something has been bought"
    assert again[4]["score"] == 1.0
    shop = env.unwrapped
    shop.set_knobs({"transient": 1.0})
    assert shop.step("click[buy now]")[1:3] == (0.0, True)
    shop.set_knobs({"transient": 0.0})
    assert env.reset()[1]["score"] == 0.0


def test_only_the_instruction_depends_on_the_goal(make_shop):
    """Two environments whose goals differ in hidden fields alone look alike until something is bought."""
    env = make_shop(text=True, observation_mode="html")
    for episode in range(5):
        observation, info = env.reset(seed=0 if episode == 0 else None)
        goal = env.unwrapped.shop.goals[env.unwrapped.goal_index]
        assert goal.asin not in observation + str(info)
        assert goal.title not in observation + str(info)
        assert str(env.unwrapped.goal_index) not in re.findall(r"\d+", str(info["actions"]) + info["task"])


@pytest.mark.parametrize("order", ["shuffled", "fixed"])
def test_goals_recur(make_shop, order):
    schedule = {"version": 1, "name": "s", "tasks": {"pool": 4, "order": order}}
    env = make_shop(schedule)

    def goals(seed):
        found = []
        for episode in range(12):
            env.reset(seed=seed if episode == 0 else None)
            found.append(env.unwrapped.goal_index)
        return found

    first = goals(0)
    rounds = [tuple(first[start : start + 4]) for start in (0, 4, 8)]
    assert len({frozenset(one) for one in rounds}) == 1
    assert len(set(rounds[0])) == 4
    assert (len(set(rounds)) == 1) == (order == "fixed")
    assert goals(0) == first
    assert goals(1) != first
    assert set(env.unwrapped.task_pool) == set(goals(1))


def test_the_next_goal_does_not_depend_on_actions(make_shop):
    runs = []
    for steps in (0, 7):
        env = make_shop("webshop/explicit:transient")
        found = []
        for episode in range(8):
            _, info = env.reset(seed=2 if episode == 0 else None)
            found.append(info["task"])
            for _ in range(steps):
                env.step("click[nothing]")
        runs.append(found)
    assert runs[0] == runs[1]


def test_all_goals_without_a_schedule(make_shop):
    env = make_shop(None)
    env.reset(seed=0)
    assert env.unwrapped.task_pool is None
    found = set()
    for _ in range(60):
        env.reset()
        found.add(env.unwrapped.goal_index)
    assert len(found) > 50
    small = make_shop(None, pool=2, goals="color_class")
    assert {small.reset(seed=0 if n == 0 else None)[1]["task"] for n in range(6)}.__len__() == 2
    assert all("color" in small.reset()[1]["task"] for _ in range(3))


def test_goal_index(make_shop):
    env = make_shop()
    _, info = env.reset(seed=0, options={"goal_index": 7})
    assert info["task"] == env.unwrapped.shop.goals[7].text
    assert env.unwrapped.goal_index == 7
    count = len(env.unwrapped.shop.goals)
    for wrong in (-1, count, "7", True, 1.5):
        with pytest.raises(ArgumentError, match=re.escape(f"in the interval [0, {count - 1}]. Received {wrong!r}")):
            env.reset(options={"goal_index": wrong})
    with pytest.raises(ArgumentError, match=re.escape("no keys but goal_index. Received goal")):
        env.reset(options={"goal": 7})


def test_a_twin_has_the_same_task(make_shop):
    env = make_shop(text=True)
    env.reset(seed=0)
    second = drift_envs.twin(env)
    for _ in range(7):
        _, info = env.reset()
        assert second.reset()[1]["task"] == info["task"]
        plan = solve_task(env)
        assert [second.step(action)[1] for action in plan][-1] == 1.0
        assert env.unwrapped.page.text.startswith("WebShop")


def test_a_snapshot_keeps_the_current_knobs(make_shop):
    env = make_shop(text=True)
    env.reset(seed=0)
    plan = solve_task(env)
    play(env, plan[:-2])
    saved = drift_envs.snapshot(env)
    env.reset(options={"drift_tick": 20})
    saved.restore()
    assert "depth" not in env.unwrapped.page.path
    assert "Confirm your order" not in env.step("click[a]")[0]
    saved.restore()
    assert "Confirm your order" in env.step("click[b]")[0]


def test_lost_actions(make_shop):
    env = make_shop({"version": 1, "name": "t", "base": {"transient": 0.5}})
    before, _ = env.reset(seed=0)
    lost = 0
    for _ in range(400):
        page, reward, terminated, _, info = env.step("search[sofa]")
        assert (reward, terminated, info["last_action_error"]) == (0.0, False, None)
        lost += page == before
        while env.unwrapped.page.text != before:
            env.step("click[back to search]")
    assert 160 < lost < 240


def test_setting_knobs():
    env = WebShop(pool=1)
    env.reset(seed=0)
    actions = env.step("search[sofa]")[4]["actions"]
    env.button_labels = {"< Prev": "Go back"}
    item = next(name for name in actions if name.startswith("click[b0"))
    assert "Go back" in env.step(item)[0]
    assert env.read_knobs()["button_labels"] == {"< Prev": "Go back"}
    env.color_classes = {"warm": ["red"]}
    assert env.read_knobs()["color_classes"] == {"warm": ("red",), "cool": ("blue", "green")}
    with pytest.raises(KnobError, match=re.escape("`ad_right_button`: should be one of A, B, C, D, E. Received 'F'")):
        env.ad_right_button = "F"
    with pytest.raises(KnobError, match=r"`ad_labels` should be at least as many labels"):
        env.ad_labels = ["A"]
    with pytest.raises(KnobError, match="`result_order` should be one of"):
        env.result_order = "random"


def test_every_knob_changes_something(make_shop):
    """A knob without effect would be a dead option."""
    other = {
        "ad_page": True, "ad_right_button": "B", "ad_buttons": 7, "ad_labels": [*"EDCBA"], "ad_depth": 0,
        "ad_escape": True, "color_classes": {"warm": ["red"]}, "button_labels": {"Buy Now": "Take it"},
        "result_order": "price_down", "demoted": ["offer:0"], "price_factor": 3, "price_targets": ["offer:0"],
        "sold_out": ["offer:0"], "transient": 0.9, "injected": ["offer:0"], "poison_after": 2,
    }  # fmt: skip
    # `theme` changes documents alone: `test_webshop_themes.py`
    assert {*other, "theme"} == set(WEBSHOP_KNOBS)

    shop = WebShop(goals="color_class").shop
    product, index = None, -1
    while product is None or not product.group or product.offer:  # one that several sellers offer alike
        index += 1
        purchase = best_purchase(shop, shop.goals[index])
        product = shop.inventory.catalogue.product(purchase.asin)
    plan = [f"search[{purchase.words}]", f"click[{product.asin}]", "click[yellow]", "click[buy now]", "click[take it]"]
    plan += ["click[b]", "click[a]", "click[a]", "click[place order]"]
    again = [*plan[:2], "click[< prev]", *plan[1:]]

    def look(values):
        env = WebShop(goals="color_class", observation_mode="text")
        env.reset(seed=0, options={"goal_index": index})
        env.set_knobs({name: WEBSHOP_KNOBS[name].check(value) for name, value in values.items()})
        return [answer[:3] for answer in play(env, again if "poison_after" in values else plan)]

    ads = {"ad_page": True}
    for name, value in other.items():
        base = dict(ads) if name.startswith("ad_") and name != "ad_page" else {}
        if name == "price_targets":
            base["price_factor"] = 3.0
        if name == "poison_after":
            base["poison_after"] = 1000
        assert look(base) != look({**base, name: value}), name


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"observation_mode": "pixels"}, "`observation_mode` should be one of text, text_rich, html, url+text"),
        ({"backend": "telnet"}, "`backend` should be one of in_process, http, browser. Received 'telnet'"),
        ({"render_mode": "vr"}, "`render_mode` should be human, rgb_array, ansi or None. Received 'vr'"),
        ({"catalogue": "/nowhere/shop.sqlite"}, "`catalogue`: "),
        ({"catalogue": 3}, "`catalogue` should be the path of a file, or None. Received 3"),
        ({"max_length": 10}, "`max_length` should be a whole number in the interval [1000, 1000000]. Received 10"),
        ({"goals": "odd"}, "`goals` should be one of"),
        ({"native_clicks": "no"}, "`native_clicks` should be true or false. Received 'no'"),
        ({"pool": 0}, "`pool` should be a whole number in the interval [1, 1000000], or None. Received 0"),
        ({"order": "random"}, "`order` should be one of shuffled, fixed, clustered, mixed. Received 'random'"),
    ],
    ids=str,
)
def test_arguments_that_break_a_rule(arguments, message):
    with pytest.raises(ArgumentError, match=re.escape(message)):
        WebShop(**arguments)


def test_arguments_that_the_schedule_sets():
    with pytest.raises(ArgumentError, match="`pool` should not be given, since the schedule `webshop/explicit` sets"):
        gym.make("DriftWebShop-v0", pool=3)
    with pytest.raises(
        ArgumentError, match=r"got an unexpected keyword argument 'colour'.* Known: schedule, observation_mode, backend"
    ):
        gym.make("DriftWebShop-v0", colour="red")
    bad = {"version": 1, "name": "b", "drifts": [{"at": 3, "set": {"ad_right_button": "Z"}}]}
    with pytest.raises(ScheduleError, match=re.escape("drifts[0].set.ad_right_button: should be one of A, B, C, D, E")):
        gym.make("DriftWebShop-v0", schedule=bad)


def test_a_custom_catalogue(make_shop, tmp_path):
    generate(tmp_path / "shop.sqlite", 120, 5)
    env = make_shop(catalogue=str(tmp_path / "shop.sqlite"))
    env.reset(seed=0)
    assert play(env, solve_task(env))[-1][1] == 1.0
    tiny = generate(tmp_path / "tiny.sqlite", 3, 5).path
    with pytest.raises(ArgumentError, match=r"`catalogue`: .* should have color_class instructions"):
        make_shop("webshop/implicit", catalogue=str(tiny))
    env = make_shop({"version": 1, "name": "many", "tasks": {"pool": 9}}, catalogue=str(tiny))
    with pytest.raises(ArgumentError, match=r"should have 9 goals of kind synthetic that can be bought at 1\.0"):
        env.reset(seed=0)
    (tmp_path / "broken.sqlite").write_bytes(b"no database")
    with pytest.raises(ArgumentError, match=r"`catalogue`: .*broken\.sqlite"):
        gym.make("DriftWebShop-v0", catalogue=str(tmp_path / "broken.sqlite"))


def test_environments_share_one_inventory(make_shop):
    one, other = make_shop(), make_shop("webshop/implicit", text=True)
    assert one.unwrapped.shop.inventory is other.unwrapped.shop.inventory
    one.reset(seed=0)
    other.reset(seed=0)
    before = other.unwrapped.page.text
    one.step("search[sofa]")
    assert other.unwrapped.page.text == before


@pytest.mark.integration
@pytest.mark.parametrize("mode", ["rgb_array", "human", "ansi"])
def test_pictures(make_shop, mode):
    env = make_shop(render_mode=mode, overlay=False)
    env.reset(seed=0)
    first = env.render()
    env.step("search[sofa]")
    second = env.render()
    if mode == "rgb_array":
        assert first.shape == second.shape
        assert first.dtype == np.uint8
        assert not np.array_equal(first, second)
    elif mode == "ansi":
        assert "[button] Search [button_]" in first
        assert second == env.unwrapped.page.text_rich
    else:
        assert first is second is None
