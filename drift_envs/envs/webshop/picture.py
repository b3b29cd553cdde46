"""Rendering of shop pages with pygame, which only `render` needs."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from drift_envs.show.drawing import cut_text, draw_text, load_pygame, open_font, wrap_text
from webshop_server.page_model import Element
from webshop_server.urls import PageKind

WIDTH, HEIGHT = 800, 640
"""The size of a drawn page, in pixels; longer pages are cut."""

Color = tuple[int, int, int]

_INK, _SOFT, _LINE, _PAPER, _GROUND = (29, 42, 47), (85, 102, 109), (217, 224, 226), (255, 255, 255), (244, 246, 245)
_BRAND, _DARK, _TASK, _GOLD = (31, 95, 91), (22, 72, 68), (234, 241, 239), (138, 90, 0)
_AD, _AD_RAYS, _AD_EDGE = (255, 224, 71), (255, 238, 150), (190, 30, 45)

_TOP, _MARGIN, _GAP, _PAD = 40, 24, 8, 12
_ACROSS, _CARD = 5, 222
"""Cards of results side by side, and the height of one in pixels."""
_PHOTO, _SIDE = 84, 200
"""The side of a listing's drawing on a card and on its own page, in pixels."""
_BUY = 150
"""The width of the column with the button that buys, in pixels."""

_PRICE = re.compile(r"(Price: |Total: )?\$\d")
_INSTRUCTION = "Instruction:"


class TextStyle(NamedTuple):
    """How an element is drawn.

    Args:
        size: of its letters, in pixels.
        ink: their colour.
        is_bold: whether they are bold.
        paper: of the box around it; `None` for no box.
        edge: of the box.
    """

    size: int = 13
    ink: Color = _INK
    is_bold: bool = False
    paper: Color | None = None
    edge: Color = _LINE


_LABEL, _TEXT, _FAINT = TextStyle(11, _DARK, True), TextStyle(), TextStyle(12, _SOFT)
_TITLE, _HEADING, _COST = TextStyle(18, is_bold=True), TextStyle(30, _DARK, True), TextStyle(16, is_bold=True)
_NAME, _ASIN, _VISITED = TextStyle(12), TextStyle(11, _DARK), TextStyle(11, (109, 74, 134))
_TOOL, _BUTTON = TextStyle(12, _SOFT, paper=_GROUND, edge=_GROUND), TextStyle(13, paper=_PAPER)
_CHOSEN = TextStyle(13, _PAPER, True, _BRAND, _BRAND)
_AD_TITLE, _AD_BUTTON = TextStyle(22, _AD_EDGE, True), TextStyle(18, _PAPER, True, _AD_EDGE, _AD_EDGE)


class PlacedElement(NamedTuple):
    """An element and where it stands.

    Args:
        element: the element.
        style: how it is drawn.
        lines: its text, broken into lines.
        box: left, top, width and height, in pixels.
    """

    element: Element
    style: TextStyle
    lines: tuple[str, ...]
    box: tuple[int, int, int, int]


class _Column:
    """Places elements in a column of the page: boxes side by side, texts below each other."""

    def __init__(self, left: int, top: int, width: int, *, is_centered: bool = False) -> None:
        self.left, self.width, self.is_centered = left, width, is_centered
        self.x, self.y = left, top
        self._row = 0

    def write(self, element: Element, style: TextStyle, most: int | None = None) -> PlacedElement:
        """A text below all others."""
        self.end_row()
        font = open_font(style.size, is_bold=style.is_bold)
        lines = wrap_text(font, element.text, self.width)
        if most is not None and len(lines) > most:
            lines = [*lines[: most - 1], cut_text(font, " ".join(lines[most - 1 :]), self.width)]
        wide = max(font.size(line)[0] for line in lines)
        x = self.left + (self.width - wide) // 2 if self.is_centered else self.left
        placed = PlacedElement(element, style, tuple(lines), (x, self.y, wide, len(lines) * _leading(style)))
        self.y += placed.box[3] + _GAP // 2
        return placed

    def put(self, element: Element, style: TextStyle) -> PlacedElement:
        """A box beside the last one, or below it where there is no room."""
        font = open_font(style.size, is_bold=style.is_bold)
        text = element.text or " "
        wide = min(font.size(text)[0] + (2 * _PAD if style.paper else 0), self.width)
        if element.kind == "search":
            wide = self.width - 120
        high = _leading(style) + (_GAP + 2 if style.paper else 0)
        if self.x > self.left and self.x + wide > self.left + self.width:
            self.end_row()
        placed = PlacedElement(element, style, (text,), (self.x, self.y, wide, high))
        self.x += wide + _GAP
        self._row = max(self._row, high)
        return placed

    def end_row(self) -> None:
        """Go below the boxes."""
        if self.x > self.left:
            self.x, self.y, self._row = self.left, self.y + self._row + _GAP, 0


