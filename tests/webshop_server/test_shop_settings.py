"""The settings, and their effect on the next page."""

from __future__ import annotations

import copy
import pickle
import re

import pytest

from webshop_server.catalogue import CatalogueWriter
from webshop_server.errors import SettingsError
from webshop_server.inventory import Inventory, is_target
from webshop_server.product import Product
from webshop_server.settings import LABELS, ORDERS, Settings
from webshop_server.urls import PageKind, PageUrl


@pytest.fixture
def session(shop):
    session = shop.start(0)
    session.visit(PageUrl(PageKind.ITEM, "shirt", 1, session.goal.asin, session.goal.options))
    return session


def click_buttons(session, *labels):
    for label in labels:
        outcome = session.act(f"click[{label}]")
        assert outcome.error is None, outcome.error
    return session.page.url


def test_the_right_button_leads_to_the_order(session):
    session.configure(ad_page=True, ad_right_button="C")
    place = click_buttons(session, "buy now")
    assert (place.kind, place.depth) == (PageKind.AD, 0)
    assert [label.upper() for label in session.page.clickables] == ["A", "B", "C", "D", "E"]
    assert not session.page.has_search_bar
    assert click_buttons(session, "c").kind is PageKind.CONFIRM
    assert click_buttons(session, "place order").kind is PageKind.DONE
    assert session.reward == 1.0


def test_a_decoy_leads_to_more_advertisements_and_back_to_search(session):
    session.configure(ad_page=True, ad_right_button="C", ad_depth=2)
    assert click_buttons(session, "buy now", "A").depth == 1
    assert click_buttons(session, "c").depth == 2  # the right button is right on the first page alone
    assert click_buttons(session, "c").kind is PageKind.START
    session.visit(PageUrl(PageKind.ITEM, "shirt", 1, session.goal.asin, session.goal.options))
    assert click_buttons(session, "buy now").depth == 0
    assert click_buttons(session, "c", "place order").kind is PageKind.DONE


def test_depth_zero_and_escape(session):
    session.configure(ad_page=True, ad_depth=0)
    assert click_buttons(session, "buy now", "e").kind is PageKind.START
    session.configure(ad_depth=5, ad_escape=True)
    session.visit(PageUrl(PageKind.ITEM, "shirt", 1, session.goal.asin))
    assert click_buttons(session, "buy now", "e", "d", "a").kind is PageKind.CONFIRM


def test_labels_and_positions_are_exchangeable(shop):
    """The page changes by the labels alone, never by which of them is right."""
    pages = {}
    for right in "ABC":
        for labels in (("A", "B", "C"), ("C", "A", "B")):
            session = shop.start(0)
            session.configure(ad_page=True, ad_buttons=3, ad_labels=labels, ad_right_button=right)
            session.visit(PageUrl(PageKind.DONE, asin=session.goal.asin))
            pages.setdefault(labels, set()).add((session.page.text, session.page.text_rich, session.page.path))
            assert tuple(label.upper() for label in session.page.clickables) == labels
            assert click_buttons(session, right).kind is PageKind.CONFIRM
    assert {len(seen) for seen in pages.values()} == {1}


def test_a_typed_url_does_not_skip_advertisements(session):
    session.configure(ad_page=True, ad_right_button="B")
    asin, options = session.goal.asin, session.goal.options
    confirm = PageUrl(PageKind.CONFIRM, asin=asin, options=options)
    assert session.visit(confirm).url.kind is PageKind.ITEM  # nothing has been ordered yet
    assert session.visit(confirm._replace(kind=PageKind.AD, button="B")).url.kind is PageKind.ITEM
    click_buttons(session, "buy now", "a")
    assert session.visit(confirm).url.kind is PageKind.ITEM
    again = session.visit(PageUrl(PageKind.AD, asin=asin, options=options, depth=0, button="B"))
    assert (again.url.kind, again.url.depth) == (PageKind.AD, 2)  # the depth is the session's own
    session.visit(PageUrl(PageKind.DONE, asin=asin, options=options))
    click_buttons(session, "b")
    other = session.visit(PageUrl(PageKind.DONE, asin=asin))  # passed with other options than these
    assert other.url.kind is PageKind.AD


def test_turning_advertisements_off_inside_one(session):
    session.configure(ad_page=True, ad_right_button="B")
    click_buttons(session, "buy now", "a")
    session.configure(ad_page=False)
    assert click_buttons(session, "d").kind is PageKind.CONFIRM


