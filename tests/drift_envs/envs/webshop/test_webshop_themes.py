"""Themes change the look of documents and nothing else."""

from __future__ import annotations

import itertools
import re
from urllib.request import urlopen

import pytest

from drift_envs.envs.webshop.env import WebShop
from webshop_server.errors import SettingsError
from webshop_server.page_model import parse_html
from webshop_server.settings import THEMES, Settings

ERAS = THEMES[1:]


def play(shop: WebShop) -> list[tuple[str, dict, str]]:
    """Every kind of page: observation, info and document."""
    seen = [(*shop.reset(seed=0), shop.backend.html())]
    for pick in (0, 2, None, "click[description]", "click[< prev]", "click[buy now]", "click[a]"):
        actions = seen[-1][1]["actions"]
        product = next((action for action in actions if re.fullmatch(r"click\[b0\w+\]", action)), actions[-1])
        action = pick if isinstance(pick, str) else product if pick is None else actions[pick]
        observation, _, _, _, info = shop.step(action)
        seen.append((observation, info, shop.backend.html()))
    return seen


@pytest.mark.parametrize("theme", ERAS)
def test_a_theme_changes_documents_alone(theme: str) -> None:
    plain, themed = WebShop(), WebShop()
    for shop in (plain, themed):
        shop.ad_page = True
    themed.theme = theme
    paths = set()
    for (text, info, document), (other_text, other_info, other_document) in zip(play(plain), play(themed), strict=True):
        assert (text, info) == (other_text, other_info)
        assert not re.search(rf'["\\s]{theme}["\\s]|data-theme', other_document)  # no attribute names the era
        one, other = parse_html(document), parse_html(other_document)
        assert one.parts == other.parts
        assert list(one.clickables) == list(other.clickables)
        paths.add(re.search(r'<body class="([^"]*)"', other_document)[1])
    assert len(paths) >= 5, paths


def outline(document: str) -> tuple[list[str], list[str], str]:
    """The elements within `main`, those around it, and the words around it."""
    around, _, rest = document.partition('<main id="page"')
    within, _, after = rest.partition("</main>")
    tags = [re.findall(r"<([a-z0-9]+)", part) for part in (within, around + after)]
    return tags[0], tags[1], re.sub(r"<[^>]*>|\s+", " ", around + after)


def test_every_era_builds_and_words_its_documents_in_its_own_way() -> None:
    seen: dict[str, list[tuple[list[str], list[str], str]]] = {}
    for theme in THEMES:
        shop = WebShop()
        shop.theme, shop.ad_page = theme, True
        seen[theme] = [outline(document) for _, _, document in play(shop)]
    for one, other in itertools.combinations(THEMES, 2):
        results = [seen[theme][1] for theme in (one, other)]
        assert results[0][0] != results[1][0], (one, other)
        assert all(first[1:] != second[1:] for first, second in zip(seen[one], seen[other], strict=True)), (one, other)


@pytest.mark.parametrize("page", ["item", "confirm"])
def test_a_renamed_button_is_told_by_its_words_alone(page: str) -> None:
    documents = []
    for labels in ({}, {"Buy Now": "Add to Bag", "Description": "About", "Place Order": "Finish"}):
        shop = WebShop()
        shop.ad_page, shop.ad_right_button, shop.button_labels = True, "A", labels
        shop.reset(seed=0)
        info = shop.step("search[shirt]")[4]
        shop.step(next(action for action in info["actions"] if re.fullmatch(r"click\[b0\w+\]", action)))
        if page == "confirm":
            shop.step(f"click[{labels.get('Buy Now', 'Buy Now')}]")
            shop.step("click[a]")
        document = shop.backend.html()
        assert "purchase" not in document
        assert "/done/" not in document
        documents.append(document)
    assert ("Description" in documents[1]) is False
    renamed = documents[1].replace("Add to Bag", "Buy Now").replace("Finish", "Place Order")
    if page == "confirm":
        assert renamed == documents[0]
    else:
        assert f"/{'Description'}/" in documents[0]
        assert re.sub(r".*(About|Description).*", "", renamed) == re.sub(r".*(About|Description).*", "", documents[0])


@pytest.mark.integration
@pytest.mark.parametrize("theme", ["tables", "dark"])
def test_backends_agree(theme: str) -> None:
    shops = [WebShop(backend=backend) for backend in ("in_process", "http")]
    try:
        for shop in shops:
            shop.ad_page, shop.theme = True, theme
        assert play(shops[0]) == play(shops[1])
    finally:
        shops[1].close()


@pytest.mark.integration
def test_the_style_sheet_is_served_and_covers_every_era() -> None:
    shop = WebShop(backend="http")
    try:
        shop.reset(seed=0)
        with urlopen(f"{shop.backend.server.base_url}/static/themes.css", timeout=10) as reply:
            styles = reply.read().decode()
    finally:
        shop.close()
    for era in ERAS:
        assert re.search(rf'html\[data-theme="{era}"\], html:has\(.*\)\) \.option', styles)
        assert re.search(rf'html\[data-theme="{era}"\], html:has\(.*\)\) button', styles)
    assert "url(" not in styles
    assert "@import" not in styles


def test_other_themes_are_refused() -> None:
    with pytest.raises(SettingsError, match=r"`theme` should be one of standard, hypertext.* Received 'baroque'"):
        Settings(theme="baroque")
