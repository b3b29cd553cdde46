"""The task pages of MiniWoB++ in words.

* `MiniwobFacts` - texts and controls, in reading order
"""

from __future__ import annotations

from collections.abc import Mapping

from drift_agents.envs.miniwob.matching import ShownControl, read_web_state
from drift_agents.policy.facts import PlainFacts

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

    cut_states = ('{"page": ', "a page")

    def highest_score(self, task: str) -> float:
        """1: all tasks score from 0 to 1."""
        return 1.0

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
