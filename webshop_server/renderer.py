"""Page models as HTML.

* `render_html` - the document of a page
* `render_message` - the document of an error
* `build_image_path` - the path of a listing's picture
* `SECURITY_HEADERS` - the headers of every response

All HTML comes from `templates/`, where `eras.html` says how each era builds and words a document. It needs no script
and nothing from another host. Inside `<main id="page">` the text nodes are exactly `PageModel.parts`, in order; the
last element of the document has the id `ready`. Purchases and renamed buttons are sent to the page's own address with
their label, so that neither a class nor an address tells what a button does.
"""

from __future__ import annotations

import secrets
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import quote

from webshop_server.page_model import Element, PageModel, PageSection
from webshop_server.picture import find_colored_choice
from webshop_server.settings import LABELS
from webshop_server.urls import PageKind, PageUrl, build_path

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
    environment.filters["name"] = name_page
    environment.globals["labels"] = LABELS
    return environment.get_template(name)


def name_page(page: PageModel) -> str:
    """Return what a page is called: in its title, and as its heading where its texts have none.

    Args:
        page: the page.

    Example:
        >>> name_page(PageModel(PageUrl(PageKind.RESULTS, "red mug", 2), "abc", ()))
        'Results for red mug, page 2'
    """
    url = page.url
    if url.kind is PageKind.START:
        return "Search"
    if url.kind is PageKind.RESULTS:
        return page.fit(f"Results for {url.keywords}, page {url.page_number}")
    listing = next((element.name for element in page.elements if element.kind == "listing"), None)
    if listing is not None:
        return f"{url.sub_page} of {listing}"
    return next((element.text for element in page.elements if element.kind == "title"), "Page")


def _build_marked_path(target: PageUrl) -> str:
    return build_path(target, _SESSION_MARK)


def render_html(page: PageModel, template: str = "page.html") -> str:
    """Return the document of a page.

    Documents are cached: pages that differ in the session and the task alone are rendered once.

    Args:
        page: the page.
        template: `page.html`, or `original.html` with the elements and ids of the original's pages.

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

    document = _render(template, page.url, tuple(sections), page.charset, page.theme)
    return document.replace(_SESSION_MARK, quote(page.session_id, safe="")).replace(_TASK_MARK, escape(page.fit(task)))


def _with_mark(section: PageSection, task: str) -> PageSection:
    """Return a section with a mark in the place of the task."""
    elements = (element._replace(text=_TASK_MARK) if element.text == task else element for element in section.elements)
    return section._replace(elements=tuple(elements)) if task else section


@lru_cache(maxsize=_CACHED_DOCUMENTS)
def _render(template: str, url: PageUrl, sections: tuple[PageSection, ...], charset: frozenset[str], theme: str) -> str:
    page = PageModel(url, _SESSION_MARK, sections, charset, theme=theme)
    shown = (f"{element.text}{element.name}" for element in page.elements)
    if not all(text.isascii() and text.isprintable() for text in shown):
        page = PageModel(url, _SESSION_MARK, _fit(sections, page), charset, theme=theme)
    return _template(template).render(page=page)


def _fit(sections: tuple[PageSection, ...], page: PageModel) -> tuple[PageSection, ...]:
    """Return sections in which characters that the page cannot show are replaced."""
    return tuple(
        section._replace(
            elements=tuple(_fit_element(element, page) for element in section.elements),
            sections=_fit(section.sections, page),
        )
        for section in sections
    )


def _fit_element(element: Element, page: PageModel) -> Element:
    name = page.fit(element.name) if element.kind == "listing" else element.name  # a title, which is shown
    return element._replace(text=page.fit(element.text), name=name)


def render_message(title: str, text: str) -> str:
    """Return the document of an error.

    Args:
        title: the error in a few words.
        text: the reason.
    """
    return _template("message.html").render(title=title, text=text)


def build_image_path(asin: str, options: tuple[tuple[str, str], ...] = ()) -> str:
    """Return the path of a listing's picture, in the chosen colour, finish or flavor.

    Example:
        >>> build_image_path("B01", (("color", "red"),))
        '/image/B01.svg?color=red'
    """
    color = find_colored_choice(options)
    return f"/image/{quote(asin, safe='')}.svg" + (f"?color={quote(color, safe='')}" if color else "")
