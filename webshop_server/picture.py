"""Pictures of listings: drawn by kind of product and colour.

* `draw_picture` - the SVG of a listing
* `find_shape` - the shape that a listing's words select, of those in `data/pictures.svg`
* `find_color` - the fill that a text names
* `find_colored_choice` - the chosen option that colours a listing
* `PhotoSource` - the photos of a listing that an operator provides

A drawing is made from words that the pages of a listing show too, and from nothing else.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from webshop_server.errors import ArgumentError
from webshop_server.product import Product

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


PHOTO_TYPES = {
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".png": "image/png",
    ".webp": "image/webp",
    ".gif": "image/gif",
}
"""The media type of a photo by the ending of its file."""

_HOST = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?(?::\d{1,5})?")


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
        self._files = {path.name: path.resolve() for path in sorted(Path(directory).iterdir())} if directory else {}

    def find_file(self, product: Product) -> Path | None:
        """Return the file of a listing's photo, or `None`."""
        names = [f"{product.asin}{ending}" for ending in PHOTO_TYPES]
        if product.image.endswith(tuple(PHOTO_TYPES)):
            names.append(product.image.rpartition("/")[2])
        return next((self._files[name] for name in names if name in self._files), None)

    def find_address(self, product: Product) -> str:
        """Return the address of a listing's photo on an allowed host, or ""."""
        return product.image if product.image and urlsplit(product.image).netloc in self.hosts else ""
