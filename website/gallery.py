"""The gallery: every environment in its phases, and every shipped schedule over time.

`python -m website.gallery FOLDER` draws the pictures and writes `gallery.md` beside them.

* `draw` - draws all pictures
* `page` - the page that shows them
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from drift_envs import DriftEnvsError, load_schedule, shipped_schedules
from drift_envs.cli.plot import plot_schedule
from drift_envs.cli.record import POLICIES, RecordOptions, record
from drift_envs.registration import IDS


class Picture(NamedTuple):
    """One picture of the gallery, or the reason why there is none.

    Args:
        group: the heading that it stands under.
        title: what it shows.
        file: its name; empty if it could not be drawn.
        text: its caption, or the reason.
    """

    group: str
    title: str
    file: str
    text: str


def _attempt(title: str, group: str, file: str, text: str, work: Callable[[], None]) -> Picture:
    """The picture, or the reason why it cannot be drawn here."""
    try:
        with redirect_stdout(io.StringIO()):
            work()
    except (DriftEnvsError, ImportError) as error:
        return Picture(group, title, "", str(error))
    return Picture(group, title, file, text)


def _picture_of(env_id: str, folder: Path) -> Picture:
    file, schedule = f"{env_id}.png", IDS[env_id].schedule
    pictures = (
        _attempt(
            env_id,
            "Environments",
            file,
            f"The first phases of `{schedule}`.",
            partial(record, RecordOptions(env_id, folder / file, None, policy, 3, None, None, None, 0)),
        )
        for policy in POLICIES  # where there is no oracle, random actions
    )
    found = next(pictures)
    return found if found.file else next(pictures)


def _schedule(name: str, folder: Path) -> Picture:
    file = f"{re.sub('[/:]', '-', name)}.svg"  # no system refuses this name of a file
    work = partial(plot_schedule, Console(), name, folder / file, None, 0, None)
    return _attempt(name, f"`{name.split('/')[0]}`", file, load_schedule(name).description or "", work)


def draw(folder: Path) -> list[Picture]:
    """Draw all pictures.

    Args:
        folder: where they go; made if it does not exist.

    Returns:
        One for each environment and each shipped schedule; those that need an extra that is not installed, and
        schedules that set no knob, have no file but a reason.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pictures = [_picture_of(env_id, folder) for env_id, entry in IDS.items() if entry.parts.extra is None]
    return pictures + [_schedule(name, folder) for name in shipped_schedules()]


def page(pictures: Sequence[Picture], folder: str = "gallery/") -> str:
    """The page that shows the pictures, in Markdown with figures.

    Args:
        pictures: those of `draw`.
        folder: where their files are, seen from the page.
    """
    lines = [
        "# Gallery",
        "Every environment in its first phases, with the overlay that shows what changed, and the knobs of every",
        "shipped schedule over its ticks (seed 0). Drawn by `python -m website.gallery FOLDER`.",
    ]
    for group in dict.fromkeys(picture.group for picture in pictures):
        members = [picture for picture in pictures if picture.group == group]
        wide = "" if group == "Environments" else ' class="gallery"'
        lines += ["", f"## {group}", f"<div{wide} markdown>"]
        for picture in members:
            if picture.file:
                lines += [
                    "<figure markdown>",
                    f"![{picture.title}]({folder}{picture.file}){{ loading=lazy }}",
                    f"<figcaption markdown>`{picture.title}`: {picture.text}</figcaption>",
                    "</figure>",
                ]
        lines.append("</div>")
        lines += [f"\n`{picture.title}`: {picture.text}" for picture in members if not picture.file]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str]) -> int:
    """Draw the gallery into a folder."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print("usage: python -m website.gallery FOLDER", file=sys.stderr)
        return 0 if "--help" in arguments else 2
    folder = Path(arguments[0])
    (folder / "gallery.md").write_text(page(draw(folder), ""), encoding="utf-8")
    print(f"wrote {folder / 'gallery.md'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
