"""tau2-bench's desks in words.

* `Tau2Facts` - the calls so far and the last answer
"""

from __future__ import annotations

import json

from drift_agents.envs.tau2.matching import read_tau2_state
from drift_agents.policy.facts import PlainFacts

_SHOWN = 240
"""Characters of an answer that records show."""


class Tau2Facts(PlainFacts):
    """The calls so far and the last answer.

    Example:
        >>> state = '{"domain": "airline", "request": "Stop it.", "records": {}, "made": [{"tool": '
        >>> state += '"cancel_reservation", "arguments": {"reservation_id": "EHGLP3"}}], "answer": {"ok": true}}'
        >>> Tau2Facts().describe_state(state)
        'cancel_reservation("EHGLP3") and the answer {"ok": true}'
    """

    cut_states = ('{"domain": ', "a state of the desk")

    def highest_score(self, task: str) -> float:
        """1: all requests score from 0 to 1."""
        return 1.0

    def describe_state(self, state: str) -> str:
        """The calls and the last answer; another text as it is."""
        shown = read_tau2_state(state)
        if shown is None:
            return state
        answer = json.dumps(dict(shown.answer))
        answer = answer if len(answer) <= _SHOWN else f"{answer[:_SHOWN]}..."
        given = [(call.tool, json.loads(call.text)["arguments"].values()) for call in shown.made]
        words = "; ".join(f"{tool}({', '.join(map(json.dumps, values))})" for tool, values in given) or "no call"
        return f"{words} and the answer {answer}"
