"""What agents know of web pages: when two pages are the same, words, and the planner."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from drift_agents.envs.matching import ParsedMatching
from drift_agents.policy.base import ParsedPlanner, pick
from drift_agents.policy.ranked import PlainFacts
from drift_agents.prompt.view import PromptView, Recollection, settle

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


class MiniwobMatching(ParsedMatching[ShownWebPage]):
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
    parse = staticmethod(read_web_state)

    def key(self, shown: ShownWebPage) -> Hashable:
        """The page's name and its controls."""
        return shown.page, tuple(
            (control.kind, shown.place_of(control.name), shown.place_of(control.value))
            for control in shown.controls
            if control.kind != "option" or control.chosen
        )

    def path_key(self, state: str) -> Hashable:
        """The key with the task: on a path its values are typed."""
        shown = self.parse(state)
        return state if shown is None else (self.key(shown), shown.task)

    def is_relevant(self, here: ShownWebPage, there: ShownWebPage) -> bool:
        """Records of the same page are."""
        return here.page == there.page


NOTHING = "nothing"
"""What is shown where a page has no texts, or no controls."""


class MiniwobFacts(PlainFacts):
    """Texts and controls, in reading order.

    Example:
        >>> state = '{"page": "enter-text", "task": "Enter Tula.", "values": ["Tula"], '
        >>> state += '"elements": [{"field": "Name", "value": ""}, {"button": "Submit"}]}'
        >>> MiniwobFacts().describe_state(state)
        'a page with field "Name" (empty), button "Submit"'
    """

    best_score = 1.0
    cut_states = ('{"page": ', "a page")

    def describe_state(self, state: str) -> str:
        """The controls of the page; another text as it is."""
        shown = read_web_state(state)
        if shown is None:
            return state
        return f"a page with {', '.join(map(_control, shown.controls)) or NOTHING}"

    def state_fields(self, state: str) -> Mapping[str, str]:
        """`texts` and `controls`, a line each."""
        shown = read_web_state(state)
        if shown is None:
            return {"texts": state, "controls": "unknown"}
        return {
            "texts": "\n".join(shown.texts) or NOTHING,
            "controls": "\n".join(map(_control, shown.controls)) or NOTHING,
        }


def _control(control: ShownControl) -> str:
    words = f'{control.kind} "{control.name}"'
    if control.kind == "field":
        return f'{words} ("{control.value}")' if control.value else f"{words} (empty)"
    return f"{words} (chosen)" if control.chosen else words


_COUNT = re.compile(r" \(\d+\)$")
_PRESSED = ("button", "link", "folder", "file")


class MiniwobPlanner(ParsedPlanner[ShownWebPage]):
    r"""Fills the fields that the instruction names, then clicks what is known to work, or was not tried.

    Its prior knowledge is that of a reader of the page: what the instruction quotes goes into the field of that name,
    or the only one; what it names is clicked; else a button. Which of several such controls acts is not on the page:
    it follows the records of this state, tries controls without records first if no record is good, and leaves ties
    to chance. It solves pages with fields, buttons, lists and tabs; search results, calendars and folders are left
    to chance.

    Args:
        conflict: how several outcomes of one (state, action) are weighed (`drift_agents.prompt.view`).

    Raises:
        ArgumentError: if `conflict` is no rule.

    Example:
        >>> state = '{"page": "enter-text", "task": "Enter Tula.", "values": ["Tula"], '
        >>> state += '"elements": [{"field": "Name", "value": ""}, {"button": "Submit"}]}'
        >>> view = PromptView("Enter Tula.", state, ("type[Name = Tula]", "click[Submit]"))
        >>> MiniwobPlanner().decide(view, np.random.default_rng(0)).text
        'type[Name = Tula]'
    """

    name, shows = "miniwob", "one of a web page"
    parse = staticmethod(read_web_state)

    def __init__(self, *, conflict: str = "majority") -> None:
        super().__init__(conflict=conflict)
        self._matching = MiniwobMatching()

    def _choose(self, shown: ShownWebPage, view: PromptView, rng: np.random.Generator) -> str:
        wanted = _next_entry(shown)
        if wanted not in view.actions:
            # The controls that the instruction names, else all buttons, else all that can be clicked.
            pressed = [control for control in shown.controls if control.kind in _PRESSED]
            named = [control for control in pressed if _COUNT.sub("", control.name) in shown.values]
            candidates = named or [control for control in pressed if control.kind == "button"] or pressed
            clicks = [f"click[{control.name}]" for control in candidates]
            choices = [action for action in view.actions if action in clicks] or list(view.actions)
            if not choices:
                return "click[]"
            worths = [self._worth(view, action) for action in choices]
            best = [action for action, worth in zip(choices, worths, strict=True) if worth == max(worths)]
            wanted = pick(best, rng)
        return wanted

    def _worth(self, view: PromptView, action: str) -> float:
        """1 for an action that is known to lead on, 0 for one that is known to fail, and between them if unknown."""
        records = [record for record in view.here if record.action == action]
        if not records:
            return 0.5
        sightings = [(self._is_good(record), record.support, record.last) for record in records]
        shares = settle(sightings, self.conflict)
        total = sum(share for _, share in shares)
        return sum(share for good, share in shares if good) / total if total else 0.0

    def _is_good(self, record: Recollection) -> bool:
        """Whether an outcome has paid, or has led to another state."""
        if record.outcome.ended:
            return record.outcome.score > 0
        return self._matching.state_key(record.outcome.state) != self._matching.state_key(record.state)


def _next_entry(shown: ShownWebPage) -> str:
    """The next field to fill, or option to choose, as an action; "" if there is none."""
    named = {word.lower(): value for word, value in re.findall(r'(\w+) "([^"]*)"', shown.task)}
    for control in shown.controls:
        if control.kind == "option" and not control.chosen and control.name in shown.values[:1]:
            return f"click[{control.name}]"
        if control.kind != "field" or not shown.values:
            continue
        value = named.get(control.name.lower(), shown.values[0])
        if control.value not in (value, HIDDEN * len(value)):
            return f"type[{control.name} = {value}]"
    return ""
