"""Prompts in text files beside the code that uses them.

* `read_messages` - a template with its gaps filled, as messages
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from string import Template

from drift_agents.llm.base import Message

SEPARATOR = "\n---\n"
"""The line between the system's message and the user's."""


@lru_cache(maxsize=64)
def _read(name: str) -> tuple[Template, Template]:
    text = files("drift_agents").joinpath(name).read_text(encoding="utf-8")
    system, _, user = text.partition(SEPARATOR)
    return Template(system.strip()), Template(user.strip())


def read_messages(name: str, **values: str) -> tuple[Message, Message]:
    """A template with its gaps filled: a system message and a user message.

    Args:
        name: the file's path below the package, as in `memory/templates/memory_bank_day.txt`. It holds the
            system's message, a line of three dashes, and the user's message; gaps are written `$name`, a dollar
            sign `$$`.
        values: the texts of all gaps, by name.

    Example:
        >>> system, user = read_messages("memory/templates/memory_bank_day.txt", day="It is slippery.")
        >>> user.content
        'It is slippery.'
    """
    return tuple(  # type: ignore[return-value]  # two templates make two messages
        Message(role, template.substitute(values))
        for role, template in zip(("system", "user"), _read(name), strict=True)
    )