def _leading(style: TextStyle) -> int:
    return round(1.4 * style.size)


def lay_out(kind: PageKind, elements: Sequence[Element], *, has_picture: bool = False) -> Iterator[PlacedElement]:
    """Place the elements of a page.

    Args:
        kind: the kind of page.
        elements: the elements, in reading order.
        has_picture: whether the listing's drawing stands at the left.

    Yields:
        Those that are shown.

    Raises:
        MissingDependencyError: if pygame is not installed.
    """
    shown = [element for element in elements if element.text or element.kind == "search"]
    head = _Column(_MARGIN, _TOP + _GAP + 4, WIDTH - 2 * _MARGIN)
    if kind in (PageKind.START, PageKind.DONE):
        head = _Column(_MARGIN + 60, 150, WIDTH - 2 * _MARGIN - 120, is_centered=kind is PageKind.DONE)
        if shown and shown[0].kind == "title":
            yield head.write(shown.pop(0), _HEADING)
            head.y += _GAP
    if len(shown) > 1 and shown[0].text == _INSTRUCTION:
        yield from _place_task(head, shown)
    rest = {
        PageKind.RESULTS: _place_results,
        PageKind.ITEM: _place_item,
        PageKind.AD: _place_ad,
    }.get(kind)
    yield from _place_flow(head, shown, has_picture) if rest is None else rest(head, shown)


