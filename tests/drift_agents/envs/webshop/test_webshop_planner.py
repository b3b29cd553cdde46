"""What the shop's planner does on every kind of page, with and without memory."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from drift_agents.envs.webshop.planner import WebShopPlanner
from drift_agents.errors import ArgumentError
from drift_agents.prompt.view import PromptView

Decide = Callable[..., set[str]]
GOOD, DEAR, POOR = "Dishwasher Safe Mug", "Dishwasher Safe Mug, Large", "Wool Sock"
COLORS = {"color": ["red", "blue"]}
WARM = "Find me dishwasher safe mugs in a warm color, and price lower than 20.00 dollars"
SHADES = {"color": ["blue", "red", "orange", "yellow"]}


def test_it_searches(shop: Any, decide: Decide) -> None:
    search = f"search[{shop.task}]"
    assert decide(shop.start(), (search,)) == {search}


def test_it_opens_the_listing_that_fits(shop: Any, decide: Decide) -> None:
    page = shop.results([("B01", POOR, "$5.0"), ("B02", DEAR, "$30.0"), ("B03", GOOD, "$9.0")])
    assert decide(*page) == {"click[b03]"}


def test_where_no_title_fits_the_next_page_is_looked_at(shop: Any, decide: Decide) -> None:
    listings = [("B01", POOR, "$5.0")]
    assert decide(*shop.results(listings, total=30)) == {"click[next >]"}
    assert decide(*shop.results(listings)) == {"click[b01]"}
    assert decide(*shop.results([], total=0)) == {"click[back to search]"}


def test_a_purchase_that_paid_is_repeated(shop: Any, decide: Decide) -> None:
    state, actions = shop.results([("B01", GOOD, "$9.0"), ("B02", POOR, "$9.0")])
    item, clicks = shop.item("B02", POOR, "$9.0", {})
    bought = shop.recall(item, clicks[-1], shop.done("B02", {}, 1.0))
    assert decide(state, actions, bought) == {"click[b02]"}
    assert decide(state, actions, bought._replace(outcome=shop.done("B02", {}, 0.5))) == {"click[b01]"}


def test_what_is_sold_out_is_avoided_until_memory_is_doubted(shop: Any, decide: Decide) -> None:
    state, actions = shop.results([("B01", GOOD, "$9.0"), ("B02", DEAR, "$9.0")])
    gone = shop.item("B01", GOOD, "$9.0", COLORS, buy="Currently unavailable")[0]
    seen = shop.recall(state, "click[b01]", gone, last=5)
    assert decide(state, actions, seen) == {"click[b02]"}
    assert decide(state, actions, seen, doubt=5) == {"click[b02]"}
    assert decide(state, actions, seen, doubt=6) == {"click[b01]"}
    assert decide(state, actions, seen, doubt=6, conflict="frequency") == {"click[b01]"}


def test_it_chooses_and_buys(shop: Any, decide: Decide) -> None:
    assert decide(*shop.item("B01", GOOD, "$9.0", COLORS)) == {"click[red]"}
    assert decide(*shop.item("B01", GOOD, "$9.0", COLORS, {"color": "blue"})) == {"click[red]"}
    assert decide(*shop.item("B01", GOOD, "$9.0", COLORS, {"color": "red"})) == {"click[buy now]"}


def test_who_remembers_nothing_does_not_look_twice(shop: Any, decide: Decide) -> None:
    """Otherwise an agent without memory would read the features for ever."""
    assert decide(*shop.item("B01", "Mug", "$9.0", COLORS)) == {"click[red]"}


def test_who_remembers_looks_closer_and_goes_back(shop: Any, decide: Decide) -> None:
    results, _ = shop.results([("B01", "Mug", "$9.0"), ("B02", "Another Mug", "$9.0")])
    item, actions = shop.item("B01", "Mug", "$9.0", COLORS)
    came = shop.recall(results, "click[b01]", item)
    assert decide(item, actions, came) == {"click[features]"}
    assert decide(item, actions, came, looks=0) == {"click[red]"}
    features, clicks = shop.features("B01", ["Breaks at once"])
    assert decide(features, clicks, came) == {"click[< prev]"}
    looked = shop.recall(item, "click[features]", features)
    assert decide(item, actions, came, looked) == {"click[< prev]"}
    assert decide(*shop.results([("B01", "Mug", "$9.0"), ("B02", "Another Mug", "$9.0")]), came, looked) == {
        "click[b02]"
    }
    fine = shop.recall(item, "click[features]", shop.features("B01", ["Dishwasher safe mugs"])[0])
    assert decide(item, actions, came, fine) == {"click[red]"}


def test_an_article_is_known_whoever_offers_it(shop: Any, decide: Decide) -> None:
    listings = [("B01", GOOD, "$9.0"), ("B02", GOOD, "$9.0"), ("B03", DEAR, "$9.0")]
    state, actions = shop.results(listings)
    blue = shop.item("B01", GOOD, "$9.0", {"color": ["blue"]})[0]
    assert decide(state, actions, shop.recall(state, "click[b01]", blue)) == {"click[b03]"}


def test_a_renamed_button_is_found_and_remembered(shop: Any, decide: Decide) -> None:
    state, actions = shop.item("B01", GOOD, "$9.0", COLORS, {"color": "red"}, buy="Add to Bag")
    assert decide(state, actions) == {"click[add to bag]"}
    lines = [*actions, "click[gift card]"]
    two = state.replace("Add to Bag", "Add to Bag\\nGift Card")
    assert decide(two, tuple(lines)) == {"click[add to bag]", "click[gift card]"}
    wrong = shop.recall(two, "click[gift card]", shop.start())
    assert decide(two, tuple(lines), wrong) == {"click[add to bag]"}
    right = shop.recall(two, "click[gift card]", shop.ad()[0])
    assert decide(two, tuple(lines), right) == {"click[gift card]"}


def test_it_places_the_order(shop: Any, decide: Decide) -> None:
    assert decide(*shop.confirm()) == {"click[place order]"}


def test_the_right_button_is_remembered_from_another_task(shop: Any, decide: Decide) -> None:
    other = shop.ad(asin="B09", task="Find me cups")[0]
    right = shop.recall(other, "click[c]", shop.confirm("B09", "Find me cups")[0])
    assert decide(*shop.ad(), right) == {"click[c]"}


def test_wrong_buttons_are_avoided_until_memory_is_doubted(shop: Any, decide: Decide) -> None:
    state, actions = shop.ad()
    wrong = [shop.recall(state, action, shop.ad(depth=1)[0], last=i) for i, action in enumerate(actions[:2])]
    assert decide(state, actions, *wrong) == {"click[c]"}
    assert decide(state, actions, *wrong, doubt=1, seeds=30) == {"click[a]", "click[c]"}


def test_where_all_are_believed_wrong_the_one_longest_ago_is_tried(shop: Any, decide: Decide) -> None:
    state, actions = shop.ad()
    wrong = [shop.recall(state, action, shop.ad(depth=1)[0], last=9 - i) for i, action in enumerate(actions)]
    assert decide(state, actions, *wrong) == {"click[c]"}


def test_a_button_that_is_right_elsewhere_is_tried_first(shop: Any, decide: Decide) -> None:
    right = shop.recall(shop.ad()[0], "click[b]", shop.confirm()[0])
    assert decide(*shop.ad(depth=1), right) == {"click[b]"}


def test_a_class_of_colours_is_first_guessed(shop: Any, decide: Decide) -> None:
    page = shop.item("B01", GOOD, "$9.0", SHADES, task=WARM)
    assert decide(*page, task=WARM, seeds=40) == {"click[red]", "click[orange]", "click[yellow]"}
    chosen = shop.item("B01", GOOD, "$9.0", SHADES, {"color": "orange"}, task=WARM)
    assert decide(*chosen, task=WARM) == {"click[buy now]"}, "what was drawn a step ago stays"


def buy(
    shop: Any, color: str, score: float, last: int, task: str = WARM, asin: str = "B01", groups: Any = SHADES
) -> Any:
    state, actions = shop.item(asin, GOOD, "$9.0", groups, {"color": color}, task=task)
    return shop.recall(state, actions[-1], shop.done(asin, {"color": color}, score), last=last)


def test_a_colour_that_paid_is_chosen_and_one_that_did_not_is_not(shop: Any, decide: Decide) -> None:
    page = shop.item("B01", GOOD, "$9.0", SHADES, task=WARM)
    assert decide(*page, buy(shop, "orange", 1.0, 3), task=WARM) == {"click[orange]"}
    assert decide(*page, buy(shop, "orange", 0.75, 3), task=WARM, seeds=30) == {"click[red]", "click[yellow]"}


def test_after_a_doubt_what_is_newer_counts_more_than_what_is_ones_own(shop: Any, decide: Decide) -> None:
    other = "Find me wool rugs in a warm color"
    page = shop.item("B01", GOOD, "$9.0", SHADES, task=WARM)
    recalled = [buy(shop, "yellow", 1.0, 3), buy(shop, "yellow", 0.75, 8, other, "B07")]
    assert decide(*page, *recalled, task=WARM) == {"click[yellow]"}
    assert decide(*page, *recalled, task=WARM, doubt=8, seeds=30) == {"click[red]", "click[orange]"}


def test_a_listing_without_a_right_colour_is_left(shop: Any, decide: Decide) -> None:
    results = shop.results([("B01", GOOD, "$9.0"), ("B02", DEAR, "$9.0")], task=WARM)
    bare = shop.item("B01", GOOD, "$9.0", {"color": ["yellow", "blue"]}, task=WARM)
    recalled = [
        shop.recall(results[0], "click[b01]", bare[0]),
        buy(shop, "yellow", 0.75, 8, "Find me wool rugs in a warm color", "B07"),
        buy(shop, "red", 1.0, 9, "Find me wool rugs in a warm color", "B07"),
    ]
    assert decide(*results, *recalled, task=WARM) == {"click[b02]"}
    assert decide(*bare, *recalled, task=WARM) == {"click[< prev]"}


def test_a_listing_that_paid_for_a_colour_that_has_become_wrong_is_left(shop: Any, decide: Decide) -> None:
    other = "Find me wool rugs in a warm color"
    results = shop.results([("B01", GOOD, "$9.0"), ("B02", DEAR, "$9.0")], task=WARM)
    groups = {"color": ["yellow", "blue"]}
    recalled = [
        shop.recall(results[0], "click[b01]", shop.item("B01", GOOD, "$9.0", groups, task=WARM)[0]),
        buy(shop, "yellow", 1.0, 3, groups=groups),
        buy(shop, "yellow", 0.75, 8, other, "B07"),
        buy(shop, "red", 1.0, 9, other, "B07"),
    ]
    assert decide(*results, *recalled, task=WARM) == {"click[b01]"}
    assert decide(*results, *recalled, task=WARM, doubt=8) == {"click[b02]"}


@pytest.mark.parametrize("looks", [-1, 1.5, True, None])
def test_wrong_options_are_refused(looks: Any) -> None:
    with pytest.raises(
        ArgumentError, match=re.escape(f"`looks` should be a whole number, at least 0. Received {looks!r}")
    ):
        WebShopPlanner(looks=looks)


def test_what_is_no_shop_is_refused() -> None:
    view = PromptView("Sail.", '{"wind": 3}', ("0",))
    with pytest.raises(ArgumentError, match="the present state should be a page of a shop"):
        WebShopPlanner().decide(view, np.random.default_rng(0))
