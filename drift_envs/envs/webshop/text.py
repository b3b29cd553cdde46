"""The shop's pages as observations and actions.

* `OBSERVATION_MODES` - what an observation can be
* `LENGTHS` - how long it can get
* `format_state` - a page as JSON state
* `list_actions` - what can be done on a page
* `fit` - a text in the shop's characters
* `hide_session` - an address that is the same in every session
"""

from __future__ import annotations

import json
from collections.abc import Container

from webshop_server.page_model import MAX_LENGTH, ShownPage

OBSERVATION_MODES = ("text", "text_rich", "html", "url+text")
"""Visible texts; the same with marks for buttons; the document; a JSON state of texts and address."""

HOST = "http://127.0.0.1:3000"
"""The host that addresses in observations have, as in the GLOVE paper, wherever the shop runs."""

LENGTHS = {"text": 1, "text_rich": 2, "html": 8, "url+text": 3}
"""How many times as long as the page's text an observation can get, by mode."""


def format_state(page: ShownPage, max_length: int = MAX_LENGTH) -> str:
    """A page as JSON state: its visible texts, one a line, and its address (GLOVE, appendix B.3).

    Args:
        page: the page.
        max_length: how long its text may be, in characters.
    """
    state = {"html": "\n".join(page.parts)[:max_length], "url": HOST + hide_session(page.path)}
    return json.dumps(state, ensure_ascii=False)


def list_actions(page: ShownPage, words: str) -> list[str]:
    """What can be done on a page: where it has a search bar, a search first; then every button, in their order.

    Args:
        page: the page.
        words: what to search for.
    """
    clicks = [f"click[{label}]" for label, target in page.clickables.items() if target is not None]
    return [f"search[{words}]", *clicks] if page.has_search_bar else clicks


def fit(text: str, charset: Container[str]) -> str:
    """A text in the shop's characters, with question marks for others.

    Args:
        text: the text.
        charset: the characters.

    Example:
        >>> fit("tea €5", "tea 5")
        'tea ?5'
    """
    return "".join(char if char in charset else "?" for char in text)


def hide_session(path: str) -> str:
    """An address that is the same in every session.

    Args:
        path: an address of the shop, without host.

    Example:
        >>> hide_session("/search_results/7f3a/red+shoes/1"), hide_session("/7f3a")
        ('/search_results/<session_id>/red+shoes/1', '/<session_id>')
    """
    parts = path.split("/")
    parts[1 if len(parts) == 2 else 2] = "<session_id>"
    return "/".join(parts)
