"""The shop's pages as observations and actions.

* `OBSERVATION_MODES`, `LENGTHS` - the observation modes and their maximum lengths
* `format_state` - a page as a JSON state
* `list_actions` - the valid actions of a page
* `fit` - a text restricted to a character set
* `hide_session` - a path without the session
"""

from __future__ import annotations

import json
from collections.abc import Container

from webshop_server.page_model import MAX_LENGTH, ShownPage

OBSERVATION_MODES = ("text", "text_rich", "html", "url+text")
"""The visible texts; the same with marks for buttons; the HTML; a JSON state of texts and URL."""

HOST = "http://127.0.0.1:3000"
"""The host of URLs in observations, as in the GLOVE paper, for all backends."""

LENGTHS = {"text": 1, "text_rich": 2, "html": 8, "url+text": 3}
"""The maximum length of an observation by mode, as a multiple of `max_length`."""


def format_state(page: ShownPage, max_length: int = MAX_LENGTH) -> str:
    """Return a page as a JSON state: its visible texts, one a line, and its URL (GLOVE, appendix B.3).

    Args:
        page: the page.
        max_length: the maximum length of its text, in characters.
    """
    state = {"html": "\n".join(page.parts)[:max_length], "url": HOST + hide_session(page.path)}
    return json.dumps(state, ensure_ascii=False)


def list_actions(page: ShownPage, words: str) -> list[str]:
    """Return the valid actions of a page: a search first if it has a search bar, then every click, in order.

    Args:
        page: the page.
        words: the query.
    """
    clicks = [f"click[{label}]" for label, target in page.clickables.items() if target is not None]
    return [f"search[{words}]", *clicks] if page.has_search_bar else clicks


def fit(text: str, charset: Container[str]) -> str:
    """Replace the characters of a text outside a character set by `?`.

    Args:
        text: the text.
        charset: the character set.

    Example:
        >>> fit("tea €5", "tea 5")
        'tea ?5'
    """
    return "".join(char if char in charset else "?" for char in text)


def hide_session(path: str) -> str:
    """Replace the session in a path, so that equal pages have equal URLs.

    Args:
        path: the path of a URL of the shop.

    Example:
        >>> hide_session("/search_results/7f3a/red+shoes/1"), hide_session("/7f3a")
        ('/search_results/<session_id>/red+shoes/1', '/<session_id>')
    """
    parts = path.split("/")
    parts[1 if len(parts) == 2 else 2] = "<session_id>"
    return "/".join(parts)
