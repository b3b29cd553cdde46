"""The library that draws, and windows for environments that are drawn as arrays.

* `load_pygame` - pygame, ready for text
* `read_png` - a screenshot as an array
* `PageWindow` - a window that shows arrays
"""

from __future__ import annotations

import io
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
