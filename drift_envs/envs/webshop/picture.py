"""Rendering of shop pages with pygame, which only `render` needs.

* `draw_page` - a page as an RGB array
* `lay_out`, `PlacedElement` - where its elements stand
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from drift_envs.drawing import load_pygame
from webshop_server.page_model import Element

WIDTH, HEIGHT = 800, 640
"""The size of a drawn page, in pixels; longer pages are cut."""

_MARGIN, _LINE, _GAP, _PAD = 24, 24, 8, 8
_PAPER, _INK, _FAINT = (255, 255, 255), (33, 37, 41), (108, 117, 125)
_BUTTON, _SUBMIT, _CHOSEN, _LINK = (233, 236, 239), (255, 193, 7), (187, 222, 251), (13, 71, 161)
_AD_PAPER, _AD_EDGE = (255, 230, 0), (196, 22, 28)
_FACES = {"title": (32, _INK), "product": (20, _LINK)}
_BOXES = {"button": _BUTTON, "submit": _SUBMIT, "option": _BUTTON, "search": _PAPER}
_SIDE = 220
"""The side of a listing's drawing, in pixels."""


class PlacedElement(NamedTuple):
    """An element and where it stands.

    Args:
        element: the element.
        lines: its text, broken into lines.
        box: left, top, width and height, in pixels.
    """

    element: Element
    lines: tuple[str, ...]
    box: tuple[int, int, int, int]


def lay_out(elements: tuple[Element, ...], width: int = WIDTH) -> Iterator[PlacedElement]:
    """Place the elements of a page: boxes side by side, texts below each other.

    Args:
        elements: the elements, in reading order.
        width: of the page, in pixels.

    Yields:
        Those that are shown, in order.

    Raises:
        MissingDependencyError: if pygame is not installed.
    """
    pygame = load_pygame()
    x, y = _MARGIN, _MARGIN
    for element in elements:
        if not element.text and element.kind != "search":
            continue
        font = pygame.font.Font(None, _FACES.get(element.kind, (20, _INK))[0])
        if element.is_chosen or element.kind in _BOXES:  # boxes stand side by side
            text = element.text or "search words"
            wide = min(font.size(text)[0] + 2 * _PAD, width - 2 * _MARGIN)
            if x > _MARGIN and x + wide > width - _MARGIN:
                x, y = _MARGIN, y + _LINE + _PAD
            yield PlacedElement(element, (text,), (x, y, wide, _LINE))
            x += wide + _GAP
            continue
        if x > _MARGIN:
            x, y = _MARGIN, y + _LINE + _PAD
        lines = tuple(_lines(font, element.text, width - 2 * _MARGIN))
        height = len(lines) * (font.get_linesize() + 4)
        yield PlacedElement(element, lines, (x, y, width - 2 * _MARGIN, height))
        y += height


def draw_page(elements: tuple[Element, ...], drawing: str = "", *, is_ad: bool = False) -> NDArray[np.uint8]:
    """Draw a page as an RGB array.

    Args:
        elements: its elements, in reading order.
        drawing: the SVG of the page's listing, which stands at the right.
        is_ad: whether it is an advertisement.

    Returns:
        uint8, shape `(HEIGHT, WIDTH, 3)`.

    Raises:
        MissingDependencyError: if pygame is not installed.

    Example:
        >>> draw_page((Element("title", "WebShop"), Element("button", "Search"))).shape
        (640, 800, 3)
    """
    pygame = load_pygame()
    surface = pygame.Surface((WIDTH, HEIGHT))
    surface.fill(_AD_PAPER if is_ad else _PAPER)
    if is_ad:
        pygame.draw.rect(surface, _AD_EDGE, surface.get_rect(), width=12)
    for element, lines, (x, y, width, height) in lay_out(elements, page_width(drawing)):
        if y > HEIGHT:
            break
        size, ink = _FACES.get(element.kind, (20, _FAINT if element.name == "label" else _INK))
        font = pygame.font.Font(None, size)
        if element.is_chosen or element.kind in _BOXES:
            box = pygame.Rect(x, y, width, height)
            pygame.draw.rect(surface, _CHOSEN if element.is_chosen else _BOXES[element.kind], box, border_radius=4)
            pygame.draw.rect(surface, _FAINT, box, width=1, border_radius=4)
            surface.blit(font.render(lines[0], True, ink), (x + _PAD, y + 5), (0, 0, width - 2 * _PAD, _LINE))
            continue
        for number, line in enumerate(lines):
            surface.blit(font.render(line, True, ink), (x, y + number * (font.get_linesize() + 4)))
    if drawing:
        sized = drawing.replace("<svg ", f'<svg width="{_SIDE}" height="{_SIDE}" ', 1)
        surface.blit(pygame.image.load(io.BytesIO(sized.encode()), "listing.svg"), (WIDTH - _MARGIN - _SIDE, _MARGIN))
    picture: NDArray[np.uint8] = np.transpose(pygame.surfarray.array3d(surface), (1, 0, 2))
    return picture


def page_width(drawing: str) -> int:
    """Return the width of a page's texts, beside the drawing if there is one, in pixels."""
    return WIDTH - _SIDE - _MARGIN if drawing else WIDTH


def _lines(font: Any, text: str, width: int) -> Iterator[str]:
    """Wrap a text into lines of at most a width."""
    line = ""
    for word in text.split():
        longer = f"{line} {word}".strip()
        if line and font.size(longer)[0] > width:
            yield line
            longer = word
        line = longer
    yield line
