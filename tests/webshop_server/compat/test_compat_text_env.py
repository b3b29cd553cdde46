"""The original's text environment: its arguments, methods, four values and texts."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from webshop_server.compat import WebAgentTextEnv, listings
from webshop_server.compat.envs import MODES, SimServer
from webshop_server.errors import ArgumentError, CatalogueError, ShopError
from webshop_server.importer import import_products


@pytest.fixture(scope="module")
def server():
    return SimServer(num_products=400)


def make(server, mode="text", **options):
    return WebAgentTextEnv(observation_mode=mode, server=server, **options)


def shop(env, number):
    """Buy the goal's own listing with its own options, by actions alone; the values of the last step."""
    env.reset(session=number)
    goal = env.server.goals[number]
    env.step(f"search[{goal['name']}]")
    for _ in range(5):
        if goal["asin"].lower() not in env.get_available_actions()["clickables"]:
            env.step("click[next >]")
    env.step(f"click[{goal['asin'].lower()}]")
    for value in goal["goal_options"].values():
        env.step(f"click[{value}]")
    return env.step("click[buy now]")


def test_a_goal_can_be_bought(server):
    env = make(server)
    for number in range(8):
        observation, reward, done, info = shop(env, number)
        assert (reward, done, info) == (1.0, True, None)
        assert observation.startswith("Thank you for shopping with us! [SEP] ")
        assert server.user_sessions[str(number)]["done"] is True
        assert server.goals[number]["asin"] not in observation  # the answer is not on the page


def test_texts_are_the_originals(server):
    env = make(server)
    first, info = env.reset(session=3)
    text = server.goals[3]["instruction_text"]
    assert (first, info) == (f"WebShop [SEP] Instruction: [SEP] {text} [SEP] Search", None)
    assert env.get_instruction_text() == f"Instruction: {text}"
    results = env.step("search[Red Mug]")[0].split(" [SEP] ")
    assert results[:3] == ["Instruction:", text, "Back to Search"]
    assert re.fullmatch(r"Page 1 \(Total results: \d+\)", results[3])
    assert env.get_available_actions()["clickables"][0] == "back to search"
    asin = next(label for label in env.get_available_actions()["clickables"] if label.startswith("b0"))
    env.step(f"click[{asin}]")
    labels = env.get_available_actions()["clickables"]
    assert labels[:2] == ["back to search", "< prev"]
    options = labels[labels.index("buy now") + 1 :]  # options come last, as in the original
    assert options == [
        value for values in server.product_item_dict[asin.upper()]["options"].values() for value in values
    ]


def test_results_have_no_last_page(server):
    env = make(server)
    env.reset(session=0)
    results = env.step("search[shirt]")[0].split(" [SEP] ")
    for page in range(2, 8):
        shown = env.step("click[next >]")[0].split(" [SEP] ")
        assert shown[3] == results[3].replace("Page 1", f"Page {page}")
        assert shown[4:6] == ["< Prev", "Next >"]
    assert shown[6:] == []


@pytest.mark.parametrize("mode", MODES)
def test_modes(server, mode):
    env = make(server, mode)
    shown = [env.reset(session=0)[0]]
    for action in ("search[shirt cotton]", "click[back to search]"):
        shown.append(env.step(action)[0])
    if mode == "url":
        assert shown == [f"{env.base_url}/0", f"{env.base_url}/search_results/0/shirt+cotton/1", f"{env.base_url}/0"]
    elif mode == "html":
        assert 'id="search_input"' in shown[0]
        assert 'class="product-link"' in shown[1]
    else:
        assert shown[0] == shown[2] != shown[1]
        assert ("[button] Search [button_]" in shown[0]) == (mode == "text_rich")
    state = env.state
    assert set(state) == {"url", "html", "instruction_text"}


def test_the_url_has_the_originals_form(server):
    env = make(server, "url")
    env.reset(session=0)
    env.step("search[shirt]")
    asin = next(label for label in env.get_available_actions()["clickables"] if label.startswith("b0"))
    assert env.step(f"click[{asin}]")[0].endswith(f"/item_page/0/{asin.upper()}/shirt/1/{{}}")
    name, values = next(iter(server.product_item_dict[asin.upper()]["options"].items()))
    assert env.step(f"click[{values[0]}]")[0].endswith(f'/shirt/1/{{"{name}": "{values[0]}"}}')
    assert env.step("click[features]")[0].endswith(f"/shirt/1/Features/{{'{name}': '{values[0]}'}}")
    assert env.step("click[buy now]")[0].endswith("}")  # not on this page: nothing changes
    env.step("click[< prev]")
    assert f"/done/0/{asin.upper()}/" in env.step("click[buy now]")[0]