def test_settings_take_effect_with_the_next_page_for_one_or_for_all(shop):
    one, other = shop.start(0), shop.start(1)
    one.configure(button_labels={"Search": "Find"})
    assert "search" in one.page.clickables  # the page that is shown stays
    one.visit(PageUrl())
    other.visit(PageUrl())
    assert "find" in one.page.clickables
    assert "search" in other.page.clickables
    shop.configure(button_labels={"Search": "Look up"}, price_factor=2.0)
    one.visit(PageUrl())
    other.visit(PageUrl())
    assert "find" in one.page.clickables  # a session's own settings stay on top
    assert one.settings.price_factor == 2.0
    assert "look up" in other.page.clickables
    one.configure(button_labels={})
    one.visit(PageUrl())
    assert "search" in one.page.clickables


def test_every_label_can_be_changed(shop):
    session = shop.start(0)
    session.configure(
        button_labels={name: f"new {i}" for i, name in enumerate(LABELS)}, ad_page=True, show_attributes=True
    )
    session.visit(PageUrl(PageKind.RESULTS, "made easy", 2))
    labels = set(session.page.clickables)
    asin, options = session.goal.asin, session.goal.options
    session.visit(PageUrl(PageKind.ITEM, asin=asin, options=options))
    labels |= set(session.page.clickables)
    click_buttons(session, f"new {LABELS.index('Buy Now')}", "a")
    labels |= set(session.page.clickables)
    session.visit(PageUrl())
    labels |= set(session.page.clickables)
    assert {f"new {i}" for i in range(len(LABELS))} <= labels
    assert not {name.lower() for name in LABELS} & labels


def test_an_option_gives_way_to_a_new_label(shop):
    session = shop.start(0)
    name, value = session.goal.options[0]
    session.configure(button_labels={"Buy Now": value})
    session.visit(PageUrl(PageKind.ITEM, asin=session.goal.asin))
    assert f"{name}: {value}" in session.page.clickables
    assert click_buttons(session, value).kind is PageKind.DONE


@pytest.mark.parametrize("order", ORDERS)
def test_orders_rearrange_the_same_listings(shop, order):
    plain = shop.inventory.results("cotton shirt", Settings())
    settings = Settings(result_order=order)
    shown = shop.inventory.results("cotton shirt", settings)
    assert sorted(p.asin for p in shown) == sorted(p.asin for p in plain)
    if order == "reversed":
        assert list(shown) == list(plain)[::-1]
    elif order.startswith("price"):
        prices = [shop.inventory.price(p, settings) for p in shown]
        assert prices == sorted(prices, reverse=order == "price_down")
    elif order == "rating":
        stars = [float(p.rating) for p in shown]
        assert stars == sorted(stars, reverse=True)
    else:
        assert list(shown) == list(plain)


def test_ratings_in_words_are_ordered_by_their_number(tmp_path):
    ratings = ["inf", "nan", "4.9", "", "1.0", "4.5 out of 5 stars", "3"]
    with CatalogueWriter(tmp_path / "s.sqlite") as writer:
        writer.add([Product(f"B{place}", "Mug", rating=rating) for place, rating in enumerate(ratings)])
        writer.finish("x")
    shown = Inventory.open(tmp_path / "s.sqlite").results("mug", Settings(result_order="rating"))
    assert [product.rating for product in shown][:4] == ["4.9", "4.5 out of 5 stars", "3", "1.0"]


def test_demoted_listings_come_last(shop):
    shown = shop.inventory.results("cotton shirt", Settings(demoted=("offer:0",)))
    flags = [bool(p.group) and p.offer == 0 for p in shown]
    assert flags == sorted(flags)
    assert any(flags)


def test_inflation_hits_its_targets_alone(shop):
    goal = next(g for g in shop.goals if shop.inventory.catalogue.product(g.asin).group and g.price_upper < 300)
    first = shop.inventory.catalogue.product(goal.asin)
    settings = Settings(price_factor=10.0, price_targets=(goal.asin,))
    score = shop.score(goal, first, goal.options, settings)
    assert not score.r_price
    assert score.reward < 1
    assert shop.inventory.price(first, settings) == pytest.approx(
        10 * shop.inventory.price(first, Settings()), abs=0.01
    )
    others = [p for p in shop.inventory.catalogue if p.group == first.group and p.asin != first.asin]
    for other in others:
        assert shop.score(goal, other, goal.options, settings) == shop.score(goal, other, goal.options, Settings())
    session = shop.start(goal)
    session.configure(price_factor=10.0)
    session.visit(PageUrl(PageKind.ITEM, asin=first.asin))
    assert f"Price: ${round(first.prices[0] * 10, 2)}" in session.page.text


