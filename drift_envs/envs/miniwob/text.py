"""A task page in words: the state as JSON, and actions as strings.

* `find_action`, `list_actions`, `can_type` - what an action in words does on a page, and which are admissible
* `write_state` - a page as JSON
"""

from __future__ import annotations

import json
import re
from typing import Any

from drift_envs.envs.miniwob.page import PageElement, PageReading
from drift_envs.envs.miniwob.tasks import read_values

MAX_LENGTH = 16_384
"""Characters of a state."""

_ACTION = re.compile(r"(click|type)\[(.*)\]", re.DOTALL)


def find_action(reading: PageReading, action: str) -> tuple[tuple[int, str | None] | None, str | None]:
    """What an action in words does on a page.

    Args:
        reading: the page.
        action: the action.

    Returns:
        The place of the element and the text to type (`None` to click), or `None` and the reason why not.

    Example:
        >>> from drift_envs.envs.miniwob.page import PageElement
        >>> parts = PageElement("field", "Name"), PageElement("button", "Login")
        >>> page = PageReading(False, 0.0, "Press Login.", parts)
        >>> find_action(page, "click[Login]"), find_action(page, "type[Name = Tula]")
        (((1, None), None), ((0, 'Tula'), None))
        >>> find_action(page, "click[Logout]")
        (None, "there is no 'Logout' to click on this page")
    """
    match = _ACTION.fullmatch(action.strip())
    if match is None:
        return None, "an action should have the form click[name] or type[field = text]"
    verb, argument = match.groups()
    if verb == "click":
        name, text = argument, None
    else:
        name, equals, text = argument.partition(" = ")
        if not equals:
            return None, "an action should have the form type[field = text]"
    for index, part in enumerate(reading.elements):
        if part.name == name.strip() and (part.kind != "text" if verb == "click" else can_type(part)):
            return (index, text), None
    return None, f"there is no {name.strip()!r} to {verb} on this page" if verb == "click" else (
        f"there is no field {name.strip()!r} on this page"
    )


def can_type(part: PageElement) -> bool:
    """Whether text can be typed into an element."""
    return part.kind == "field" and not part.fixed


def list_actions(task: str, reading: PageReading) -> list[str]:
    """The admissible actions of a page: clicks, and the values of the instruction typed into each field.

    Args:
        task: one of `TASKS`.
        reading: the page.
    """
    values = read_values(task, reading.task)
    found = []
    for part in reading.elements:
        if can_type(part):
            found += [f"type[{part.name} = {value}]" for value in dict.fromkeys(values)]
        if part.kind != "text":
            found.append(f"click[{part.name}]")
    return found


def write_state(task: str, reading: PageReading) -> str:
    """A page as JSON, without the last elements if there are too many.

    Args:
        task: one of `TASKS`.
        reading: the page.
    """
    elements: list[dict[str, Any]] = []
    for part in reading.elements:
        entry: dict[str, Any] = {part.kind: part.name}
        if part.kind == "field":
            entry["value"] = part.value
        if part.kind == "option":
            entry["chosen"] = part.chosen
        elements.append(entry)
    state = {"page": task, "task": reading.task, "values": list(read_values(task, reading.task)), "elements": elements}
    text = json.dumps(state)
    while len(text) > MAX_LENGTH:
        del elements[-max(1, len(elements) // 8) :]
        text = json.dumps(state)
    return text
