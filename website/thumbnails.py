"""A small picture of every environment, and the table that shows them in docs/environments.md.

`python -m website.thumbnails` draws the ids whose extras are installed, leaves the files of all others as they are,
and writes the table anew. It needs the extra `plots`.

* `draw_thumbnail` - a picture of an id
* `show_thumbnails` - the table of all ids that have a picture, as HTML that also reads well where no style applies
"""

from __future__ import annotations

import re
from pathlib import Path

import gymnasium as gym
import numpy as np
from PIL import Image

import drift_envs  # noqa: F401, registers the ids
from drift_envs.cli.record import without_display
from drift_envs.errors import MissingDependencyError
from drift_envs.registration import IDS

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "environments.md"
FOLDER = ROOT / "docs" / "pictures" / "environments"
BLOCK = re.compile(r"(<!-- thumbnails -->\n).*?(<!-- end -->)", re.DOTALL)

WIDTH, HEIGHT, COLOURS = 240, 180, 64
"""Of a picture: pixels, and the size of its palette."""

STEPS = {"webshop": 3, "house": 6, "tools": 4, "miniwob": 0, "mujoco": 8, "minigrid": 0}
"""Steps that are played before the picture is taken, by the environment's folder; `USUAL` for the others."""
USUAL = 5

ACROSS = 3
"""Pictures side by side."""

DRAWN = tuple(env_id for env_id, entry in IDS.items() if entry.group not in ("alfworld", "bfcl", "tau2"))
"""The ids that have a picture; tools of other packages are text alone."""


def draw_thumbnail(env_id: str) -> Image.Image:
    """Draw the first episode of an id's default schedule after some steps, without the overlay.

    Args:
        env_id: the id.

    Raises:
        MissingDependencyError: if its extra is not installed.
    """
    entry = IDS[env_id]
    is_text = entry.text_mode is not None or entry.text is not None
    with without_display():
        env = gym.make(env_id, render_mode="rgb_array", text=is_text)
        try:
            observation, info = env.reset(seed=0)
            env.action_space.seed(0)
            knows = entry.oracle is not None and entry.knows_optimum
            oracle = env.get_wrapper_attr("oracle") if knows else None
            for _ in range(STEPS.get(entry.group, USUAL)):
                action = info["actions"][0] if oracle is None and is_text else env.action_space.sample()
                observation, _, _, _, info = env.step(action if oracle is None else oracle.action(observation, 0))
            frame = env.render()
        finally:
            env.close()
    return _fit(np.asarray(frame))


def _fit(frame: np.ndarray) -> Image.Image:
    """A frame made smaller, on a ground of its first pixel's colour."""
    picture = Image.fromarray(frame)
    picture.thumbnail((WIDTH, HEIGHT), Image.Resampling.LANCZOS)
    ground = Image.new("RGB", (WIDTH, HEIGHT), tuple(int(part) for part in frame[0, 0]))
    ground.paste(picture, ((WIDTH - picture.width) // 2, (HEIGHT - picture.height) // 2))
    return ground.quantize(COLOURS, dither=Image.Dither.NONE)


def show_thumbnails() -> str:
    """The table of all ids that have a picture."""
    cells = [
        f'<td><img src="pictures/environments/{env_id}.png" alt="{env_id}" width="{WIDTH}" height="{HEIGHT}" '
        f'loading="lazy"><br><code>{env_id}</code></td>'
        for env_id in DRAWN
    ]
    rows = ["\n".join(cells[first : first + ACROSS]) for first in range(0, len(cells), ACROSS)]
    return '<table class="pictures">\n' + "\n".join(f"<tr>\n{row}\n</tr>" for row in rows) + "\n</table>\n"


def main() -> None:
    """Draw what can be drawn here, and write the table."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for env_id in DRAWN:
        try:
            draw_thumbnail(env_id).save(FOLDER / f"{env_id}.png", optimize=True)
        except MissingDependencyError as error:
            print(f"{env_id}: left as it is: {error}")
    text = PAGE.read_text("utf-8")
    PAGE.write_text(BLOCK.sub(lambda found: f"{found[1]}{show_thumbnails()}{found[2]}", text), "utf-8")


if __name__ == "__main__":
    main()
