"""The service desk in words.

* `ToolsFacts` - the calls so far and the last answer
"""

from __future__ import annotations

import json

from drift_agents.envs.tools.call import Call
from drift_agents.envs.tools.matching import read_desk_state
from drift_agents.policy.facts import PlainFacts

_SHOWN = 240
"""Characters of an answer that records show."""


class ToolsFacts(PlainFacts):
    """The calls so far and the last answer.

    Example:
        >>> state = '{"shop": 7, "request": "I am Bo, bo@example.org. Stop my order.", "records": {}, '
        >>> state += '"calls": [{"tool": "get_order", "arguments": {"order_id": "O-2054"}}], "answer": {"ok": true}}'
        >>> ToolsFacts().describe_state(state)
        'get_order(O-2054) and the answer {"ok": true}, for "I am Bo, bo@example.org. Stop my order."'
    """

    cut_states = ('{"shop": ', "a state of the desk")

    def highest_score(self, task: str) -> float:
        """1: all requests score from 0 to 1."""
        return 1.0

    def describe_state(self, state: str) -> str:
        """The calls, the last answer and the request; another text as it is."""
        shown = read_desk_state(state)
        if shown is None:
            return state
        answer = json.dumps(dict(shown.answer))
        answer = answer if len(answer) <= _SHOWN else f"{answer[:_SHOWN]}..."
        words = "; ".join(map(_describe_call, shown.calls)) or "no call"
        return f'{words} and the answer {answer}, for "{shown.request}"'


def _describe_call(call: Call) -> str:
    given = json.loads(call.text).get("arguments", {})
    return f"{call.tool}({', '.join(map(str, given.values()))})"
