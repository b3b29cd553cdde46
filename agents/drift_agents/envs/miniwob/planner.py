"""The planner for web pages: a function of the view and a generator for ties.

* `MiniwobPlanner` - fills the fields that the instruction names, then clicks what is known to work, or was not tried
"""

from __future__ import annotations

import re

import numpy as np

from drift_agents.envs.miniwob.matching import HIDDEN, MiniwobMatching, ShownControl, ShownWebPage, read_web_state
from drift_agents.errors import ArgumentError
from drift_agents.policy.base import Reply
from drift_agents.prompt.conflict import check_conflict, settle
from drift_agents.prompt.view import PromptView, Recollection

_COUNT = re.compile(r" \(\d+\)$")
_PRESSED = ("button", "link", "folder", "file")


class MiniwobPlanner:
    r"""Fills the fields that the instruction names, then clicks what is known to work, or was not tried.

    Its prior knowledge is that of a reader of the page: what the instruction quotes goes into the field of that name,
    or the only one; what it names is clicked; else a button. Which of several such controls acts is not on the page:
    it follows the records of this state, tries controls without records first if no record is good, and leaves ties
    to chance. It solves pages with fields, buttons, lists and tabs; search results, calendars and folders are left
    to chance.

    Args:
        conflict: how several outcomes of one (state, action) are weighed (`drift_agents.prompt.conflict`).

    Raises:
        ArgumentError: if `conflict` is no rule.

    Example:
        >>> state = '{"page": "enter-text", "task": "Enter Tula.", "values": ["Tula"], '
        >>> state += '"elements": [{"field": "Name", "value": ""}, {"button": "Submit"}]}'
        >>> view = PromptView("Enter Tula.", state, ("type[Name = Tula]", "click[Submit]"))
        >>> MiniwobPlanner().decide(view, np.random.default_rng(0)).text
        'type[Name = Tula]'
    """

    name = "miniwob"

    def __init__(self, *, conflict: str = "majority") -> None:
        self.conflict = check_conflict(conflict)
        self._matching = MiniwobMatching()

    def decide(self, view: PromptView, rng: np.random.Generator) -> Reply:
        """Choose an action.

        Args:
            view: what the policy decides by.
            rng: for ties.

        Raises:
            ArgumentError: if the prompt has no state of a web page.
        """
        shown = read_web_state(view.state)
        if shown is None:
            raise ArgumentError(f"the state should be one of a web page. Received {view.state!r}")
        wanted = _next_entry(shown)
        if wanted not in view.actions:
            clicks = [f"click[{control.name}]" for control in _candidates(shown)]
            choices = [action for action in view.actions if action in clicks] or list(view.actions)
            if not choices:
                return Reply("click[]")
            worths = [self._worth(view, action) for action in choices]
            best = [action for action, worth in zip(choices, worths, strict=True) if worth == max(worths)]
            wanted = best[int(rng.integers(len(best)))]
        return Reply(wanted)

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


def _candidates(shown: ShownWebPage) -> list[ShownControl]:
    """The controls that the instruction names, else all buttons, else all that can be clicked."""
    pressed = [control for control in shown.controls if control.kind in _PRESSED]
    named = [control for control in pressed if _COUNT.sub("", control.name) in shown.values]
    return named or [control for control in pressed if control.kind == "button"] or pressed
