"""When two pages of a shop, and what they lead to, count as the same."""

from __future__ import annotations

from typing import Any

import pytest
from drift_agents.envs.webshop.states import WebShopMatching, read_shop_state
from drift_agents.types import Outcome, Transition

RULE = WebShopMatching()
OTHER = "Find me travel mugs in a warm color"


def test_sessions_do_not_count(shop: Any) -> None:
    for state in (shop.start(), shop.results([("B01", "A mug", "$9.0")])[0], shop.ad()[0]):
        assert RULE.state_key(state) == RULE.state_key(state.replace("<session_id>", "x7"))


def test_choices_task_text_and_address_count(shop: Any) -> None:
    groups = {"color": ["red", "blue"]}
    states = [
        shop.item("B01", "A mug", "$9.0", groups)[0],
        shop.item("B01", "A mug", "$9.0", groups, {"color": "red"})[0],
        shop.item("B01", "A mug", "$9.5", groups)[0],
        shop.item("B02", "A mug", "$9.0", groups)[0],
        shop.item("B01", "A mug", "$9.0", groups, task=OTHER)[0],
        shop.item("B01", "A mug", "$9.0", groups, page=2)[0],
    ]
    assert len({RULE.state_key(state) for state in states}) == len(states)


def test_an_advertisement_is_the_same_page_whatever_is_bought(shop: Any) -> None:
    key = RULE.state_key(shop.ad()[0])
    assert key == RULE.state_key(shop.ad(asin="B02", task=OTHER)[0])
    assert key != RULE.state_key(shop.ad(depth=1)[0])
    assert key != RULE.state_key(shop.ad(labels="ACB")[0]), "positions are part of the page"


def test_after_an_advertisement_the_kind_of_page_counts(shop: Any) -> None:
    def press(asin: str, after: str) -> Transition:
        return Transition(shop.ad(asin=asin)[0], "click[a]", Outcome(after, 0.0, False))

    right, other_right = press("B01", shop.confirm("B01")[0]), press("B02", shop.confirm("B02", OTHER)[0])
    wrong = press("B01", shop.ad(depth=1)[0])
    assert RULE.same_outcome(right, other_right)
    assert not RULE.same_outcome(right, wrong)
    assert RULE.same_outcome(wrong, press("B02", shop.ad(depth=1, asin="B02", task=OTHER)[0]))
    assert not RULE.same_outcome(wrong, press("B01", shop.ad(depth=2)[0]))
    assert not RULE.same_outcome(right, press("B01", shop.start()))


def test_elsewhere_the_page_that_follows_counts(shop: Any) -> None:
    state = shop.results([("B01", "A mug", "$9.0")])[0]

    def click(after: str, score: float = 0.0, ended: bool = False) -> Transition:
        return Transition(state, "click[b01]", Outcome(after, score, ended))

    item = shop.item("B01", "A mug", "$9.0", {})[0]
    assert RULE.same_outcome(click(item), click(item.replace("<session_id>", "y9")))
    assert not RULE.same_outcome(
        click(item), click(shop.item("B01", "A mug", "$9.0", {}, buy="Currently unavailable")[0])
    )


def test_score_and_end_count(shop: Any) -> None:
    state = shop.item("B01", "A mug", "$9.0", {})[0]
    one, other = (Transition(state, "click[buy now]", shop.done("B01", {}, score)) for score in (1.0, 0.75))
    assert RULE.same_outcome(one, one)
    assert not RULE.same_outcome(one, other)
    assert not RULE.same_outcome(one, one._replace(outcome=one.outcome._replace(ended=False)))


@pytest.mark.parametrize("text", ['{"cur_pos": [0, 0]}', "nothing", "[1]", '{"html": 3, "url": "http://h/s"}', "7"])
def test_other_texts_are_compared_as_they_are(text: str) -> None:
    assert read_shop_state(text) is None
    assert RULE.state_key(text) == text
    step = Transition(text, "0", Outcome(text, 0.0, False))
    assert RULE.same_outcome(step, step)
    assert not RULE.same_outcome(step, step._replace(outcome=Outcome(text + " ", 0.0, False)))
    assert RULE.related(text, "other")


@pytest.mark.parametrize("options", ["%7B%22a%22", "[]", "7", "%7B%7D"])
def test_options_that_cannot_be_read_are_none(options: str) -> None:
    page = read_shop_state(f'{{"html": "x", "url": "http://h/item_page/s/B01/k/1/{options}"}}')
    assert page is not None
    assert page.options == ()
    assert page.asin == "B01"


def test_related_states_are_those_of_the_task(shop: Any) -> None:
    item, advert = shop.item("B01", "A mug", "$9.0", {"color": ["red"]})[0], shop.ad()[0]
    assert RULE.related(shop.start(), item)
    assert not RULE.related(shop.start(OTHER), item)
    assert not RULE.related(item, advert)
    assert not RULE.related(advert, item)
    assert RULE.related(advert, shop.ad(depth=2, task=OTHER)[0])


def test_purchases_of_the_same_class_of_colours_are_related(shop: Any) -> None:
    groups = {"color": ["red", "blue"]}
    warm = "Find me a rug in a warm color"
    bought = shop.item("B01", "A mug", "$9.0", groups, {"color": "red"}, task=OTHER)[0]
    assert RULE.related(shop.start(warm), bought)
    assert not RULE.related(shop.start("Find me a rug in a cool color"), bought)
    assert not RULE.related(shop.start("Find me a rug"), bought)
    assert not RULE.related(shop.start(warm), shop.item("B01", "A mug", "$9.0", groups, task=OTHER)[0])
