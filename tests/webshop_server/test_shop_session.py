"""Sessions in process."""

from __future__ import annotations

import copy
import pickle
import random
import re

import pytest

from webshop_server.errors import ArgumentError, SessionError
from webshop_server.page_model import SEPARATOR
from webshop_server.shop import Shop
from webshop_server.urls import PageKind, PageUrl


def products_on(session):
    return [element.text for element in session.page.elements if element.kind == "product"]


def go_to_goal(session):
    """Search until the goal's own listing is on a page, and open it."""
    title = session.shop.inventory.catalogue.product(session.goal.asin).title
    assert session.act(f"search[{title}]").error is None
    while session.goal.asin not in products_on(session):
        assert session.act("click[next >]").error is None
    assert session.act(f"click[{session.goal.asin}]").error is None


def choose_options(session):
    for wanted in session.goal.options:
        label = next(e.label for e in session.page.elements if e.kind == "option" and (e.name, e.text) == wanted)
        assert session.act(f"click[{label}]").error is None


def test_a_purchase(shop):
    session = shop.start(11)
    assert session.page.text.startswith(f"WebShop [SEP] Instruction: [SEP] {session.goal.text} [SEP] Search")
    go_to_goal(session)
    choose_options(session)
    outcome = session.act("CLICK[Buy NOW]")
    assert (outcome.reward, outcome.is_done, outcome.error) == (1.0, True, None)
    assert session.page.text == "Thank you for shopping with us! [SEP] Your score (min 0.0, max 1.0) [SEP] 1.0"
    assert session.available_actions == {"has_search_bar": False, "clickables": []}


def test_results_come_in_pages_of_ten(shop):
    session = shop.start(0)
    session.act("search[made for easy to live with]")
    assert "Page 1 (Total results: 50)" in session.page.parts
    seen = products_on(session)
    assert "< prev" not in session.page.clickables
    for page in range(2, 6):
        session.act("click[Next >]")
        assert f"Page {page} (Total results: 50)" in session.page.parts
        seen += products_on(session)
    assert len(set(seen)) == 50
    assert "next >" not in session.page.clickables  # the original's never ends
    assert session.act("click[next >]").error == "there is no button 'next >' on this page"
    session.act("click[< prev]")
    assert session.page.url.page_number == 4


def test_sub_pages_and_prev(shop):
    session = shop.start(0)
    go_to_goal(session)
    choose_options(session)
    here = session.page
    product = session.shop.inventory.catalogue.product(session.goal.asin)
    for name, words in (
        ("Description", product.description),
        ("Features", product.bullets[1]),
        ("Reviews", product.reviews[0].body),
    ):
        session.act(f"click[{name}]")
        assert words in session.page.parts
        assert session.page.url.sub_page == name
        session.act("click[< Prev]")
        assert session.page == here
    assert session.act("click[Attributes]").error
    session.configure(show_attributes=True)
    session.act("click[Description]")
    session.act("click[< prev]")
    session.act("click[attributes]")
    assert set(product.attributes) <= set(session.page.parts)


def test_options_are_marked_and_replaced(shop):
    session = shop.start(0)
    go_to_goal(session)
    name, values = session.shop.inventory.catalogue.product(session.goal.asin).options[0]
    session.act(f"click[{values[0]}]")
    session.act(f"click[{values[1]}]")
    assert session.page.url.options == ((name, values[1]),)
    assert session.page.text_rich.startswith(f"You have clicked {values[1]}.\nInstruction:\n")
    assert f"  [clicked button] {values[1]} [clicked button_]\n" in session.page.text_rich
    assert f"  [button] {values[0]} [button_]\n" in session.page.text_rich
    session.act("click[< prev]")  # results forget what was chosen, as in the original
    session.act(f"click[{session.goal.asin}]")
    assert session.page.url.options == ()
    session.act("click[< prev]")
    assert f"\n[clicked button] {session.goal.asin} [clicked button_]\n" in session.page.text_rich


BAD = [
    "",
    "click",
    "click[]",
    "search[]",
    "search[   ]",
    "search[\x00]",
    "buy[it]",
    "click[nothing]",
    "click[search]",
    "click[x",
    "click[\ud800]",
    "a" * 100_000,
    "search[" + "a" * 100_000 + "]",
    None,
    7,
    b"click[search]",
]


@pytest.mark.parametrize("action", BAD, ids=lambda action: repr(action)[:30])
def test_an_invalid_action_changes_nothing(shop, action):
    session = shop.start(0)
    before = pickle.dumps(session)
    outcome = session.act(action)
    assert outcome.error
    assert len(outcome.error) < 300
    assert (outcome.reward, outcome.is_done) == (0.0, False)
    assert pickle.dumps(session) == before


@pytest.mark.parametrize(
    "words",
    [
        "a" * 4000,
        '"unbalanced',
        "..",
        "日本語 👩‍👩‍👧 ñandú",
        "a[b]c",
        "x\ud800y",
    ],
    ids=lambda words: words[:12].encode("unicode_escape").decode(),
)
def test_any_words_can_be_searched(shop, words):
    session = shop.start(0)
    outcome = session.act(f"search[{words}]")
    assert outcome.error is None
    assert outcome.page.url.kind is PageKind.RESULTS
    assert outcome.page.path.isascii()


