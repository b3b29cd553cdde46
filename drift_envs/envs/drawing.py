"""The library that draws.

* `load_pygame` - pygame, ready for text
"""

from __future__ import annotations

from typing import Any

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
