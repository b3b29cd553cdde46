"""One record of the original's files: prices, options, and values that are left out."""

from __future__ import annotations

import itertools
import random

import pytest

from webshop_server.catalogue import CatalogueWriter
from webshop_server.goals import GoalSet
from webshop_server.inventory import Inventory
from webshop_server.record import MAX_TEXT, parse_prices, parse_product
from webshop_server.shop import Shop

NAN, INFINITY = float("nan"), float("inf")


def parse(left_out=None, side=None, **fields):
    found = [] if left_out is None else left_out
    return parse_product({"asin": "B1", "name": "Mug"} | fields, side, lambda *remark: found.append(remark))


@pytest.mark.parametrize(
    ("value", "prices"),
    [
        ("$19.99 - $27.99", (19.99, 27.99)),
        ("$27.99-$19.99", (19.99, 27.99)),
        ("$1,299.00", (1299.0,)),
        ("$7.49 & FREE Returns. Details", (7.49,)),
        ("$7.49 + $5.00 shipping", (7.49,)),
        ("$7.49 ($0.94 / Ounce)", (7.49,)),
        ("$7.49.", (7.49,)),
        ("$.99", (0.99,)),
        ("US$ 8", (8.0,)),
        ("$12 for 3", (12.0,)),
        ("3 for $12", (12.0,)),
        ("8.25 USD", (8.25,)),
        ("8.25", (8.25,)),
        (8.25, (8.25,)),
        (8, (8.0,)),
        (["$8.00", "$6.00"], (6.0, 8.0)),
        ([8.0], (8.0,)),
        (["$8.00", "$6.00", "$7.00"], (6.0, 8.0)),
        ("", ()),
        (None, ()),
        ([], ()),
    ],
)
def test_prices(value, prices):
    left_out = []
    assert parse(left_out, pricing=value).prices == parse_prices(value) == prices
    assert left_out == []


TEXTS = (
    "EUR 7,49",
    "£7.49",
    "CA$7.49",
    "$7,49",
    "$1.2.3",
    "-$5",
    "$-5",
    "$1.2k",
    "soon",
    "$10 2 pieces",
    "$" + "9" * 400,
)
OTHERS = (True, False, NAN, INFINITY, -INFINITY, -3, 0, 10**400, 1e9, {"a": 1}, ["$8.00", "soon"], ["$8.00", NAN])


@pytest.mark.parametrize("value", [*TEXTS, *OTHERS], ids=str)
def test_a_price_that_is_not_understood_is_named(value):
    left_out = []
    assert parse(left_out, pricing=value).prices == ()
    assert [field for field, _ in left_out] == ["pricing"]
    assert left_out[0][1].startswith("`pricing` should be a price in dollars. Received ")


FIELDS = ("name", "full_description", "average_rating", "category", "query", "product_category")


@pytest.mark.parametrize("field", [*FIELDS, "small_description", "customization_options", "images"])
def test_a_value_that_is_no_text_is_named(field):
    expected = parse(**({field: {"size": ["40"]}} if field == "customization_options" else {field: None}))
    for value in (NAN, INFINITY, -INFINITY, True, False, {"a": 1}, [[1]]):
        left_out = []
        given = [value] if field in ("small_description", "images") else value
        if field == "customization_options":
            given = {"size": [{"value": value}, {"value": 40}]}
        assert parse(left_out, **{field: given}) == expected, value
        assert [name for name, _ in left_out] == [field]


def test_values_of_the_other_files_are_named():
    left_out = []
    side = {
        "attributes": {"attributes": [NAN, "soft"], "instruction": True, "instruction_attributes": [INFINITY]},
        "reviews": {
            "average_rating": NAN,
            "reviews": [{"title": NAN, "stars": s} for s in (NAN, "x", 47, True, "4.0 x")],
        },
        "human": [3, {"instruction": "buy", "instruction_attributes": ["soft"], "instruction_options": [False, "Red"]}],
    }
    product = parse(left_out, side, average_rating="4.1")
    assert (product.attributes, product.synthetic, product.rating) == (("soft",), None, "4.1")
    assert [review.score for review in product.reviews] == [None, None, None, None, 4.0]
    assert product.human == (("buy", ("soft",), ("red",), ""),)
    assert [name for name, _ in left_out].count("stars") == 4
    assert {name for name, _ in left_out} == {
        "attributes", "instruction", "instruction_attributes", "average_rating", "reviews", "stars", "human",
        "instruction_options",
    }  # fmt: skip


