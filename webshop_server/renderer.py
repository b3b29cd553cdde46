"""Page models as HTML, and pictures of listings, drawn by kind of product and colour.

All HTML comes from `templates/`, where `eras.html` says how each era builds and words a document. It needs no script
and nothing from another host. Inside `<main id="page">` the text nodes are exactly `PageModel.parts`, in order; the
last element of the document has the id `ready`. Purchases and renamed buttons are sent to the page's own address with
their label, so that neither a class nor an address tells what a button does. A drawing is made from words that the
pages of a listing show too, and from nothing else.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, urlsplit

from webshop_server.errors import ArgumentError
from webshop_server.page_model import Element, PageModel, PageSection
from webshop_server.product import Product
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

COLORS = {
    "black": "#2b2b2e", "white": "#f7f7f5", "red": "#c8372d", "yellow": "#ecc531", "blue": "#2f6fc4",
    "green": "#3c8d4f", "orange": "#e58a2b", "purple": "#7a4fa3", "pink": "#e58bb0", "brown": "#80583a",
    "gray": "#8d9499", "grey": "#8d9499", "teal": "#1f8a88", "navy": "#22355f", "beige": "#dccbb0",
    "khaki": "#b3a577", "tan": "#c8a780", "cream": "#f1e6cd", "ivory": "#f3efe2", "gold": "#c9a23f",
    "golden": "#c9a23f", "silver": "#c3c8cc", "rose": "#d98a97", "wine": "#7a2136", "burgundy": "#741f35",
    "maroon": "#752a2a", "coral": "#ee7d63", "peach": "#f4bf9b", "apricot": "#f2b57f", "turquoise": "#3cb8b0",
    "aqua": "#55c3cf", "mint": "#a6dcc0", "lavender": "#b9a3d6", "lilac": "#c3a6d4", "violet": "#8350b3",
    "plum": "#6d3a63", "magenta": "#c23a8f", "olive": "#74783a", "army": "#5b6440", "charcoal": "#45494e",
    "camel": "#b98d5a", "coffee": "#5a3d2b", "espresso": "#45301f", "chocolate": "#5b3a29", "bronze": "#96693a",
    "copper": "#b3673c", "mustard": "#cc9a2a", "indigo": "#3d3f87", "denim": "#476a94", "oak": "#c49a63",
    "walnut": "#6d4a2f", "cherry": "#8a3324", "mahogany": "#6b2f22", "espresso-brown": "#45301f",
    "lacquer": "#dfe3e0", "vanilla": "#f0e2b6", "strawberry": "#d9485f", "lemon": "#f1d648", "peanut": "#c9955a",
    "citrus": "#f0a83a", "sea": "#7fb9cc",
}  # fmt: skip
"""The fill of a picture by word."""

COLORED_OPTIONS = ("color", "colour", "finish", "flavor", "scent")
"""Options whose values colour a picture, by a part of their name."""

GROUND = "#eef1f0"

MAX_DOTS = 10
"""Dots under a picture at the most: the other colours of a listing of which none is chosen."""

_CLASSES = {
    ' class="dark"': ' fill="#000" fill-opacity=".22"',
    ' class="light"': ' fill="#fff" fill-opacity=".8"',
    ' class="line"': ' fill="none"',
}

_GROUP = re.compile(r'<g id="([\w-]+)" data-words="([^"]*)" data-fill="([^"]*)">(.*?)</g>')
_WORD = re.compile(r"[a-z-]+")

_DEPARTMENTS = {
    "fashion": "shirt",
    "beauty": "pump-bottle",
    "electronics": "charger",
    "garden": "table",
    "grocery": "granola",
}

_DEFAULT = "parcel"

PHOTO_TYPES = {
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".png": "image/png",
    ".webp": "image/webp",
    ".gif": "image/gif",
}
"""The media type of a photo by the ending of its file."""

_HOST = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?(?::\d{1,5})?")


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
    environment.filters["path"] = lambda target: build_path(target, _SESSION_MARK)
    environment.filters["picture"] = build_image_path
    environment.filters["name"] = name_page
    environment.globals["labels"] = LABELS
    return environment.get_template(name)


def name_page(page: PageModel) -> str:
    """Return what a page is called: in its title, and as its heading where its texts have none.

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
            if task:
                marked = (one._replace(text=_TASK_MARK) if one.text == task else one for one in section.elements)
                section = section._replace(elements=tuple(marked))
        sections.append(section)
    from markupsafe import escape  # which Jinja2 escapes with

    document = _render(template, page.url, tuple(sections), page.charset, page.theme)
    return document.replace(_SESSION_MARK, quote(page.session_id, safe="")).replace(_TASK_MARK, escape(page.fit(task)))


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


class Shape(NamedTuple):
    """A drawing.

    Args:
        name: its id in the file.
        fill: its colour where a listing names none.
        drawing: SVG elements within 200 x 200.
    """

    name: str
    fill: str
    drawing: str


@lru_cache(maxsize=1)
def load_shapes() -> tuple[dict[str, Shape], dict[str, str]]:
    """Load the shapes by name, and the name of the shape of each word."""
    text = (resources.files("webshop_server") / "data" / "pictures.svg").read_text("utf-8")
    shapes, names = {}, {}
    for name, words, fill, drawing in _GROUP.findall(text):
        for old, new in _CLASSES.items():
            drawing = drawing.replace(old, new)
        shapes[name] = Shape(name, fill, drawing)
        names.update(dict.fromkeys(words.split(), name))
    return shapes, names


