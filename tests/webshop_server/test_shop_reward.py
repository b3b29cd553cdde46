"""The score: the original's formula, part by part, and 1.0 for every goal's own listing."""

from __future__ import annotations

import pytest

from webshop_server.goals import NO_LIMIT, Goal
from webshop_server.product import Product
from webshop_server.reward import extract_nouns, is_same, matches_class, matches_option, score_purchase
from webshop_server.settings import Settings

LAMP = Product(
    "L1",
    "Brass Table Lamp with Linen Shade",
    "A lamp that is easy to clean.",
    ("Dimmable by touch",),
    (40.0,),
    query="table lamps",
    product_category="Home › Lighting › Lamps",
    attributes=("energy efficient",),
)


def goal(**changes):
    base = {
        "text": "a lamp",
        "asin": "L1",
        "title": LAMP.title,
        "category": "garden",
        "query": "table lamps",
        "product_category": LAMP.product_category,
        "attributes": ("energy efficient",),
        "options": (("color", "blue"),),
        "price_upper": 50.0,
    }
    return Goal(**{**base, **changes})


def test_a_perfect_purchase_scores_one():
    score = score_purchase(LAMP, goal(), 40.0, {"color": "blue"})
    assert score.reward == 1.0
    assert (score.r_type, score.r_att, score.r_option, score.r_price) == (1.0, 1.0, 1.0, True)
    assert score.w_att + score.w_option + score.w_price == pytest.approx(1)


@pytest.mark.parametrize(
    ("price", "chosen", "expected"),
    [
        (40.0, {}, 2 / 3),
        (60.0, {"color": "blue"}, 2 / 3),
        (60.0, {}, 1 / 3),
        (50.0, {"color": "blue"}, 1.0),
        (None, {}, 1 / 3),
    ],
)
def test_parts_add_up(price, chosen, expected):
    assert score_purchase(LAMP, goal(), price, chosen).reward == pytest.approx(expected)


def test_options_may_be_pairs_values_or_a_mapping():
    for chosen in ({"color": "blue"}, [("color", "blue")], ["blue"], (("x", "blue"),)):
        assert score_purchase(LAMP, goal(), 1.0, chosen).r_option == 1.0


def test_attributes_are_found_in_title_bullets_and_description():
    wanted = goal(attributes=("energy efficient", "linen shade", "dimmable", "easy to clean", "waterproof"))
    assert score_purchase(LAMP, wanted, 1.0, {}).r_att == 4 / 5


def test_missing_parts_never_crash():
    bare = Product("X", "")
    empty = goal(title="", query="", product_category="", attributes=(), options=(), price_upper=NO_LIMIT)
    score = score_purchase(bare, empty, None, {})
    assert score.reward == 0.0
    assert (score.r_att, score.r_option) == (0.0, None)
    assert score_purchase(bare, empty, 5.0, {}).reward == 1.0


@pytest.mark.parametrize(
    ("title", "query", "category", "expected"),
    [
        # the thresholds 0, 0.1 and 0.2 of the share of common nouns; the goal's title has eleven nouns below
        ("alpha bravo charlie", "other", "", 1.0),
        ("alpha bravo", "other", "", 0.5),
        ("alpha", "other", "", 0.1),
        ("alpha", "same", "", 0.1),
        ("unrelated", "same", "A › B", 0.0),
        ("alpha bravo", "same", "", 1.0),
        ("alpha bravo", "other", "B › A", 1.0),
        ("alpha bravo", "other", "A › C", 0.5),
    ],
)
def test_type_thresholds(title, query, category, expected):
    eleven = "alpha bravo charlie delta echo foxtrot golf hotel india juliet kilo"
    wanted = goal(title=eleven, query="same", product_category="A › B")
    bought = LAMP._replace(title=title, query=query, product_category=category)
    score = score_purchase(bought, wanted, 1.0, {"color": "blue"})
    assert score.r_type == expected
    assert score.reward == pytest.approx(expected)


def test_a_fifth_of_the_nouns_is_not_enough():
    wanted = goal(title="alpha bravo charlie delta echo", query="same", product_category="A › B")
    bought = LAMP._replace(title="alpha", query="other", product_category="")
    score = score_purchase(bought, wanted, 1.0, {})
    assert (score.title_score, score.r_type) == (0.2, 0.5)


@pytest.mark.parametrize(
    ("wanted", "chosen", "same"),
    [
        ("blue", "navy blue", True),  # both become `blue`
        ("red", "dark green", False),
        ("size 10", "10 size", True),
        ("红色", "红色", True),  # nothing is left of it to compare, but it is equal
        ("红色", "蓝色", False),
        ("xl", "xxl", False),
        ("", "", True),
        ("a | b", "b | a", True),
    ],
)
def test_options_are_compared_as_in_the_original(wanted, chosen, same):
    assert matches_option(wanted, chosen) is same


def test_colour_classes_follow_the_settings():
    warm = goal(options=(), color_class="warm", attributes=("energy efficient", "linen shade"))
    for meaning, chosen, expected in (
        (["yellow"], "yellow", 1.0),
        (["yellow"], "red", 0.75),
        (["red"], "red", 1.0),
        (["red"], "yellow", 0.75),
        (["red", "yellow"], "bright yellow", 1.0),
        (["red"], "warm color", 0.75),
    ):
        classes = Settings().replace(color_classes={"warm": meaning}).classes
        assert score_purchase(LAMP, warm, 1.0, {"color": chosen}, classes).reward == expected
    assert score_purchase(LAMP, warm, 1.0, {"color": "yellow"}).reward == 0.75  # no classes at all
    assert not matches_class("cold", "blue", {})


def test_nouns():
    assert extract_nouns("Running Shoes for Men, Washable and Waterproof, 2 Pack") == {"running", "shoe"}
    assert extract_nouns("Berries Boxes Dresses Glass") == {"berry", "box", "dress", "glass"}
    assert extract_nouns("Black and Blue") == {"black", "blue"}  # nothing else is left, so every word counts
    assert extract_nouns("12 %") == frozenset()


def test_is_same_needs_more_than_85_percent():
    assert is_same("machine washable cotton", "washable")
    assert not is_same("64 ounce", "32 gallon")


@pytest.mark.parametrize("kind", ["synthetic", "color_class"])
def test_the_listing_of_every_generated_goal_scores_one(inventory, kind):
    settings = Settings()
    colors = {"warm": "yellow", "cool": "green"}
    from webshop_server.shop import Shop

    shop = Shop(inventory, goal_kind=kind)
    for wanted in shop.goals:
        product = inventory.catalogue.product(wanted.asin)
        chosen = (("color", colors[wanted.color_class]),) if wanted.color_class else wanted.options
        assert shop.score(wanted, product, chosen, settings).reward == 1.0, wanted
        if kind == "color_class":
            assert shop.score(wanted, product, (("color", "purple"),), settings).reward == 0.75


def test_an_equal_offer_scores_one(inventory):
    from webshop_server.shop import Shop

    shop = Shop(inventory)
    offers = {}
    for product in inventory.catalogue:
        offers.setdefault(product.group, []).append(product)
    checked = 0
    for wanted in shop.goals[:2000]:
        product = inventory.catalogue.product(wanted.asin)
        if product.group:
            for other in offers[product.group]:
                # a price range is drawn for each listing on its own, the limit was drawn for the goal's
                if len(other.prices) == 1:
                    assert shop.score(wanted, other, wanted.options, Settings()).reward == 1.0
                    checked += 1
    assert checked > 500
