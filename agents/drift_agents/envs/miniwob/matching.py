"""When two states of a web page, and what they lead to, count as the same.

* `MiniwobMatching` - the page's controls, with the values of the task replaced by their places in it
* `ShownWebPage` - a state of a web page as its JSON text shows it
* `ShownControl` - a control on it
* `read_web_state` - from the text to that
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from functools import lru_cache
from typing import Any, NamedTuple

from drift_agents.matching import Exact
from drift_agents.types import Transition

KINDS = ("button", "link", "field", "option", "folder", "file")
HIDDEN = "*"
"""What a field for passwords shows for each character."""


class ShownControl(NamedTuple):
    """A control on a web page.

    Args:
        kind: one of `KINDS`.
        name: its name.
        value: the content of a field.
        chosen: whether an option is chosen.
    """

    kind: str
    name: str
    value: str
    chosen: bool


class ShownWebPage(NamedTuple):
    """A state of a web page, parsed from its JSON text.

    Args:
        page: the name of the page.
        task: the instruction.
        values: the values that the instruction names.
        texts: the texts, in reading order.
        controls: the controls, in reading order.
    """

    page: str
    task: str
    values: tuple[str, ...]
    texts: tuple[str, ...]
    controls: tuple[ShownControl, ...]

    def place_of(self, text: str) -> str:
        """The text, or its place among the values of the task."""
        if text in self.values:
            return f"<{self.values.index(text) + 1}>"
        return "<hidden>" if text and not text.strip(HIDDEN) else text


@lru_cache(maxsize=32768)
def read_web_state(state: str) -> ShownWebPage | None:
    """Parse a state; `None` if the text is no state of a web page.

    Args:
        state: the text state.

    Example:
        >>> text = '{"page": "enter-text", "task": "Enter Tula.", "values": ["Tula"], '
        >>> shown = read_web_state(text + '"elements": [{"field": "Name", "value": "Tula"}, {"button": "Submit"}]}')
        >>> [shown.place_of(control.value) for control in shown.controls]
        ['<1>', '']
    """
    try:
        shown = json.loads(state)
        page, task, values = str(shown["page"]), str(shown["task"]), tuple(map(str, shown["values"]))
        texts = tuple(str(entry["text"]) for entry in shown["elements"] if "text" in entry)
        controls = tuple(_read_control(entry) for entry in shown["elements"] if "text" not in entry)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return ShownWebPage(page, task, values, texts, controls)


def _read_control(entry: dict[str, Any]) -> ShownControl:
    kind = next((kind for kind in KINDS if kind in entry), "")
    return ShownControl(kind, str(entry[kind]), str(entry.get("value", "")), bool(entry.get("chosen", False)))


class MiniwobMatching(Exact):
    """The page's controls, with the values of the task replaced by their places in it.

    So a page under another task is the same state, as long as its controls are the same and its fields hold the same
    values of the task: records of a button apply to all tasks. Texts are left out, and of a list all but the chosen
    option.

    Texts that are no states of a web page are compared as they are.

    Example:
        >>> rule = MiniwobMatching()
        >>> one = '{"page": "enter-text", "task": "Enter Tula.", "values": ["Tula"], '
        >>> one += '"elements": [{"field": "Name", "value": "Tula"}, {"button": "Submit"}]}'
        >>> rule.state_key(one) == rule.state_key(one.replace("Tula", "Joye"))
        True
        >>> rule.state_key(one) == rule.state_key(one.replace('"value": "Tula"', '"value": ""'))
        False
    """

    name = "miniwob"

    def state_key(self, state: str) -> Hashable:
        """The page's name and its controls."""
        shown = read_web_state(state)
        if shown is None:
            return super().state_key(state)
        return shown.page, tuple(
            (control.kind, shown.place_of(control.name), shown.place_of(control.value))
            for control in shown.controls
            if control.kind != "option" or control.chosen
        )

    def path_key(self, state: str) -> Hashable:
        """The key with the task: on a path its values are typed."""
        shown = read_web_state(state)
        return super().state_key(state) if shown is None else (self.state_key(state), shown.task)

    def same_outcome(self, a: Transition, b: Transition) -> bool:
        """Whether score, end and the key of the next page are the same."""
        one, other = a.outcome, b.outcome
        if one.score != other.score or one.ended != other.ended:
            return False
        return self.state_key(one.state) == self.state_key(other.state)

    def related(self, state: str, other: str) -> bool:
        """Whether records of `other` are relevant in `state`: those of the same page are.

        Args:
            state: the present state.
            other: a state with records.
        """
        here, there = read_web_state(state), read_web_state(other)
        return here is None or there is None or here.page == there.page