def find_shape(product: Product) -> Shape:
    """Return the shape of a listing: the last word of its query that names one, unless its title names another.

    Example:
        >>> find_shape(Product("A", "Soft Throw Pillow with Piping", query="throw pillows", category="garden")).name
        'pillow'
        >>> find_shape(Product("B", "Ceramic Mug, red", category="garden")).name
        'mug'
    """
    shapes, _ = load_shapes()
    title = re.split(r" with |[,(|]", product.title.lower(), maxsplit=1)[0]
    in_title = list(_named(title)) or list(_named(product.title.lower()))
    in_query = list(_named(product.query))
    for name in in_query:
        if name in in_title or not in_title:
            return shapes[name]
    return shapes[(in_title or in_query or [_DEPARTMENTS.get(product.category, _DEFAULT)])[0]]


def _named(text: str) -> Iterator[str]:
    """The shapes that a text names, from its last word on; pairs of words come before single ones."""
    _, names = load_shapes()
    words = _WORD.findall(text.replace("'s", ""))
    for end in range(len(words), 0, -1):
        for phrase in ("-".join(words[max(0, end - 2) : end]), words[end - 1]):
            for form in (phrase, phrase.removesuffix("s"), phrase.removesuffix("es")):
                if form in names:
                    yield names[form]
                    break


def find_color(text: str) -> str | None:
    """Return the fill of the first word of a text that names a colour.

    Example:
        >>> find_color("dark red") == COLORS["red"], find_color("large")
        (True, None)
    """
    return next((COLORS[word] for word in _WORD.findall(text.lower()) if word in COLORS), None)


def find_colored_choice(options: Sequence[tuple[str, str]]) -> str:
    """Return the chosen value that colours a listing, or "".

    Example:
        >>> find_colored_choice((("size", "xl"), ("color", "dark red")))
        'dark red'
    """
    return next((value for name, value in options if _is_colored(name) and find_color(value)), "")


def _is_colored(name: str) -> bool:
    return any(part in name for part in COLORED_OPTIONS)


def draw_picture(product: Product, choice: str = "") -> str:
    """Draw a listing in the colour of a choice; without one in its first colour, with a dot for each other one.

    Args:
        product: the listing.
        choice: the chosen colour; any text.

    Returns:
        An SVG document; it contains no text of the arguments.

    Example:
        >>> lamp = Product("B01", "Desk Lamp", query="table lamps")
        >>> COLORS["red"] in draw_picture(lamp, "dark red")
        True
    """
    shape = find_shape(product)
    offered = [find_color(value) for option in product.options if _is_colored(option.name) for value in option.values]
    colors = list(dict.fromkeys(color for color in offered if color))
    fill = find_color(choice)
    dots: list[str] = []
    if fill is None:
        fill = colors[0] if colors else find_color(product.title) or shape.fill
        dots = colors[1 : 1 + MAX_DOTS]
    first = 100 - 8 * (len(dots) - 1)
    drawn = "".join(
        f'<circle cx="{first + 16 * index}" cy="188" r="6" fill="{color}"/>' for index, color in enumerate(dots)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 200 200"><rect width="200" height="200" '
        f'fill="{GROUND}"/><g fill="{fill}" color="{fill}" stroke="#000" stroke-opacity=".35" stroke-width="2" '
        f'stroke-linejoin="round" stroke-linecap="round">{shape.drawing}{drawn}</g></svg>'
    )


class PhotoSource:
    """The photos that an operator provides: files of a directory, or hosts that browsers may load them from.

    Args:
        directory: files named by asin, as in `B01.jpg`, or as in the address of the catalogue; `None` for none.
        hosts: names of hosts; a photo on another one is not used.

    Raises:
        ArgumentError: there is no such directory, or a host is not a name.

    Example:
        >>> mug = Product("B01", "Mug", image="https://img.example.org/I/51.jpg")
        >>> PhotoSource(None, ("img.example.org",)).find_address(mug), PhotoSource().find_address(mug)
        ('https://img.example.org/I/51.jpg', '')
    """

    def __init__(self, directory: str | os.PathLike[str] | None = None, hosts: Sequence[str] = ()) -> None:
        if directory is not None and not Path(directory).is_dir():
            raise ArgumentError(f"`image_dir` should be a directory. Received {os.fspath(directory)!r}")
        for host in hosts:
            if not _HOST.fullmatch(host):
                raise ArgumentError(f"`remote_images` should hold names of hosts in lower case. Received {host!r}")
        self.hosts = tuple(hosts)
        # Listed once: no name of a request reaches the file system.
        self._files = (
            {path.name: path.resolve() for path in sorted(Path(directory).iterdir()) if path.is_file()}
            if directory
            else {}
        )

    def find_file(self, product: Product) -> Path | None:
        """Return the file of a listing's photo, or `None`."""
        names = [f"{product.asin}{ending}" for ending in PHOTO_TYPES]
        if product.image.endswith(tuple(PHOTO_TYPES)):
            names.append(product.image.rpartition("/")[2])
        return next((self._files[name] for name in names if name in self._files), None)

    def find_address(self, product: Product) -> str:
        """Return the address of a listing's photo on an allowed host, or ""."""
        return product.image if product.image and urlsplit(product.image).netloc in self.hosts else ""