def test_the_session_is_over_after_a_purchase(shop):
    session = shop.start(3)
    go_to_goal(session)
    item = session.page.url
    session.act("click[buy now]")
    reward, page = session.reward, session.page
    for action in ("click[buy now]", "click[back to search]", "search[lamp]"):
        outcome = session.act(action)
        assert outcome.error == "the session is over: something has been bought"
        assert (outcome.reward, outcome.is_done, outcome.page) == (0.0, True, page)
    for place in (item, PageUrl(), PageUrl(PageKind.DONE, asin=item.asin, options=(("x", "y"),))):
        assert session.visit(place) is page  # the Back button of a browser
    assert session.reward == reward


def test_unknown_urls_are_refused(shop):
    session = shop.start(0)
    asin = shop.goals[0].asin
    here = session.page
    for place, reason in (
        (PageUrl(PageKind.ITEM, asin="B0NOTHING0"), "there is no product 'B0NOTHING0'"),
        (PageUrl(PageKind.ITEM, asin=asin, options=(("color", "nope"),)), "has no option 'color' with value 'nope'"),
        (PageUrl(PageKind.SUB, asin=asin, sub_page="Secrets"), "has no page 'Secrets'"),
        (PageUrl(PageKind.SUB, asin=asin, sub_page="Attributes"), "has no page 'Attributes'"),
        (PageUrl(PageKind.DONE, asin="x"), "there is no product 'x'"),
    ):
        with pytest.raises(ArgumentError, match=re.escape(reason)):
            session.visit(place)
        assert session.page is here
    for page, shown in ((0, 1), (-5, 1), (10**9, 5), (6, 5)):
        assert session.visit(PageUrl(PageKind.RESULTS, "made easy", page)).url.page_number == shown


def test_nothing_of_the_goal_reaches_the_last_page(shop):
    from webshop_server.renderer import render_html

    for index in range(30):
        session = shop.start(index)
        session.act("search[zip]")
        session.act(f"click[{products_on(session)[0]}]")
        if session.page.url.asin == session.goal.asin:
            continue
        session.act("click[buy now]")
        for text in (session.page.text, session.page.text_rich, render_html(session.page)):
            goal = session.goal
            for secret in (goal.asin, goal.title, goal.text, goal.query, *goal.attributes, "r_type", "price_upper"):
                assert secret.lower() not in text.lower()


def test_copies_are_independent(shop):
    session = shop.start(5)
    session.configure(price_factor=2.0)
    go_to_goal(session)
    for twin in (copy.deepcopy(session), pickle.loads(pickle.dumps(session))):
        assert twin.page == session.page
        assert twin.shop.inventory is session.shop.inventory
        twin.configure(ad_page=True)
        twin.act("click[buy now]")
        twin.shop.configure(price_factor=3.0)
        assert twin.page.url.kind is PageKind.AD
    assert session.page.url.kind is PageKind.ITEM
    assert not session.settings.ad_page
    assert shop.settings.price_factor == 1.0


def test_sessions_are_deterministic(inventory):
    def walk():
        rng = random.Random(3)
        session = Shop(inventory).start(2)
        texts = [session.page.text]
        for _ in range(60):
            labels = list(session.page.clickables)
            action = (
                "search[soft cotton shirt]" if session.page.has_search_bar else f"click[{rng.choice(labels or ['x'])}]"
            )
            texts.append(session.act(action).page.text_rich)
        return texts

    assert walk() == walk()


def test_labels_that_collide_can_all_be_clicked(tmp_path):
    from webshop_server.catalogue import CatalogueWriter
    from webshop_server.inventory import Inventory
    from webshop_server.product import Instruction, Option, Product

    product = Product(
        "B1",
        "Odd Thing",
        synthetic=Instruction("Find me an odd thing", ("odd",)),
        attributes=("odd",),
        options=(
            Option("size", ("large", "buy now", "large", "< prev")),
            Option("width", ("large", "description", "a[b]", "İstanbul")),
        ),
    )
    with CatalogueWriter(tmp_path / "a.sqlite") as writer:
        writer.add([product])
        inventory = Inventory(writer.finish("x"))
    for index in range(16):
        session = Shop(inventory).start(index)
        session.act("search[odd]")
        session.act("click[b1]")
        choose_options(session)
        assert session.act("click[buy now]").reward == 1.0


def test_text_is_cut_and_holds_known_characters_only(inventory):
    shop = Shop(inventory, max_length=80)
    session = shop.start(0)
    session.act("search[shirt]")
    assert len(session.page.text) == len(session.page.text_rich) == 80
    goal = session.goal.__class__(**{**session.goal.__dict__, "text": "snow ☃ man"})
    assert "snow ? man" in Shop(inventory).start(goal).page.text
    assert SEPARATOR in session.page.text


def test_unknown_goals_are_refused(shop):
    with pytest.raises(ArgumentError, match="`goal_index` should be a whole number in the interval"):
        shop.start(10**9)


def test_direct_calls_raise(shop):
    session = shop.start(0)
    with pytest.raises(ArgumentError, match="there is no button 'x'"):
        session.click("x")
    session.search("shirt")
    with pytest.raises(ArgumentError, match="there is no search bar on this page"):
        session.search("shirt")
    session.click(products_on(session)[0])
    session.click("buy now")
    with pytest.raises(SessionError, match="the session is over"):
        session.search("shirt")
