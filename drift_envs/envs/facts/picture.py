"""A day of the facts as a picture, with pygame, which only `render` needs.

* `draw_facts_picture` - an episode as an RGB array
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from drift_envs.drawing import draw_text, load_pygame, open_font, wrap_text
from drift_envs.envs.facts.episode import FactsEpisode

WIDTH, HEIGHT = 640, 480
_PAPER, _INK, _FAINT, _QUESTION = (250, 248, 244), (40, 40, 46), (120, 120, 128), (214, 84, 31)
_LEADING, _EDGE = 18, 12


def draw_facts_picture(episode: FactsEpisode) -> NDArray[np.uint8]:
    """Draw what was heard on a day, the question, and what followed. It shows no more than the agent knows.

    Args:
        episode: the day.

    Returns:
        uint8, shape `(HEIGHT, WIDTH, 3)`.

    Raises:
        MissingDependencyError: if pygame is not installed.
    """
    pygame = load_pygame()
    surface = pygame.Surface((WIDTH, HEIGHT))
    surface.fill(_PAPER)
    draw_text(surface, f"Day {episode.day}", (_EDGE, _EDGE), 18, _INK, WIDTH - 2 * _EDGE, is_bold=True)
    font, top = open_font(13), _EDGE + 34
    lines = [line for sentence in episode.heard for line in wrap_text(font, sentence, WIDTH - 2 * _EDGE)]
    for line in lines[-((HEIGHT - top - 90) // _LEADING) :]:
        draw_text(surface, line, (_EDGE, top), 13, _INK, WIDTH - 2 * _EDGE)
        top += _LEADING
    foot = HEIGHT - 70
    draw_text(surface, episode.question, (_EDGE, foot), 16, _QUESTION, WIDTH - 2 * _EDGE, is_bold=True)
    draw_text(surface, f"{episode.answer} Score {episode.score:g}", (_EDGE, foot + 28), 13, _FAINT, WIDTH - 2 * _EDGE)
    picture: NDArray[np.uint8] = np.transpose(pygame.surfarray.array3d(surface), (1, 0, 2))
    return picture
