"""The library that draws, its letters, and windows for environments that are drawn as arrays.

* `load_pygame` - pygame, ready for text
* `open_font` - the font of all pictures: DejaVu Sans, whose hints space small letters evenly
* `wrap_text`, `cut_text` - text that fits a width
* `draw_text` - a line of text on a picture
* `read_png` - a screenshot as an array
* `PageWindow` - a window that shows arrays
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import lru_cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drift_envs.errors import MissingDependencyError


def load_pygame() -> Any:
    """The library that draws, ready for text.

    Raises:
        MissingDependencyError: if it is not installed.
    """
    try:
        import pygame
    except ImportError as error:
        raise MissingDependencyError(
            '`pygame` is not installed, run `pip install "gymnasium[toy-text,classic-control]"`'
        ) from error
    if not pygame.font.get_init():  # closing any environment ends all of pygame
        pygame.font.init()
    return pygame


def open_font(size: int, *, is_bold: bool = False) -> Any:
    """The font of all pictures; it has the Latin alphabets.

    Args:
        size: of the letters, in pixels.
        is_bold: whether they are bold.

    Raises:
        MissingDependencyError: without pygame.
    """
    return load_pygame().font.Font(io.BytesIO(_read_font(is_bold)), size)


@lru_cache(maxsize=2)
def _read_font(is_bold: bool) -> bytes:
    return (resources.files("drift_envs.show") / "fonts" / f"DejaVuSans{'-Bold' if is_bold else ''}.ttf").read_bytes()


def wrap_text(font: Any, text: str, width: int) -> list[str]:
    """Break a text between words into lines of at most a width; a longer word is cut.

    Args:
        font: from `open_font`.
        text: the text.
        width: of a line, in pixels.

    Returns:
        At least one line.
    """
    lines, line = [], ""
    for word in text.split():
        longer = f"{line} {word}".strip()
        if line and font.size(longer)[0] > width:
            lines.append(line)
            longer = word
        line = longer
    return [cut_text(font, one, width) for one in (*lines, line)]


def cut_text(font: Any, text: str, width: int) -> str:
    """Cut a text that is wider than a width, and put an ellipsis in place of the rest.

    Args:
        font: from `open_font`.
        text: the text.
        width: in pixels.
    """
    if font.size(text)[0] <= width:
        return text
    length = len(text)
    while length and font.size(f"{text[:length]}…")[0] > width:
        length -= 1
    return f"{text[:length].rstrip()}…"


def draw_text(
    surface: Any,
    text: str,
    place: tuple[int, int],
    size: int,
    ink: Sequence[int],
    width: int | None = None,
    *,
    is_bold: bool = False,
) -> None:
    """Draw a line of text.

    Args:
        surface: the picture, a surface of pygame.
        text: the text.
        place: left and top edge, in pixels.
        size: of the letters, in pixels.
        ink: red, green and blue.
        width: where the text is cut, in pixels from its left edge; `None` for nowhere.
        is_bold: whether the letters are bold.
    """
    font = open_font(size, is_bold=is_bold)
    shown = text if width is None else cut_text(font, text, width)
    surface.blit(font.render(shown, True, ink), place)


def read_png(data: bytes) -> NDArray[np.uint8]:
    """Decode a screenshot to an RGB array.

    Args:
        data: a PNG file.

    Returns:
        uint8, shape `(height, width, 3)`.
    """
    pygame = load_pygame()
    surface = pygame.image.load(io.BytesIO(data), "page.png")
    picture: NDArray[np.uint8] = np.transpose(pygame.surfarray.array3d(surface), (1, 0, 2))
    return picture


class PageWindow:
    """A window that shows arrays; opened with the first one.

    Args:
        rate: the maximum frame rate, in Hz.
        title: the window's title.
    """

    def __init__(self, rate: int, title: str = "WebShop") -> None:
        self._rate, self._title = rate, title
        self._screen: Any = None
        self._clock: Any = None

    def show(self, picture: NDArray[np.uint8]) -> None:
        """Show a picture.

        Args:
            picture: uint8, shape `(height, width, 3)`.
        """
        pygame = load_pygame()
        if self._screen is None:
            pygame.display.init()
            self._screen = pygame.display.set_mode((picture.shape[1], picture.shape[0]))
            pygame.display.set_caption(self._title)
            self._clock = pygame.time.Clock()
        self._screen.blit(pygame.surfarray.make_surface(np.transpose(picture, (1, 0, 2))), (0, 0))
        pygame.event.pump()
        pygame.display.flip()
        self._clock.tick(self._rate)

    def close(self) -> None:
        """Close the window."""
        if self._screen is not None:
            load_pygame().display.quit()
            self._screen = None