def test_a_text_that_is_cut_ends_in_a_character():
    product = parse(name="mug " * 6000, average_rating="4.5 of 5 stars, all the reviews")
    assert (len(product.title), product.rating) == (MAX_TEXT - 1, "4.5 of 5 stars, all")


def test_characters_that_are_no_utf8_are_named():
    left_out = []
    text = b"Caf\xe9".decode("utf-8", "surrogateescape")
    product = parse(left_out, name=text, customization_options={"roast": [{"value": "\ud83d dark"}, {"value": "☕"}]})
    assert (product.title, product.options[0].values) == ("Caf", ("dark", "☕"))
    assert [field for field, _ in left_out] == ["name", "customization_options"]
    assert left_out[0][1] == r"`name` should be UTF-8; other characters become blanks. Received 'Caf\udce9'"


def test_groups_of_equal_names_get_other_names():
    names = [
        option.name for option in parse(customization_options={"x y": ["a"], "x y (3)": ["b"], "x  y": ["c"]}).options
    ]
    assert names == ["x y", "x y (3)", "x y (4)"]


def load_as_original(options):
    """The lines of the original's loader, on options that it takes."""
    found = {}
    for name, contents in options.items():
        if contents is not None:
            values = [content["value"].strip().replace("/", " | ").lower() for content in contents]
            found[name.lower()] = values
    return found


def values(*texts):
    return [{"value": text} for text in texts]


OPTIONS = [
    {"Color": values("Red"), "color": values("red", "blue")},
    {"SIZE": values("1", "2", "3"), "Color": values("a"), "size": values("4")},
    {"Color": values("red", "blue"), "color": None},
    {"Color": values("Red", "red", "red ")},
    {"Size": [], "Color": values("a", "b")},
    {"Size": None, "Color": values("", "b")},
    {"": values("x", "y"), "Color": values("b")},
    {"Color": values("a", "b"), "Color ": values("c", "d", "e")},
    {"Volume": values("8.4 ounce / 250 ml", "17 ounce/500 ml")},
]


def test_goals_are_numbered_as_the_originals(tmp_path):
    wanted = {"instruction": "find a mug", "instruction_attributes": ["soft"]}
    expected = []
    with CatalogueWriter(tmp_path / "s.sqlite") as writer:
        for number, options in enumerate(OPTIONS):
            left_out = []
            product = parse(left_out, {"attributes": wanted}, asin=f"B{number}", customization_options=options)
            assert left_out == []
            writer.add([product])
            loaded = load_as_original(options)
            for chosen in itertools.product(*(loaded[name] for name in sorted(loaded))):
                expected.append((product.asin, [" ".join(value.split()) for value in chosen]))
        writer.finish("x")
    random.Random(233).shuffle(expected)
    goals = GoalSet(Inventory.open(tmp_path / "s.sqlite").index)
    assert [(goal.asin, [value for _, value in goal.options]) for goal in goals] == expected


def test_a_recorded_click_with_the_originals_label_works(tmp_path):
    with CatalogueWriter(tmp_path / "s.sqlite") as writer:
        writer.add([parse(customization_options=OPTIONS[-1])])
        writer.finish("x")
    session = Shop(Inventory.open(tmp_path / "s.sqlite"), goal_kind="browse").start(0)
    session.act("search[mug]")
    session.act("click[B1]")
    assert session.act("click[8.4 ounce  |  250 ml]").error is None
    assert session.page.url.options == (("volume", "8.4 ounce | 250 ml"),)
    assert session.act("click[17 ounce | 500 ml]").error is None
    assert session.act("click[17 ounce500 ml]").error is not None
