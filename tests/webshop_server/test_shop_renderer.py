"""HTML, its parsed form, and the page model agree."""

from __future__ import annotations

import random
import re

import pytest

from webshop_server.page_model import parse_html
from webshop_server.renderer import render_html, render_message
from webshop_server.settings import Settings
from webshop_server.shop import Shop
from webshop_server.urls import PageKind, PageUrl, build_path

_WORDS = """red blue shoes cotton lamp tea chocolate speaker rug women's dress machine washable sofa < > & \" '"""
WORDS = _WORDS.split(" ")


def walk(shop, seed, steps):
    """Visit pages at random, new sessions and settings included."""
    rng = random.Random(seed)
    session = shop.start(rng.randrange(len(shop.goals)))
    for _ in range(steps):
        yield session.page
        if session.is_done:
            session = shop.start(rng.randrange(len(shop.goals)))
        session.configure(
            ad_page=rng.random() < 0.7,
            ad_right_button=rng.choice("ABC"),
            show_attributes=rng.random() < 0.5,
            sold_out=("offer:0",) if rng.random() < 0.2 else (),
            button_labels={"Buy Now": "Add <to> Bag"} if rng.random() < 0.3 else {},
        )
        labels = list(session.page.clickables)
        if session.page.has_search_bar:
            session.act(f"search[{' '.join(rng.sample(WORDS, 2))}]")
        else:
            rng.shuffle(labels)
            session.act(f"click[{rng.choice(labels[:2] + labels[-1:])}]")


@pytest.mark.parametrize("kind", ["synthetic", "color_class"])
def test_a_parsed_document_equals_its_page_model(inventory, kind):
    kinds = set()
    for page in walk(Shop(inventory, goal_kind=kind), 4, 600):
        kinds.add(page.url.kind)
        document = render_html(page)
        read = parse_html(document, page.path)
        assert read.parts == page.parts
        assert read.text == page.text
        assert read.text_rich == page.text_rich
        assert list(read.clickables) == list(page.clickables)
        assert read.has_search_bar == page.has_search_bar
        for label, target in page.clickables.items():
            form = read.clickables[label]
            if target is None:
                assert form is None
            elif target.kind is PageKind.AD:
                assert form == ("POST", page.path, (("button", target.button),))
            elif target.kind is PageKind.DONE:
                assert (form.method, form.path) == ("POST", page.path)
                assert [(name, value.lower()) for name, value in form.fields] == [("button", label)]
            else:
                assert form == ("GET", build_path(target, page.session_id), ())
        assert read.reward == (float(page.parts[-1]) if page.url.kind is PageKind.DONE else None)
    assert kinds == set(PageKind)


@pytest.mark.integration
def test_parsed_documents_of_the_originals_catalogue(real_inventory):
    for page in walk(Shop(real_inventory), 1, 300):
        read = parse_html(render_html(page), page.path)
        assert (read.text, read.text_rich) == (page.text, page.text_rich)
        assert list(read.clickables) == list(page.clickables)
        assert set(page.text) <= Shop(real_inventory).charset


def test_documents_need_no_script_and_nothing_from_elsewhere(inventory):
    for page in walk(Shop(inventory), 9, 150):
        document = render_html(page)
        assert "<script" not in document
        assert "<style" not in document
        assert not re.search(r"\son[a-z]+=|\sstyle=|javascript:", document)
        for address in re.findall(r'(?:src|href|action)="([^"]*)"', document):
            assert address.startswith(("/", "#"))
            assert not address.startswith("//")
        assert document.count('id="ready"') == 1
        assert document.index('id="ready"') > document.index("</main>")


def test_documents_can_be_used_without_a_mouse_or_a_screen(inventory):
    session = Shop(inventory).start(0)
    start = render_html(session.page)
    assert '<html lang="en">' in start
    assert 'aria-label="Search words"' in start
    session.visit(PageUrl(PageKind.RESULTS, "shirt"))
    results = render_html(session.page)
    assert results.count("<img ") == results.count('alt=""')
    session.visit(PageUrl(PageKind.ITEM, "shirt", 1, session.goal.asin, session.goal.options))
    item = render_html(session.page)
    assert item.count('aria-current="true"') == len(session.goal.options)
    assert 'role="group" aria-label=' in item
    assert item.count("<h1>") == 1
    assert not re.search(r'tabindex="[1-9]', item)


def test_everything_is_escaped(tmp_path):
    from webshop_server.catalogue import CatalogueWriter
    from webshop_server.inventory import Inventory
    from webshop_server.product import Instruction, Option, Product, Review

    evil = "</p><script>alert('x')</script>\"'&{{7*7}}"
    product = Product(
        "B<\"'&/?#%",
        evil,
        evil,
        (evil,),
        (1.0,),
        evil,
        evil,
        evil,
        evil,
        (evil,),
        (Option(evil, (evil.lower(), "../..", "a/b?c#d")),),
        (Review(evil, 3.0, evil),),
        evil,
        synthetic=Instruction(evil, (evil,)),
    )
    with CatalogueWriter(tmp_path / "a.sqlite") as writer:
        writer.add([product])
        inventory = Inventory(writer.finish("x"))
    shop = Shop(inventory, Settings(show_attributes=True))
    kinds = set()
    for page in walk(shop, 0, 60):
        session = page
        kinds.add(page.url.kind)
        document = render_html(session)
        assert "<script" not in document
        assert parse_html(document, page.path).text == page.text
    session = shop.start(0)
    session.act("search[script alert]")
    session.act("click[" + product.asin + "]")
    for name in ("Description", "Features", "Reviews", "Attributes"):
        session.act(f"click[{name}]")
        document = render_html(session.page)
        assert "<script" not in document
        assert evil in session.page.text or evil in " ".join(session.page.parts)
        session.act("click[< prev]")
    for label in list(session.page.clickables)[2:5]:
        assert session.act(f"click[{label}]").error is None
    assert "<script" not in render_message(evil, evil)


def test_a_cached_document_takes_session_and_task_of_its_own_page(inventory):
    """Pages that differ in nothing but session and task share a cached document."""
    shop = Shop(inventory)
    tasks = ("a <b>mug</b> & 'more'", "session", "a <b>mug</b> & 'more'", "", "caf\u2603")
    documents = []
    for number, task in enumerate(tasks):
        session = shop.start(shop.goals[0].__class__(**{**vars(shop.goals[0]), "text": task}), f"name{number}")
        session.search("shirt")
        session.click(next(label for label in session.page.clickables if label.startswith("b0")))
        document = render_html(session.page)
        read = parse_html(document, session.page.path)
        assert (read.parts, list(read.clickables)) == (session.page.parts, list(session.page.clickables))
        assert set(re.findall(r"name\d", document)) == {f"name{number}"}
        documents.append(document.replace(f"name{number}", "name"))
    assert documents[0] == documents[2] != documents[1]