@pytest.mark.parametrize(
    "action",
    ["", "nonsense", "click[]", "click[search]", "click[nothing]", "search[]", "search[ ]", "buy[it]", None, 3],
)
def test_an_invalid_action_changes_nothing(server, action):
    env = make(server)
    before, _ = env.reset(session=1)
    assert env.step(action) == (before, 0.0, False, None)


def test_search_is_valid_on_every_page_and_after_a_purchase(server):
    env = make(server)
    env.reset(session=1)
    env.step("search[shirt]")
    assert "Page 1" in env.step("search[mug]")[0]
    shop(env, 2)
    assert env.get_available_actions() == {"has_search_bar": False, "clickables": []}
    observation, reward, done, _ = env.step("search[shirt]")
    assert "Page 1" in observation
    assert server.goals[2]["instruction_text"] in observation
    assert (reward, done) == (0.0, False)


def test_earlier_observations_and_actions_stand_before(server):
    env = make(server, num_prev_obs=1, num_prev_actions=1)
    first, _ = env.reset(session=1)
    state = env.step("search[shirt]")[0]
    assert state == f"{first} [SEP] search[shirt] [SEP] {env.observation}"


def test_further_arguments_are_ignored():
    env = WebAgentTextEnv("text", num_products=100, base_url="http://127.0.0.1:3000", num_product=5, is_fast=True)
    assert len(env.server.all_products) == 100
    assert env.kwargs["is_fast"]


def test_the_positions_of_the_originals_server(catalogue_path):
    server = SimServer("http://localhost:5000", catalogue_path, None, 7, 400, 0, True)
    env = make(server)
    assert (len(server.goals), len(server.cum_weights), server.show_attrs) == (7, 8, True)
    assert env.state["url"].startswith("http://localhost:5000/")
    with pytest.raises(ArgumentError, match="`base_url` should be an address; the catalogue is `file_path`"):
        SimServer(str(catalogue_path))


def test_an_assigned_instruction_is_shown_on_every_page(server):
    env = make(server)
    own = env.server.goals[4]["instruction_text"]
    try:
        server.assigned_instruction_text = "Find a gift for <Ada>"
        observation, _ = env.reset(session=4)
        assert "Find a gift for <Ada>" in observation
        assert env.instruction_text == "Instruction: Find a gift for <Ada>"
        assert server.user_sessions["4"]["goal"]["instruction_text"] == "Find a gift for <Ada>"
        server.assigned_instruction_text = "Another"
        assert "Another" in env.step("search[shirt]")[0]
        assert env.get_instruction_text() == "Instruction:Another"
        assert own not in env.step("click[next >]")[0]
        assert shop(env, 4)[1] == 1.0
    finally:
        server.assigned_instruction_text = None
    assert own in env.reset(session=4)[0]


def test_the_originals_browser_and_requests(server):
    env = make(server)
    env.reset(session=6)
    assert env.browser.current_url == f"{env.base_url}/6"
    assert env.browser.search(["shirt", "cotton"]) == {"reward": 0.0, "done": False}
    assert env.browser.current_url == f"{env.base_url}/search_results/6/shirt+cotton/1"
    assert env.browser.page_source == env.state["html"]
    html, url, status = server.receive("6", env.browser.current_url, clickable_name="Next >")
    assert (url, status) == (f"{env.base_url}/search_results/6/shirt+cotton/2", {"reward": 0.0, "done": False})
    assert html == env.browser.page_source  # one session
    html, url, _ = server.receive("new", None, session_int=6)
    assert url == f"{env.base_url}/new"
    assert server.goals[6]["instruction_text"].partition(",")[0] in html
    goal = server.user_sessions["new"]["goal"]
    server.receive("new", url, keywords=goal["name"].split(" "))
    for label in (goal["asin"], *goal["goal_options"].values()):
        server.receive("new", url, clickable_name=label, text_to_clickable={})
    assert server.receive("new", url, clickable_name="Buy Now")[1:] == (
        server.build_url(server._sessions["new"]), {"reward": 1.0, "done": True},
    )  # fmt: skip
    assert server.user_sessions["new"]["done"] is True


