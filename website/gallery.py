"""The gallery: every environment in its phases, and every shipped schedule over time.

* `draw` - draws all pictures
* `page` - the page that shows them
"""

from __future__ import annotations

import io
import re
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
    pictures = [_picture_of(env_id, folder) for env_id in IDS]
    return pictures + [_schedule(name, folder) for name in shipped_schedules()]


def page(pictures: Sequence[Picture]) -> str:
    """The page that shows the pictures of `draw` in the folder `gallery`, in Markdown with figures."""
    lines = [
        "# Gallery",
        "Environments in their first phases, with the overlay that shows what changed, and the knobs of shipped",
        "schedules over their ticks (seed 0). What needs an extra that this site was built without stands at the end.",
    ]
    drawn = [picture for picture in pictures if picture.file]
    for group in dict.fromkeys(picture.group for picture in drawn):
        wide = "" if group == "Environments" else ' class="gallery"'
        lines += ["", f"## {group}", f"<div{wide} markdown>"]
        for picture in drawn:
            if picture.group == group:
                lines += [
                    "<figure markdown>",
                    f"![{picture.title}](gallery/{picture.file}){{ loading=lazy }}",
                    f"<figcaption markdown>`{picture.title}`: {picture.text}</figcaption>",
                    "</figure>",
                ]
        lines.append("</div>")
    missing: dict[str, list[str]] = {}
    for picture in pictures:
        if not picture.file:
            missing.setdefault(picture.text, []).append(f"`{picture.title}`")
    if missing:
        lines += ["", "## Not drawn", "", "| why | what |", "|---|---|"]
        lines += [f"| {reason} | {', '.join(titles)} |" for reason, titles in missing.items()]
    return "\n".join(lines) + "\n"
