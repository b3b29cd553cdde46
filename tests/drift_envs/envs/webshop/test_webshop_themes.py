"""Themes change the look of documents and nothing else."""

from __future__ import annotations

import re
from urllib.request import urlopen

import pytest

from drift_envs.envs.webshop.env import WebShop
from webshop_server.errors import SettingsError
from webshop_server.parser import parse_html
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
        assert "data-theme" not in document
        assert f'data-theme="{theme}"' in other_document
        one, other = parse_html(document), parse_html(other_document)
        assert one.parts == other.parts
        assert list(one.clickables) == list(other.clickables)
        paths.add(re.search(r'<body class="([^"]*)"', other_document)[1])
    assert len(paths) >= 5, paths


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
        assert f'html[data-theme="{era}"] .option' in styles
        assert f'html[data-theme="{era}"] button' in styles
    assert "url(" not in styles
    assert "@import" not in styles


def test_other_themes_are_refused() -> None:
    with pytest.raises(SettingsError, match=r"`theme` should be one of standard, hypertext.* Received 'baroque'"):
        Settings(theme="baroque")
