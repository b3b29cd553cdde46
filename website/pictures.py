"""A thumbnail and a film of every environment: `python -m website.pictures [ID...]` draws them.

Ids whose extras are not installed keep their files. It needs the extra `plots`, and for MiniWoB++ a Chromium.

* `draw_thumbnail` - a picture of an id
* `draw_film` - the best policy of the first phase, played on through the first drifts of an id's default schedule
* `describe_film` - its caption
"""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from pathlib import Path

import gymnasium as gym
import numpy as np
from PIL import Image

from drift_envs import load_schedule, shipped_schedules
from drift_envs.cli.record import film, without_display
from drift_envs.cli.scheduled import open_schedule
from drift_envs.errors import MissingDependencyError
from drift_envs.registration import IDS

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "pictures" / "environments"

WIDTH, HEIGHT, COLOURS = 240, 180, 64
"""Of a thumbnail: pixels, and the size of its palette."""

STEPS = {"webshop": 3, "house": 6, "tools": 4, "miniwob": 0, "mujoco": 8, "minigrid": 0}
"""Steps that are played before a thumbnail is taken, by the environment's folder; `USUAL` for the others."""
USUAL = 5

PHASES, CUT, FRAMES, HOLD = 3, 200, 36, 6
"""Of a film: phases, steps of each, frames of each, and repetitions of the last one."""
FILM_WIDTH, MOST_BYTES = 400, 100_000
MILLISECONDS = 110

DRAWN = tuple(env_id for env_id, entry in IDS.items() if entry.group not in ("alfworld", "bfcl", "tau2"))
"""The ids that have pictures; tools of other packages are text alone."""


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
            oracle = env.get_wrapper_attr("oracle") if _plays_best(env_id) else None
            for _ in range(STEPS.get(entry.group, USUAL)):
                action = info["actions"][0] if oracle is None and is_text else env.action_space.sample()
                observation, _, _, _, info = env.step(action if oracle is None else oracle.action(observation, 0))
            frame = np.asarray(env.render())
        finally:
            env.close()
    picture = Image.fromarray(frame)
    picture.thumbnail((WIDTH, HEIGHT), Image.Resampling.LANCZOS)
    ground = Image.new("RGB", (WIDTH, HEIGHT), tuple(int(part) for part in frame[0, 0]))
    ground.paste(picture, ((WIDTH - picture.width) // 2, (HEIGHT - picture.height) // 2))
    return ground.quantize(COLOURS, dither=Image.Dither.NONE)


def _plays_best(env_id: str) -> bool:
    parts = IDS[env_id]
    return parts.oracle is not None and parts.knows_optimum


def _has_controller(env_id: str) -> bool:
    """Whether an oracle has actions: those of an optimum, or of a reference controller."""
    return IDS[env_id].oracle is not None and env_id != "DriftLunarLander-v0"


def describe_film(env_id: str) -> str:
    """The film's caption: who plays, and what drifts."""
    best = (
        "The best policy of the first phase" if _plays_best(env_id) else "The reference controller of the first phase"
    )
    who = f"{best} plays on without adapting" if _has_controller(env_id) else "Random actions"
    name = film_schedule(env_id)
    return f"{who}, through `{name}`. {load_schedule(name).description}"


def film_schedule(env_id: str) -> str:
    """The schedule of the film: the default one, or if that is a control, the first other one of its folder."""
    default = IDS[env_id].schedule
    folder = default.partition("/")[0]
    names = [default, *(name for name in shipped_schedules() if name.startswith(f"{folder}/"))]
    return next(name for name in names if not load_schedule(name).control)


def draw_film(env_id: str) -> bytes:
    """Draw a film with the overlay, as WebP.

    Args:
        env_id: the id.

    Raises:
        MissingDependencyError: if its extra is not installed.
    """
    entry = IDS[env_id]
    scheduled = open_schedule(film_schedule(env_id), 0, env_id)
    policy = "initial" if _has_controller(env_id) else "random"
    text = entry.text_mode is not None or (entry.text is not None and policy == "initial")
    with without_display():
        env = scheduled.make_env("rgb_array", text=text)
        try:
            clips = list(film(env, scheduled, policy, PHASES, 1, CUT))
        finally:
            env.close()
    frames: list[np.ndarray] = []
    for _, clip in clips:
        shown = clip[:: -(-len(clip) // FRAMES)]
        frames += [*shown, *[clip[-1]] * HOLD]
    return _encode(frames)


def _encode(frames: Sequence[np.ndarray]) -> bytes:
    """Frames as a looping WebP of at most `MOST_BYTES`."""
    for width, quality in ((FILM_WIDTH, 70), (FILM_WIDTH, 45), (320, 35), (260, 30), (200, 20)):
        pictures = []
        for frame in frames:
            picture = Image.fromarray(frame)
            if picture.width > width:
                picture = picture.resize(
                    (width, round(picture.height * width / picture.width)), Image.Resampling.LANCZOS
                )
            pictures.append(picture)
        found = io.BytesIO()
        pictures[0].save(
            found, "webp", save_all=True, append_images=pictures[1:], duration=MILLISECONDS, loop=0, quality=quality,
            method=4, minimize_size=True,
        )  # fmt: skip
        if found.tell() <= MOST_BYTES:
            break
    return found.getvalue()


def main(names: Sequence[str]) -> int:
    """Draw what can be drawn here."""
    if unknown := [name for name in names if name not in DRAWN]:
        print(f"usage: python -m website.pictures [ID...]; no picture has {', '.join(unknown)}", file=sys.stderr)
        return 2
    FOLDER.mkdir(parents=True, exist_ok=True)
    for env_id in names or DRAWN:
        try:
            (FOLDER / f"{env_id}.webp").write_bytes(draw_film(env_id))
            draw_thumbnail(env_id).save(FOLDER / f"{env_id}.png", optimize=True)
        except MissingDependencyError as error:
            print(f"{env_id}: left as it is: {error}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
