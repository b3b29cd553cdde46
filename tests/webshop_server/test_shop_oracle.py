"""The oracle's purchases score 1.0 wherever that is possible."""

from __future__ import annotations

import pytest

from webshop_server.oracle import best_purchase, solve
from webshop_server.settings import Settings
from webshop_server.shop import Shop
from webshop_server.urls import PageKind

PHASES = {
    "plain": {},
    "ads": {"ad_page": True, "ad_right_button": "D", "ad_depth": 2},
    "relabel": {"button_labels": {"Buy Now": "Add to Bag", "Back to Search": "Home", "Next >": "More"}},
    "ranking": {"result_order": "reversed"},
    "demoted": {"demoted": ("offer:0",)},
    "warm-red": {"color_classes": {"warm": ["red"], "cool": ["green"]}},
}


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("kind", ["synthetic", "color_class"])
def test_the_best_purchase_scores_one_in_every_phase(inventory, kind, phase):
    shop = Shop(inventory, Settings().replace(**PHASES[phase]), goal_kind=kind)
    for index in range(0, len(shop.goals), len(shop.goals) // 25):
        session = shop.start(index)
        actions = solve(session)
        assert session.reward == 1.0, (session.goal, actions)
        assert len(actions) <= 20


@pytest.mark.parametrize("changes", [{"sold_out": ("offer:0",)}, {"price_factor": 50.0, "price_targets": ("offer:0",)}])
def test_an_equal_offer_takes_over(inventory, changes):
    shop = Shop(inventory, Settings().replace(**changes))
    seen = 0
    for goal in shop.goals[:600]:
        product = inventory.catalogue.product(goal.asin)
        if product.group and product.offer == 0 and len(product.prices) == 1:
            purchase = best_purchase(shop, goal)
            assert purchase.score.reward == 1.0
            assert purchase.asin != goal.asin
            seen += 1
    assert seen > 50


def test_nothing_to_buy(inventory):
    everything = tuple(f"category:{name}" for name in ("fashion", "beauty", "electronics", "garden", "grocery"))
    session = Shop(inventory, Settings(sold_out=everything)).start(0)
    assert best_purchase(session.shop, session.goal) is None
    assert solve(session) == []


def test_it_starts_from_any_page(inventory):
    session = Shop(inventory, Settings().replace(ad_page=True, ad_right_button="B", ad_depth=2)).start(4)
    session.act("search[made easy]")
    session.act(f"click[{list(session.page.clickables)[2]}]")
    session.act("click[buy now]")
    session.act("click[a]")
    assert session.page.url.kind is PageKind.AD
    solve(session)
    assert session.reward == 1.0
