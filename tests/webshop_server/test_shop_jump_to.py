"""Setting a session to a page without the actions that lead there."""

from __future__ import annotations

import re

import pytest

from webshop_server.errors import ArgumentError
from webshop_server.inventory import Inventory
from webshop_server.oracle import solve
from webshop_server.settings import Settings
from webshop_server.shop import Shop
from webshop_server.urls import PageKind, PageUrl

ADS = Settings(ad_page=True, ad_right_button="C")


@pytest.fixture(scope="module")
def shop():
    return Shop(Inventory.default(products=100), ADS)


def test_a_session_continues_from_every_page(shop):
    plan = solve(shop.start(0))
    session = shop.start(0)
    for number, action in enumerate(plan):
        other = shop.start(0)
        assert other.jump_to(session.page.url).text == session.page.text
        for later in plan[number:]:
            other.act(later)
        assert other.reward == 1.0
        session.act(action)


def test_the_depth_of_advertisements_is_restored(shop):
    plan = solve(shop.start(0))
    session = shop.start(0)
    for action in plan[: plan.index("click[c]")]:
        session.act(action)
    session.act("click[a]")
    other = shop.start(0)
    other.jump_to(session.page.url)
    for button in "cc":
        assert other.act(f"click[{button}]").page.text == session.act(f"click[{button}]").page.text
    assert other.page.url.kind is PageKind.AD
    assert other.page.url.depth == 3


def test_the_last_page_is_refused(shop):
    session = shop.start(0)
    before = session.page
    for place in (PageUrl(PageKind.DONE, asin=shop.goals[0].asin), PageUrl(PageKind.ITEM, asin="NOTHING")):
        with pytest.raises(ArgumentError, match=re.escape("should not be the last page") + "|there is no product"):
            session.jump_to(place)
    assert session.page is before


def test_jumping_resets_a_purchase(shop):
    session = shop.start(0)
    plan = solve(session)
    assert session.is_done
    session.jump_to(PageUrl())
    assert (session.is_done, session.reward) == (False, 0.0)
    for action in plan:
        session.act(action)
    assert session.reward == 1.0