def test_targets():
    mug = Product("MUG0000001", "A mug", category="garden", seller="Northgate", group="g1", offer=1)
    for target in ("MUG0000001", "mug0000001", "seller:NORTHGATE", "category:garden", "offer:1", " offer:1 "):
        assert is_target(mug, ("x", target))
    for target in ("MUG", "seller:North", "category:", "offer:0", "offer:", "seller:"):
        assert not is_target(mug, (target,))
    assert not is_target(mug._replace(group="", offer=0), ("offer:0",))  # no equal offer


def test_sold_out_listings_cannot_be_bought(shop):
    session = shop.start(0)
    item = PageUrl(PageKind.ITEM, asin=session.goal.asin)
    session.visit(item)
    shown = session.page
    session.configure(sold_out=(session.goal.asin,))
    assert session.act("click[buy now]").error == f"product {session.goal.asin} is sold out"
    assert session.page is shown
    session.visit(item)
    assert "buy now" not in session.page.clickables
    assert session.page.parts[-1] == "Currently unavailable"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"ad_page": 1}, "`ad_page` should be true or false. Received 1"),
        ({"ad_buttons": 1}, "`ad_buttons` should be a whole number in the interval [2, 26]. Received 1"),
        ({"ad_buttons": True}, "`ad_buttons` should be a whole number"),
        ({"ad_buttons": 3, "ad_right_button": "D"}, "`ad_right_button` should be one of A, B, C. Received 'D'"),
        ({"ad_labels": ["A", "a", "b", "c", "d"]}, "`ad_labels` should be labels that differ in more than case"),
        ({"ad_labels": ["A"]}, "`ad_labels` should be at least as many labels as there are buttons (5)"),
        ({"ad_labels": "ABCDE"}, "`ad_labels` should be a list of texts. Received 'ABCDE'"),
        ({"ad_depth": -1}, "`ad_depth` should be a whole number in the interval [0, 1000]. Received -1"),
        ({"color_classes": {"warm": []}}, "`color_classes[warm]` should be at least one colour. Received []"),
        ({"color_classes": {"warm": "red"}}, "`color_classes[warm]` should be a list of texts. Received 'red'"),
        ({"color_classes": 3}, "`color_classes` should be a mapping. Received 3"),
        ({"button_labels": {"Buy": "x"}}, "`button_labels` should be a mapping from some of"),
        ({"button_labels": {"Buy Now": "Search"}}, "`button_labels` should be labels that differ in more than case"),
        ({"button_labels": {"Buy Now": "a]b"}}, "without brackets"),
        ({"button_labels": {"Buy Now": " x"}}, "`button_labels` should be labels of 1 to 60 characters on one line"),
        ({"button_labels": {"Buy Now": ""}}, "`button_labels` should be labels of 1 to 60"),
        ({"button_labels": {"Buy Now": "kaufen ü"}}, "printable ASCII"),
        ({"result_order": "random"}, "`result_order` should be one of relevance, reversed,"),
        ({"price_factor": 0}, "`price_factor` should be in the interval [0.01, 100]. Received 0"),
        ({"price_factor": float("nan")}, "`price_factor` should be a number. Received nan"),
        ({"price_factor": "2"}, "`price_factor` should be a number. Received '2'"),
        ({"sold_out": [""]}, "`sold_out` should be a list of at most 10,000 texts"),
        ({"sold_out": {"a": 1}}, "`sold_out` should be a list of texts"),
        ({"price": 3}, "`price` should be one of the settings ad_buttons, ad_depth,"),
        ({"_labels": {}}, "`_labels` should be one of the settings"),
    ],
    ids=str,
)
def test_refusals_name_setting_rule_and_value_and_change_nothing(shop, changes, reason):
    session = shop.start(0)
    for configure in (shop.configure, session.configure):
        with pytest.raises(SettingsError, match=re.escape(reason)):
            configure(**changes)
    assert shop.settings == Settings()
    assert session.changes == ()


def test_settings_have_value_equality():
    one = Settings(color_classes={"warm": ["red"]}, button_labels={"Buy Now": "Add to Bag"}, sold_out=["a"])
    same = Settings(color_classes={"WARM ": ("Red",)}, button_labels=(("Buy Now", "Add to Bag"),), sold_out=("a",))
    assert one == same
    assert hash(one) == hash(same)
    for twin in (pickle.loads(pickle.dumps(one)), copy.deepcopy(one), Settings(**one.to_dict())):
        assert twin == one
        assert twin.label("Buy Now") == "Add to Bag"
    assert one != Settings()
