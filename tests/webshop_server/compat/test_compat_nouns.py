"""The noun rule against the published tests of the original's score."""

from __future__ import annotations

import re

import pytest

from webshop_server.compat.goal import count_nouns, load_tagger
from webshop_server.errors import ArgumentError
from webshop_server.goals import Goal
from webshop_server.product import Product
from webshop_server.reward import extract_nouns, score_purchase

CORD = "Saireed UL Listed 2 Prong Power Cord for JBL Bar 3.1 Bar 2.1 Channel 4K Ultra HD Soundbar"
OTHER_CORD = (
    "BRST AC Power Cord Outlet Socket Cable Plug Lead for Panasonic SC-HT830V DVD/VCR Combo Home Theater System"
)
KNOB = "Rusticware 921ORB Kitchen and Bath Cabinet Knob"
TWEEZERS = "Minkissy 2pcs Stainless Steel Eyebrow Tweezers Blackhead Acne Remover Portable Makeup Tweezers (Silver)"
SHOES = "Mens D.O.N. Issue 2 Gca Basketball Sneakers Shoes Casual - Off White"
OTHER_SHOES = "PEAK High Top Mens Basketball Shoes Lou Williams Streetball Master Breathable Non Slip Outdoor Sneakers"


def score(bought, wanted, nouns, **fields):
    goal = Goal("", "", wanted, "", "Query 1", "a › b › c", **fields)
    product = Product(
        "B1",
        bought,
        "Best shampoo on the market, made with natural ingredients",
        # The original's test gives its bullet points as one text, whose letters it joins by blanks: they match nothing.
        bullets=(" ".join("This shampoo has essential oils and smells like lemons"),),
        query="Query 2",
        product_category="a › d › e",
    )
    return score_purchase(product, goal, 35.0, {"color": "grey", "size": "XL"}, nouns=nouns)


def test_the_originals_test_of_the_score():
    fields = {
        "attributes": ("tea tree", "essential oils", "natural ingredients"),
        "options": (("color", "grey"), ("size", "XL"), ("amount", "pack of 12")),
        "price_upper": 40.0,
    }
    assert score(OTHER_CORD, CORD, count_nouns, **fields).reward == pytest.approx(0.2857, abs=1e-2)
    assert score(OTHER_CORD, CORD, extract_nouns, **fields).reward == pytest.approx(0.5714, abs=1e-2)


@pytest.mark.parametrize(
    ("wanted", "bought", "share"),
    [
        (CORD, OTHER_CORD, 0.15),
        (f"{CORD} Home Theater System Subwoofer", OTHER_CORD, 0.3),
        (KNOB, TWEEZERS, 0.0),
        (SHOES, OTHER_SHOES, 0.333),
    ],
)
def test_the_originals_tests_of_titles(wanted, bought, share):
    assert score(bought, wanted, count_nouns, attributes=("x",)).title_score == pytest.approx(share, abs=1e-2)


def test_a_repeated_noun_counts_each_time():
    assert score("Bar", "Bar Bar Cord", count_nouns, attributes=("x",)).title_score == pytest.approx(1 / 3)
    assert count_nouns("Men's D.O.N. Issue - Off White, 12 oz") == ("d.o.n", "issue", "off", "white", "oz")


def test_a_missing_model_is_refused():
    with pytest.raises(ArgumentError, match=re.escape("`spacy` is not installed") + "|an installed model of spaCy"):
        load_tagger("no_such_model")
