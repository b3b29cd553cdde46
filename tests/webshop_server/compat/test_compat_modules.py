"""Lines of published programs run on the modules under the original's names."""

from __future__ import annotations

import logging
import random
import sys
from types import ModuleType

import pytest

from tests.processes import serving
from webshop_server.compat import WebAgentTextEnv, install, utils
from webshop_server.compat.goal import (
    get_attribute_reward,
    get_goals,
    get_option_reward,
    get_reward,
    get_type_reward,
    normalize_color_size,
)
from webshop_server.errors import ArgumentError


@pytest.fixture
def installed(monkeypatch):
    """`install`, undone at the end."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "web_agent_site"]:
        monkeypatch.delitem(sys.modules, name)
    yield install
    utils.DEFAULT_FILE_PATH = None
    for name in [name for name in sys.modules if name.partition(".")[0] == "web_agent_site"]:
        del sys.modules[name]


def buy(env, index):
    """Buy the listing of a goal with its options; the reward, and the session."""
    env.reset(index)
    session = env.server.user_sessions[env.session]
    goal = session["goal"]
    env.step(f"search[{goal['name'].lower()}]")
    env.step(f"click[{goal['asin'].lower()}]")
    wanted = goal["goal_options"]
    for value in wanted.values() if isinstance(wanted, dict) else wanted:
        env.step(f"click[{value}]")
    return env.step("click[buy now]")[1], session


def test_the_lines_of_agentbench_and_of_the_baselines(installed):
    installed()
    names = ModuleType("program")
    exec(  # as those programs begin
        "from web_agent_site.envs.web_agent_text_env import WebAgentTextEnv\n"
        "from web_agent_site.envs import WebAgentSiteEnv\nfrom web_agent_site.utils import *\n"
        "from web_agent_site.engine.engine import parse_action, END_BUTTON, load_products\n"
        "from web_agent_site.engine.goal import get_reward\nfrom web_agent_site.engine.normalize import *\n",
        vars(names),
    )
    assert (names.parse_action("click[Buy Now]")[1], names.BASE_DIR) == (names.END_BUTTON, utils.BASE_DIR)
    with pytest.warns(UserWarning, match="no goals that people wrote"):
        server = names.WebAgentTextEnv(observation_mode="text", human_goals=True).server
    env = names.WebAgentTextEnv(observation_mode="text", server=server, human_goals=True, session_prefix="a-")
    reward, session = buy(env, 3)
    assert (reward, session["done"], env.session) == (1.0, True, "a-3")
    assert session["verbose_info"]["r_type"] == 1.0
    product = server.product_item_dict[session["asin"]]
    price = server.product_prices.get(session["asin"])
    assert names.get_reward(product, session["goal"], price, session["options"]) == 1.0
    listings, by_asin, prices, by_attribute = names.load_products(None, 100)
    assert len(listings) == len(by_asin) == len(prices) == 100
    assert all(asin in by_asin for asins in by_attribute.values() for asin in asins)


def test_goals_of_listings_are_those_of_the_server(real_files, tmp_path, monkeypatch):
    monkeypatch.setenv("WEBSHOP_CACHE", str(tmp_path))
    for is_human, count in ((0, 6910), (1, 13)):
        server = WebAgentTextEnv("url", real_files[0], human_goals=is_human).server
        goals = get_goals(server.all_products, server.product_prices, is_human)
        random.Random(233).shuffle(goals)
        assert len(goals) == count
        assert [{k: v for k, v in goal.items() if k != "weight"} for goal in goals] == server.goals
        assert [goal["weight"] for goal in goals] == pytest.approx(server.weights)
    assert {goal["price_upper"] for goal in get_goals(server.all_products, None)} == {1_000_000.0}


def test_the_original_counts_actions():
    env = WebAgentTextEnv("text", num_products=400)
    _, session = buy(env, 0)
    assert session["actions"]["purchase"] == session["actions"]["asin"] == 1
    assert session["actions"]["options"] == len(session["goal"]["goal_options"])
    env.reset(0)
    session = env.server.user_sessions[env.session]
    assert session["actions"] == {}
    env.step("search[shirt]")
    env.step("click[next >]")
    env.step("click[< prev]")
    asin = next(label for label in env.get_available_actions()["clickables"] if label.startswith("b0"))
    for label in (asin, "description", "< prev", "reviews", "< prev", "< prev"):
        env.step(f"click[{label}]")
    assert session["actions"] == {"search": 4, "asin": 1, "Description": 1, "Reviews": 1}
    assert session["asins"] == {asin.upper()}
    assert session["page"] == 1


def test_an_imported_catalogue_is_the_default_after_install(installed, real_files, tmp_path, monkeypatch):
    monkeypatch.setenv("WEBSHOP_CACHE", str(tmp_path))
    installed(real_files[0])
    env = WebAgentTextEnv(observation_mode="text", human_goals=True, num_products=100)
    assert len(env.server.product_item_dict) == 100
    assert buy(env, 0)[0] == 1.0
    assert str(real_files[0]) == utils.DEFAULT_FILE_PATH


def test_parts_of_the_score():
    mug = {"query": "mugs", "product_category": "a › b › c", "name": "Blue Coffee Mug"}
    lid = {"query": "lids", "product_category": "d › b › e", "name": "Silicone Lid"}
    assert get_type_reward(mug, mug) == {
        "r_type": 1.0, "query_match": True, "category_match": True, "title_score": 1.0,
    }  # fmt: skip
    assert get_type_reward(lid, mug)["r_type"] == 0.0
    safe = {"Attributes": ["dishwasher safe"], "BulletPoints": ["Made of stoneware"], "Description": ""}
    assert get_attribute_reward(safe, {"attributes": ["dishwashers safe", "stoneware", "gold"]}) == (2 / 3, 2)
    assert get_option_reward(["navy blue", "xl"], ["xl", "blue", "pack of 2"]) == (2 / 3, 2)
    assert get_option_reward(["xl"], []) == (None, 0)
    goal = {**mug, "attributes": ["stoneware"], "goal_options": {"size": "xl"}, "price_upper": 10.0}
    assert get_reward({**mug, **safe}, goal, 20.0, {"size": "xl"}) == pytest.approx(2 / 3)
    score, parts = get_reward({**mug, **safe}, {**goal, "goal_options": []}, 5.0, {}, verbose=True)
    assert (score, parts["r_price"], "r_option" in parts) == (1.0, True, False)


def test_forms_of_sizes():
    colors, sizes = normalize_color_size([(1, "Navy Blue", "42"), (2, "plain", "3x-large"), (3, "x", "10 wide")])
    assert colors == {"N.A.": "not_matched", "navy blue": "blue", "plain": "not_matched", "x": "not_matched"}
    assert sizes == {"N.A.": "not_matched", "42": "numeric_size", "3x-large": "3x-large", "10 wide": "(.*)wide"}


def test_a_log_of_a_session(tmp_path):
    logger = utils.setup_logger("test-session", tmp_path)
    try:
        logger.info("one")
        assert (tmp_path / "test-session.jsonl").read_text(encoding="utf-8") == "one\n"
    finally:
        for handler in logger.handlers[:]:
            handler.close()
            logger.removeHandler(handler)
        logging.Logger.manager.loggerDict.pop("test-session")


@pytest.mark.integration
def test_the_browser_environment_buys(catalogue_path):
    from webshop_server.compat import WebAgentSiteEnv

    with serving(catalogue_path, "--compat") as (_, address):
        env = WebAgentSiteEnv("text", session="fixed_3", base_url=address)
        try:
            assert env.get_available_actions() == {"has_search_bar": True, "clickables": ["Search"]}
            assert env.get_instruction_text().startswith("Instruction:")
            observation = env.step("search[blouse]")[0]
            assert observation.split(" [SEP] ")[1:3] == [env.instruction_text.split("\n")[1], "Back to Search"]
            asin = next(label for label in env.get_available_actions()["clickables"] if label.startswith("B0"))
            env.step(f"click[{asin}]")
            (choice, *_) = (label for label in env.get_available_actions()["clickables"] if label.islower())
            env.step(f"click[{choice}]")
            assert choice in env.state["url"]
            assert env.step("click[no such label]")[1:] == (0.0, False, None)
            observation, reward, is_done, _ = env.step("click[Buy Now]")
            assert is_done
            assert str(reward) in observation
            env.assigned_session, names = None, set()
            for _ in range(2):
                random.seed(3)  # as two clients with one seed
                env.reset()
                names.add(env.session)
            assert len(names) == 2
        finally:
            env.close()
    with pytest.raises(ArgumentError, match="`base_url` should be the address of a server"):
        WebAgentSiteEnv(base_url=address)
