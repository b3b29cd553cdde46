"""A page as HTML.

* `render_html` - the whole document of a page
* `render_message` - a document that says what went wrong
* `SECURITY_HEADERS` - the headers that every answer carries

The document needs no script and nothing from another host. Inside `<main id="page">` the text nodes
are exactly `Page.parts`, in order; the last element of the document has the id `ready`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from webshop_server.page_model import Page
from webshop_server.urls import Location, to_path

SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
"""What every answer carries: nothing from elsewhere is loaded, nothing is kept."""


@lru_cache(maxsize=1)
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("webshop_server", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@lru_cache(maxsize=8)
def _template(name: str) -> Template:
    return _environment().get_template(name)


def render_html(page: Page) -> str:
    """Give the document of a page.

    Example:
        >>> from webshop_server.page_model import Element, PageSection
        >>> page = Page(Location(), "abc", (PageSection("hero", (Element("title", "1 < 2"),)),))
        >>> "<h1>1 &lt; 2</h1>" in render_html(page)
        True
    """
    session_id = page.session_id

    def href(target: Location) -> str:
        return to_path(target, session_id)

    return _template("page.html").render(page=page, href=href, fit=page.fit, image=image_path)


def render_message(title: str, text: str, *, back: str = "/", label: str = "Start shopping") -> str:
    """Give a document that says what went wrong and where to go on.

    Args:
        title: what happened, in a few words.
        text: the reason.
        back: where its link leads.
        label: what its link says.
    """
    return _template("message.html").render(title=title, text=text, back=back, label=label)


def image_path(asin: str, options: tuple[tuple[str, str], ...] = ()) -> str:
    """Give the address of a listing's picture, in the chosen colour.

    Example:
        >>> image_path("B01", (("color", "red"),))
        '/image/B01.svg?color=red'
    """
    color: Any = dict(options).get("color")
    return f"/image/{quote(asin, safe='')}.svg" + (f"?color={quote(color, safe='')}" if color else "")