@pytest.mark.parametrize("mode", ["text", "text_rich"])
def test_documents_convert_to_observations(server, mode):
    env = make(server, mode)
    env.reset(session=2)
    goal = server.user_sessions["2"]["goal"]
    labels = [goal["asin"], *goal["goal_options"].values(), "features", "< prev", "< prev", goal["asin"], "buy now"]
    for action in [f"search[{goal['name']}]", *(f"click[{label}]" for label in labels), "search[mug]"]:
        shown = env.convert_html_to_text(env.state["html"], simple=mode == "text")
        assert shown.split() == env.observation.split()
        env.step(action)
    text = "<head><title>no</title></head><p>a <b>b</b></p><!-- c --><script>d</script><button>e</button>"
    assert env.convert_html_to_text(text, simple=True) == "a [SEP] b [SEP] e"
    assert env.convert_html_to_text(text) == "a\nb\n[button] e [button_]\n"


def test_a_recorded_click_with_two_blanks(tmp_path):
    values = ["8.4 ounce / 250 ml", "17 ounce/500 ml"]
    record = {"asin": "B1", "name": "Tea", "customization_options": {"Volume": [{"value": value} for value in values]}}
    asked = {"B1": {"attributes": ["x"], "instruction": "find tea", "instruction_attributes": ["x"]}}
    (tmp_path / "items_shuffle.json").write_text(json.dumps([record, {**record, "asin": "B2", "pricing": "soon"}]))
    (tmp_path / "items_ins_v2.json").write_text(json.dumps(asked))
    with pytest.warns(UserWarning, match=r"2 products, .*, 1 values left out \(pricing 1\); first: .*soon"):
        env = WebAgentTextEnv("text", tmp_path / "items_shuffle.json")
    env.reset(session=0)
    for action in ("search[tea]", "click[b1]", "click[8.4 ounce  |  250 ml]"):
        env.step(action)
    assert env.state["url"].endswith('/{"volume": "8.4 ounce | 250 ml"}')


def test_a_damaged_import_in_the_cache_is_made_again(tmp_path, monkeypatch):
    monkeypatch.setenv("WEBSHOP_CACHE", str(tmp_path / "cache"))
    (tmp_path / "items_shuffle.json").write_text(json.dumps([{"asin": "B1", "name": "Tea"}]))
    (tmp_path / "items_ins_v2.json").write_text(
        json.dumps({"B1": {"instruction": "find tea", "instruction_attributes": ["x"]}})
    )
    WebAgentTextEnv("text", tmp_path / "items_shuffle.json")
    (path,) = (tmp_path / "cache").glob("imported-*.sqlite")
    path.write_bytes(b"damaged" * 1000)
    assert len(WebAgentTextEnv("text", tmp_path / "items_shuffle.json").server.goals) == 1


def test_environments_that_are_made_at_once_import_a_file_once(tmp_path, monkeypatch):
    another, calls = threading.Event(), []

    def import_slowly(*arguments, **options):
        calls.append(arguments)
        if len(calls) > 1:
            another.set()
        another.wait(0.2)
        return import_products(*arguments, **options)

    monkeypatch.setenv("WEBSHOP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(listings, "import_products", import_slowly)
    (tmp_path / "items_shuffle.json").write_text(json.dumps([{"asin": "B1", "name": "Tea"}]))
    with ThreadPoolExecutor(3) as threads:
        opened = [
            threads.submit(listings.open_inventory, tmp_path / "items_shuffle.json", None, None, 0) for _ in "abc"
        ]
    assert [len(one.result()) for one in opened] == [1, 1, 1]
    assert len(calls) == 1


def test_a_cache_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("WEBSHOP_CACHE", str(tmp_path / "file" / "cache"))
    (tmp_path / "items_shuffle.json").write_text(json.dumps([{"asin": "B1", "name": "Tea"}]))
    with pytest.raises(CatalogueError, match="set WEBSHOP_CACHE to a directory that can be written"):
        listings.open_inventory(tmp_path / "items_shuffle.json", None, None, 0)


def test_a_name_keeps_its_goal(server):
    env = make(server, session_prefix="a-")
    env.reset(session="person")
    text = env.instruction_text
    assert env.session == "a-person"
    env.reset(session=5)
    env.reset(session="person")
    assert env.instruction_text == text
    env.reset(session="other", instruction_text="another")
    assert env.state["instruction_text"] == "another"


def test_equal_seeds_give_equal_sessions():
    one, other = (make(SimServer(num_products=400, seed=4)) for _ in range(2))
    for _ in range(3):
        assert one.reset() == other.reset()
        assert one.session == other.session
        assert len(one.session) == 10


def test_environments_that_share_a_server_have_sessions_of_their_own():
    server = SimServer(num_products=400)
    first, second = make(server), make(server)
    seen = [(env.reset(), env.session) for _ in range(4) for env in (first, second)]
    assert len({name for _, name in seen}) == len(seen)
    assert len({observation for (observation, _), _ in seen}) > 4
    assert set(server.user_sessions) >= {name for _, name in seen}


def test_a_goal_number_of_numpy_is_a_number(server):
    assert make(server).reset(session=np.int64(7)) == make(server).reset(session=7)
    server.receive("a new name", None, session_int=np.int32(7))
    assert server.user_sessions["a new name"]["goal"] == server.user_sessions["7"]["goal"] == server.goals[7]


def test_goals_are_filtered_and_limited():
    server = SimServer(num_products=400, filter_goals=lambda number, goal: number % 2 and goal["price_upper"] < 100)
    assert server.goals
    assert all(goal["price_upper"] < 100 for goal in server.goals)
    env = make(server)
    env.reset(session=1)
    assert server.goals[1]["instruction_text"] in env.observation
    limited = SimServer(num_products=400, limit_goals=5)
    assert len(limited.goals) == len(limited.weights) == 5
    assert limited.goals == SimServer(num_products=400, limit_goals=5).goals
    make(limited).reset()
    with pytest.raises(ArgumentError, match="`session` should be a whole number in the interval"):
        make(limited).reset(session=5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"observation_mode": "image"}, "`observation_mode` should be one of html, text, text_rich, url"),
        ({"get_image": 1}, "`get_image` should be 0"),
        ({"nouns": "all"}, "`nouns` should be one of rule, spacy"),
        ({"num_products": 0}, "`num_products` should be a whole number"),
        (
            {"server": None, "file_path": "a.json", "attr_path": "b.json", "num_products": "x"},
            "`num_products` should be",
        ),
        ({"file_path": "missing.json"}, "`file_path` should be a file that can be read"),
        ({"file_path": "missing.sqlite"}, "there is no catalogue"),
        ({"attr_path": "items_ins_v2.json"}, "`attr_path` should be None"),
        ({"num_products": 400, "filter_goals": lambda number, goal: False}, "`filter_goals` should be a function"),
    ],
)
def test_wrong_arguments_are_refused(options, message):
    with pytest.raises(ShopError, match=message):
        WebAgentTextEnv(**options)