def _place_task(head: _Column, shown: list[Element]) -> Iterator[PlacedElement]:
    """The instruction in its box, whose parts it takes from the elements."""
    label, task = shown.pop(0), shown.pop(0)
    inner = _Column(head.left + _PAD, head.y + _GAP, head.width - 2 * _PAD)
    placed = [inner.write(label, _LABEL), inner.write(task, _TEXT)]
    edges = (head.left, head.y, head.width, inner.y + _GAP // 2 - head.y)
    yield PlacedElement(Element("task", ""), TextStyle(paper=_TASK, edge=_TASK), (), edges)
    yield from placed
    head.y = inner.y + _GAP + _GAP


def _place_toolbar(head: _Column, shown: list[Element]) -> Iterator[PlacedElement]:
    """Buttons, and the texts between them, up to the first element of another kind."""
    while shown and (shown[0].kind == "button" or shown[0].text.startswith("Page ")):
        element = shown.pop(0)
        yield head.put(element, _BUTTON if element.kind == "button" else _TOOL)
    head.end_row()


def _place_results(head: _Column, shown: list[Element]) -> Iterator[PlacedElement]:
    """The toolbar, and a card for each listing."""
    yield from _place_toolbar(head, shown)
    across = (head.width - (_ACROSS - 1) * _GAP) // _ACROSS
    cards: list[list[Element]] = []
    for element in shown:
        if element.kind == "product" or not cards:
            cards.append([])
        cards[-1].append(element)
    for number, card in enumerate(cards):
        row, column = divmod(number, _ACROSS)
        left, top = head.left + column * (across + _GAP), head.y + row * (_CARD + _GAP)
        if card[0].kind != "product":  # no results
            yield from (head.write(element, _FAINT) for element in card)
            continue
        yield PlacedElement(Element("card", ""), TextStyle(paper=_PAPER), (), (left, top, across, _CARD))
        yield PlacedElement(
            Element("photo", "", label=card[0].label),
            TextStyle(),
            (),
            (left + (across - _PHOTO) // 2, top + _GAP, _PHOTO, _PHOTO),
        )
        words = _Column(left + _GAP, top + _PHOTO + 2 * _GAP, across - 2 * _GAP)
        yield words.write(card[0], _VISITED if card[0].is_chosen else _ASIN, 1)
        for element in card[1:]:
            if _PRICE.match(element.text):
                words.y = top + _CARD - _leading(_COST) - _GAP
                yield words.write(element, TextStyle(13, is_bold=True), 1)
            else:
                yield words.write(element, _NAME, 4)


def _place_item(head: _Column, shown: list[Element]) -> Iterator[PlacedElement]:
    """Picture, texts and options, and the button that buys, side by side as in the shop."""
    yield from _place_toolbar(head, shown)
    middle = head.left + _SIDE + 2 * _PAD
    words = _Column(middle, head.y, WIDTH - _MARGIN - _BUY - _PAD - middle)
    purchase = _Column(WIDTH - _MARGIN - _BUY, head.y, _BUY)
    yield PlacedElement(Element("photo", ""), TextStyle(), (), (head.left, head.y, _SIDE, _SIDE))
    begin = next((index for index, element in enumerate(shown) if element.kind == "title"), 0)
    facts = [element for element in shown[begin:] if element.kind in ("title", "text")]
    sold_out = facts.pop() if facts and not any(element.kind == "submit" for element in shown) else None
    for element in facts:
        is_price = bool(_PRICE.match(element.text))
        rated = TextStyle(13, _GOLD) if element.text.startswith("Rating") else _FAINT
        yield words.write(element, _TITLE if element.kind == "title" else _COST if is_price else rated)
    words.y += _GAP
    for element in shown[:begin]:  # the options' groups
        yield (
            words.put(element, _CHOSEN if element.is_chosen else _BUTTON)
            if element.kind == "option"
            else (words.write(element, _LABEL))
        )
    words.end_row()
    words.y += _GAP
    for element in shown[begin:]:
        if element.kind == "button":
            yield words.put(element, _BUTTON)
        elif element.kind == "submit":
            yield purchase.put(element, _CHOSEN)._replace(box=(purchase.left, purchase.y, _BUY, 40))
    if sold_out is not None:
        yield purchase.write(sold_out, TextStyle(13, _AD_EDGE, True))


def _place_ad(head: _Column, shown: list[Element]) -> Iterator[PlacedElement]:
    """An advertisement over the whole page, with its buttons in the middle."""
    yield PlacedElement(Element("ad", ""), TextStyle(), (), (head.left, head.y, head.width, HEIGHT - head.y - _MARGIN))
    middle = _Column(head.left + 40, head.y + 110, head.width - 80, is_centered=True)
    for element in (one for one in shown if one.kind != "submit"):
        yield middle.write(element, _AD_TITLE if element.kind == "title" else _TEXT)
        middle.y += _GAP
    middle.y += _PAD
    buttons = [middle.put(element, _AD_BUTTON) for element in shown if element.kind == "submit"]
    for top in dict.fromkeys(placed.box[1] for placed in buttons):
        row = [placed for placed in buttons if placed.box[1] == top]
        shift = (middle.left + middle.width - row[-1].box[0] - row[-1].box[2]) // 2
        for placed in row:
            yield placed._replace(box=(placed.box[0] + shift, *placed.box[1:]))


def _place_flow(head: _Column, shown: list[Element], has_picture: bool) -> Iterator[PlacedElement]:
    """All other pages: boxes side by side, texts below each other."""
    yield from _place_toolbar(head, shown)
    if has_picture:
        yield PlacedElement(Element("photo", ""), TextStyle(), (), (head.left, head.y, _SIDE, _SIDE))
        shift = _SIDE + 2 * _PAD
        head = _Column(head.left + shift, head.y, head.width - shift)
    for element in shown:
        if element.kind in ("button", "submit", "option", "search"):
            is_main = element.kind == "submit" or element.is_chosen
            yield head.put(element, _CHOSEN if is_main else _BUTTON)
        elif element.kind == "title":
            yield head.write(element, _TITLE)
        else:
            is_number = bool(_PRICE.match(element.text)) or element.name == "reward"
            yield head.write(element, _COST if is_number else _TEXT)


def draw_page(
    kind: PageKind, elements: Sequence[Element], drawings: Mapping[str, str] | None = None
) -> NDArray[np.uint8]:
    """Draw a page as an RGB array.

    Args:
        kind: the kind of page.
        elements: its elements, in reading order.
        drawings: the SVGs of listings by the labels of their links; "" for that of the page's own listing.

    Returns:
        uint8, shape `(HEIGHT, WIDTH, 3)`.

    Raises:
        MissingDependencyError: if pygame is not installed.

    Example:
        >>> draw_page(PageKind.START, (Element("title", "WebShop"), Element("button", "Search"))).shape
        (640, 800, 3)
    """
    pygame = load_pygame()
    drawings = drawings or {}
    surface = pygame.Surface((WIDTH, HEIGHT))
    surface.fill(_GROUND)
    pygame.draw.rect(surface, _BRAND, (0, 0, WIDTH, _TOP))
    draw_text(surface, "WebShop", (_MARGIN, 9), 18, _PAPER, is_bold=True)
    for placed in lay_out(kind, elements, has_picture="" in drawings):
        if placed.box[1] > HEIGHT:
            continue
        if placed.element.kind == "photo":
            _draw_photo(surface, drawings.get(placed.element.label, ""), placed.box)
        elif placed.element.kind == "ad":
            _draw_ad(surface, placed.box)
        else:
            _draw_element(surface, placed)
    picture: NDArray[np.uint8] = np.transpose(pygame.surfarray.array3d(surface), (1, 0, 2))
    return picture


def _draw_element(surface: Any, placed: PlacedElement) -> None:
    pygame = load_pygame()
    (x, y, width, height), style = placed.box, placed.style
    if style.paper is None:
        for number, line in enumerate(placed.lines):
            place = (x, y + number * _leading(style))
            draw_text(surface, line, place, style.size, style.ink, is_bold=style.is_bold)
        return
    pygame.draw.rect(surface, style.paper, placed.box, border_radius=6)
    if style.edge != style.paper:
        pygame.draw.rect(surface, style.edge, placed.box, width=1, border_radius=6)
    if placed.element.kind == "task":
        pygame.draw.rect(surface, _BRAND, (x, y, 4, height), border_radius=2)
    for line in placed.lines:
        font = open_font(style.size, is_bold=style.is_bold)
        text = font.render(cut_text(font, line, width - _GAP), True, style.ink)
        across = _PAD if placed.element.kind == "search" else (width - text.get_width()) // 2
        surface.blit(text, (x + across, y + (height - text.get_height()) // 2))


def _draw_photo(surface: Any, drawing: str, box: tuple[int, int, int, int]) -> None:
    pygame = load_pygame()
    left, top, width, height = box
    if drawing:
        sized = drawing.replace("<svg ", f'<svg width="{width}" height="{height}" ', 1)
        surface.blit(pygame.image.load(io.BytesIO(sized.encode()), "listing.svg"), (left, top))
    pygame.draw.rect(surface, _LINE, box, width=1, border_radius=4)


def _draw_ad(surface: Any, box: tuple[int, int, int, int]) -> None:
    """Rays behind the words of an advertisement."""
    pygame = load_pygame()
    left, top, width, height = box
    banner = pygame.Surface((width, height))
    banner.fill(_AD)
    middle = np.array([width / 2, height / 2])
    angles = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    ends = middle + width * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    for first in range(0, len(ends), 2):
        pygame.draw.polygon(banner, _AD_RAYS, [middle, ends[first], ends[first + 1]])
    pygame.draw.rect(banner, _AD_EDGE, banner.get_rect(), width=6)
    surface.blit(banner, (left, top))
