"""Prompts for language models as text files that a person can edit.

* `PromptTemplate` - one such file: sections with gaps
* `load_template` - the template of a world
* `TEMPLATES` - the names of the sheets

A template has sections under headings like `=== user ===`; gaps are written `$name`, a dollar sign `$$`.
What stands above the first heading is for the reader of the file. `system` and `user` are needed; the
others say how memory is told, and what they leave out is not told.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from string import Template

from drift_agents.errors import ArgumentError

TEMPLATES = ("lake", "car", "shop", "plain", "react")
"""The names of the sheets; `plain` is for worlds without one of their own, `react` for the format of that name."""

SECTIONS = ("system", "user", "here", "here record", "elsewhere", "elsewhere record", "lessons", "lesson")
DOUBTS = ("doubt", "surprise")
_HEADING = re.compile(r"^=== (.+?) ===$\n?", re.MULTILINE)


class PromptTemplate:
    r"""One file of prompts: sections with gaps.

    Args:
        name: how messages call it.
        text: its content.

    Raises:
        ArgumentError: if a section is unknown, twice there, or needed and missing.

    Example:
        >>> template = PromptTemplate("mine", "=== system ===\nYou play.\n=== user ===\nYou are at $place.\n")
        >>> template.fill("user", {"place": "the start"})
        'You are at the start.'
    """

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        _, *parts = _HEADING.split(text)
        self._sections: dict[str, Template] = {}
        for title, body in zip(parts[::2], parts[1::2], strict=True):
            if title not in SECTIONS + DOUBTS or title in self._sections:
                what = "twice there" if title in self._sections else "unknown"
                raise ArgumentError(
                    f"the prompts {name}: the section {title!r} is {what}. Known: {', '.join(SECTIONS + DOUBTS)}"
                )
            self._sections[title] = Template(body.strip("\n"))
        for title in ("system", "user"):
            if title not in self._sections:
                raise ArgumentError(f"the prompts {name}: the section {title!r} is missing")

    def __contains__(self, section: str) -> bool:
        """Whether there is a section of that name."""
        return section in self._sections

    def fill(self, section: str, gaps: Mapping[str, str]) -> str:
        """A section with its gaps filled.

        Raises:
            ArgumentError: if it has a gap that nothing is known for, or a stray dollar sign.
        """
        template = self._sections[section]
        if section == "user" and not gaps.get("memory", True):
            # A line that would stay empty is left out together with the empty line below it.
            template = Template(re.sub(r"^\$memory\n+", "", template.template, flags=re.MULTILINE))
        try:
            return template.substitute(gaps)
        except KeyError as error:
            raise ArgumentError(
                f"the prompts {self.name}: section {section!r} has the gap ${error.args[0]}, but nothing of that "
                f"name is known there. Known: {', '.join(sorted(gaps))}"
            ) from error
        except ValueError as error:
            raise ArgumentError(
                f"the prompts {self.name}: section {section!r}: {error}. A dollar sign is written $$"
            ) from error

    def listing(self, section: str, entries: list[str]) -> str:
        """Entries below each other, with an empty line between them where they have several lines."""
        apart = "\n" in self._sections[section].template
        return ("\n\n" if apart else "\n").join(entries)


@lru_cache(maxsize=16)
def load_template(name: str, folder: str | os.PathLike[str] | None = None) -> PromptTemplate:
    """The template of a world.

    Args:
        name: one of `TEMPLATES`.
        folder: a folder with sheets of one's own; ours count for those that it does not have.

    Raises:
        ArgumentError: if the file cannot be read or used.

    Example:
        >>> "here record" in load_template("lake")
        True
    """
    own = None if folder is None else Path(folder) / f"{name}.txt"
    if own is None or not own.exists():
        return PromptTemplate(name, files("drift_agents").joinpath(f"policy/templates/{name}.txt").read_text("utf-8"))
    try:
        return PromptTemplate(str(own), own.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not UTF-8"
        raise ArgumentError(f"{own}: the prompts cannot be read: {reason}") from error