def test_the_originals_files(real_files, tmp_path, monkeypatch):
    monkeypatch.setenv("WEBSHOP_CACHE", str(tmp_path))
    env = WebAgentTextEnv("text", real_files[0], num_products=100, human_goals=1)
    assert len(env.server.product_item_dict) == 100
    assert isinstance(env.server.goals[0]["goal_options"], list)
    assert [path.suffix for path in tmp_path.glob("imported-*")].count(".sqlite") == 1
    for attributes in (None, real_files[1]):
        again = WebAgentTextEnv("text", real_files[0], num_products=100, human_goals=1, attr_path=attributes)
        assert again.server.shop.inventory is env.server.shop.inventory
    assert WebAgentTextEnv("text", real_files[0]).server.product_prices.keys() > env.server.product_prices.keys()


@pytest.mark.integration
def test_the_worker_of_verl_agent_plays(tmp_path):
    """The file of the page in the place of the original's package, in a process of its own, as Ray starts them."""
    root = Path(__file__).resolve().parents[3]
    text = (root / "docs" / "training_agents.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(import gym\n.*?)```", text, re.DOTALL)
    package = tmp_path / "web_agent_site"
    package.mkdir()
    (package / "__init__.py").write_text(code, encoding="utf-8")
    (tmp_path / "gym.py").write_text(GYM, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", WORKER], capture_output=True, text=True, check=False, cwd=tmp_path, timeout=300
    )
    assert done.returncode == 0, done.stderr
    goals, instruction, available, score = json.loads(done.stdout)
    assert goals > 500  # those before are its evaluation
    assert "Instruction" in instruction
    assert not available["has_search_bar"]
    assert "back to search" in available["clickables"]
    assert score == 0.0


GYM = """
import importlib
ENTRIES = {}
def register(id, entry_point):
    ENTRIES[id] = entry_point
def make(id, **kwargs):
    module, _, name = ENTRIES[id].partition(":")
    return getattr(importlib.import_module(module), name)(**kwargs)
"""
WORKER = """
import json, sys
sys.path.append(".")
from web_agent_site.envs import WebAgentTextEnv
import gym
env = gym.make("WebAgentTextEnv-v0", observation_mode="text", num_products=None, human_goals=False, file_path=None,
               attr_path=None, seed=7)
observation, info = env.reset(session=503)
step = env.step("search[red mug]")
print(json.dumps([len(env.server.goals), observation, env.get_available_actions(), step[1]]))
env.close()
"""
