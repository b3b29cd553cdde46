"""Templates of prompts for language models: text files that users can edit.

A template has sections under headings like `=== user ===`; placeholders are written `$name`, a dollar
sign `$$`. Text above the first heading is a comment. The sections `system` and `user` are required; the
others render memory, and what they leave out is not part of the messages. The section `base` names a template that
supplies the sections which this one lacks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from string import Template

from drift_agents.errors import ArgumentError

BASE = "base"
SECTIONS: tuple[str, ...] = (
    *("system", "user", "here", "here record", "elsewhere", "elsewhere record", "lessons", "lesson"),
    *("doubt", "episode", "episode record", "visits", "untried", "example", "estimate", "contradicted", "visited"),
    *("below", "shut", "older", "rules", BASE),
)
BLOCKS = ("memory", "lessons", "elsewhere", "doubt", "episode", "visits", "here", "untried", "below", "shut", "example")
"""Placeholders of the section `user` that take a line of their own, which is left out when they are empty."""
_HEADING = re.compile(r"^=== (.+?) ===$\n?", re.MULTILINE)


class PromptTemplate:
    r"""A file of prompt sections with placeholders.

    Args:
        name: its name in error messages.
        text: its content.
        load: returns the template that the section `base` names.

    Raises:
        ArgumentError: if a section is unknown, duplicate, or required and missing.

    Example:
        >>> template = PromptTemplate("mine", "=== system ===\nYou play.\n=== user ===\nYou are at $place.\n")
        >>> template.fill("user", {"place": "the start"})
        'You are at the start.'
    """

    def __init__(self, name: str, text: str, load: Callable[[str], PromptTemplate] | None = None) -> None:
        self.name = name
        _, *parts = _HEADING.split(text)
        self._sections: dict[str, Template] = {}
        for title, body in zip(parts[::2], parts[1::2], strict=True):
            if title not in SECTIONS or title in self._sections:
                what = "duplicate" if title in self._sections else "unknown"
                raise ArgumentError(
                    f"the prompts {name}: the section {title!r} is {what}. Known: {', '.join(SECTIONS)}"
                )
            self._sections[title] = Template(body.strip("\n"))
        if BASE in self._sections and load is not None:
            self._sections = {**load(self._sections[BASE].template)._sections, **self._sections}
        for title in ("system", "user"):
            if title not in self._sections:
                raise ArgumentError(f"the prompts {name}: the section {title!r} is missing")

    def __contains__(self, section: str) -> bool:
        """Whether there is a section of that name."""
        return section in self._sections

    def uses(self, section: str, placeholder: str) -> bool:
        """Whether a section has a placeholder, written `$name` or `${name}`."""
        return re.search(rf"\$\{{?{placeholder}\b", self._sections[section].template) is not None

    def fill(self, section: str, values: Mapping[str, str]) -> str:
        """A section with its placeholders replaced; an empty text if the template lacks it.

        Raises:
            ArgumentError: if a placeholder has no value, or there is a single dollar sign.
        """
        if section not in self._sections:
            return ""
        template = self._sections[section]
        if section == "user":
            for block in BLOCKS:
                if not values.get(block, True):
                    # The line would be empty; it is left out together with the empty line below it.
                    template = Template(re.sub(rf"^\${block}\n+", "", template.template, flags=re.MULTILINE))
        try:
            text = template.substitute(values)
            return text.rstrip("\n") if section == "user" else text  # its last block may be empty
        except KeyError as error:
            raise ArgumentError(
                f"the prompts {self.name}: section {section!r} has the placeholder ${error.args[0]}, which has no "
                f"value there. Known: {', '.join(sorted(values))}"
            ) from error
        except ValueError as error:
            raise ArgumentError(
                f"the prompts {self.name}: section {section!r}: {error}. A dollar sign is written $$"
            ) from error

    def listing(self, section: str, entries: list[str]) -> str:
        """Join entries, with an empty line between them where they have several lines."""
        apart = "\n" in self._sections[section].template
        return ("\n\n" if apart else "\n").join(entries)


@lru_cache(maxsize=64)
def load_template(reference: str, folder: str | os.PathLike[str] | None = None) -> PromptTemplate:
    """Load a template.

    Args:
        reference: `package:name` for the file `templates/name.txt` in the package, as
            `drift_agents.envs.base.AgentEnvironment.templates` has it.
        folder: a folder with templates that replace those of packages, by file name.

    Raises:
        ArgumentError: if the file cannot be read or used.

    Example:
        >>> "here record" in load_template("drift_agents.envs.frozen_lake:frozen_lake")
        True
    """
    package, name = reference.split(":")
    own = None if folder is None else Path(folder) / f"{name}.txt"
    is_own = own is not None and own.exists()
    file = own if is_own and own is not None else files(package).joinpath("templates", f"{name}.txt")
    shown = str(own) if is_own else name
    place = None if folder is None else os.fspath(folder)
    try:
        return PromptTemplate(shown, file.read_text("utf-8"), lambda base: load_template(base, place))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not UTF-8"
        raise ArgumentError(f"{shown}: the prompts cannot be read: {reason}") from error
