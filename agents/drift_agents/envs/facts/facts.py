"""Days in words.

* `HeardFacts` - what was heard, and the question
"""

from __future__ import annotations

from collections.abc import Mapping

from drift_agents.envs.facts.statements import read_day
from drift_agents.policy.facts import PlainFacts
from drift_agents.prompt.view import PromptView, Recollection


class HeardFacts(PlainFacts):
    r"""What was heard, and the question.

    Example:
        >>> state = '{"day": 4, "heard": ["It rained."], "asked": 0, "question": "What is Ana\'s office?"}'
        >>> HeardFacts().describe_state(state)
        'day 4, heard "It rained.", asked "What is Ana\'s office?"'
    """

    cut_states = ('{"day": ', "a day")

    def describe_state(self, state: str) -> str:
        """The day, what was heard, and the question; another text as it is."""
        shown = read_day(state)
        if shown is None:
            return state
        return ", ".join([f"day {shown.day}", *(f'heard "{one}"' for one in shown.heard), f'asked "{shown.question}"'])

    def highest_score(self, task: str) -> float:
        """1, for the present value without asking."""
        return 1.0

    def is_of_other_task(self, item: Recollection, view: PromptView) -> bool:
        """Whether the outcome was seen under another question."""
        then, now = read_day(item.state), read_day(view.state)
        return then is not None and now is not None and then.about != now.about

    def state_fields(self, state: str) -> Mapping[str, str]:
        """`day`, `heard` and `question`."""
        shown = read_day(state)
        if shown is None:
            return {"day": "unknown", "heard": state, "question": "unknown"}
        return {"day": str(shown.day), "heard": " ".join(shown.heard), "question": shown.question}
