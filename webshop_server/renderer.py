"""Page models as HTML, and the pictures in it.

* `render_html` - the document of a page
* `render_message` - the document of an error
* `draw_picture` - an SVG of a listing, by department and colour
* `SECURITY_HEADERS` - the headers of every response

All HTML comes from `templates/`; it needs no script and nothing from another host. Inside `<main id="page">`
the text nodes are exactly `PageModel.parts`, in order; the last element of the document has the id `ready`.
"""

from __future__ import annotations

import hashlib
import secrets
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import quote

from webshop_server.page_model import PageModel, PageSection
from webshop_server.urls import PageUrl, build_path

if TYPE_CHECKING:
    from jinja2 import Template

SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Browsers load nothing from other hosts and store nothing. With `no-referrer`, they would send a form with the origin
`null`, so that the server could not recognise its own."""

HUES = {
    "black": "#2b2b2e",
    "white": "#f7f7f5",
    "red": "#c8372d",
    "yellow": "#ecc531",
    "blue": "#2f6fc4",
    "green": "#3c8d4f",
    "orange": "#e58a2b",
    "purple": "#7a4fa3",
    "pink": "#e58bb0",
    "brown": "#80583a",
    "gray": "#8d9499",
    "grey": "#8d9499",
    "teal": "#1f8a88",
}
"""The fill of a picture by colour word; other words take one of `_FALLBACK`."""

_PASTELS = ("#e8eff5", "#f3ece4", "#e9f2ea", "#f4e9ec", "#efecf6", "#f5f1df")
_FALLBACK = ("#4d7ea8", "#8a6d4f", "#5f8f6b", "#a8677c", "#7b6ca8", "#a39042")


_CACHED_DOCUMENTS = 2048
# Stand for the session's name and the task in cached documents. No text can contain them: they are random.
_SESSION_MARK, _TASK_MARK = f"session{secrets.token_hex(12)}", f"task{secrets.token_hex(12)}"


@lru_cache(maxsize=8)
def _template(name: str) -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # text observations need no templates

    environment = Environment(
        loader=PackageLoader("webshop_server", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # Filters, since Jinja2 calls functions of the context much more slowly.
    environment.filters["path"] = _build_marked_path
    environment.filters["picture"] = build_image_path
    return environment.get_template(name)


def _build_marked_path(target: PageUrl) -> str:
    return build_path(target, _SESSION_MARK)


def render_html(page: PageModel) -> str:
    """Return the document of a page.

    Documents are cached: pages that differ in the session and the task alone are rendered once.

    Example:
        >>> from webshop_server.page_model import Element, PageSection
        >>> page = PageModel(PageUrl(), "abc", (PageSection("hero", (Element("title", "1 < 2"),)),))
        >>> "<h1>1 &lt; 2</h1>" in render_html(page)
        True
    """
    task, sections = "", []
    for section in page.sections:
        if section.kind == "instruction":
            task = task or next((element.text for element in section.elements if element.name == "instruction"), "")
            section = _with_mark(section, task)
        sections.append(section)
    from markupsafe import escape  # which Jinja2 escapes with

    document = _render(page.url, tuple(sections), page.charset)
    return document.replace(_SESSION_MARK, quote(page.session_id, safe="")).replace(_TASK_MARK, escape(page.fit(task)))


def _with_mark(section: PageSection, task: str) -> PageSection:
    """Return a section with a mark in the place of the task."""
    elements = (element._replace(text=_TASK_MARK) if element.text == task else element for element in section.elements)
    return section._replace(elements=tuple(elements)) if task else section


@lru_cache(maxsize=_CACHED_DOCUMENTS)
def _render(url: PageUrl, sections: tuple[PageSection, ...], charset: frozenset[str]) -> str:
    page = PageModel(url, _SESSION_MARK, sections, charset)
    if not all(element.text.isascii() and element.text.isprintable() for element in page.elements):
        page = PageModel(url, _SESSION_MARK, _fit(sections, page), charset)
    return _template("page.html").render(page=page)


def _fit(sections: tuple[PageSection, ...], page: PageModel) -> tuple[PageSection, ...]:
    """Return sections in which characters that the page cannot show are replaced."""
    return tuple(
        section._replace(
            elements=tuple(element._replace(text=page.fit(element.text)) for element in section.elements),
            sections=_fit(section.sections, page),
        )
        for section in sections
    )


def render_message(title: str, text: str) -> str:
    """Return the document of an error.

    Args:
        title: the error in a few words.
        text: the reason.
    """
    return _template("message.html").render(title=title, text=text)


def build_image_path(asin: str, options: tuple[tuple[str, str], ...] = ()) -> str:
    """Return the path of a listing's picture, in the chosen colour.

    Example:
        >>> build_image_path("B01", (("color", "red"),))
        '/image/B01.svg?color=red'
    """
    color = dict(options).get("color")
    return f"/image/{quote(asin, safe='')}.svg" + (f"?color={quote(color, safe='')}" if color else "")


def draw_picture(asin: str, category: str, color: str = "") -> str:
    """Draw a listing.

    Args:
        asin: the listing; selects the background.
        category: the department; selects the shape.
        color: a colour word; any text.

    Returns:
        An SVG document; it contains none of the arguments' text.

    Example:
        >>> draw_picture("B01", "fashion", "red").startswith("<svg ")
        True
    """
    number = hashlib.blake2b(asin.encode("utf-8", "replace"), digest_size=2).digest()
    hue = next((HUES[word] for word in color.lower().split() if word in HUES), _FALLBACK[number[1] % len(_FALLBACK)])
    ground = _PASTELS[number[0] % len(_PASTELS)]
    return _template("picture.svg").render(category=category, hue=hue, ground=ground)
