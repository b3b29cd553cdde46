"""When two states of tau2-bench's desks, and what they lead to, count as the same.

* `Tau2Matching` - the request and the calls so far; outcomes by their answers
* `ShownTau2`, `read_tau2_state` - a state as its JSON text shows it
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from drift_agents.envs.tau2.call import DeskCall, read_call
from drift_agents.matching import Exact
from drift_agents.types import Experience, Transition


class ShownTau2(NamedTuple):
    """A state, parsed from its JSON text.

    Args:
        request: the request in words.
        records: what reads have shown, by id.
        made: the calls that were answered without an error.
        answer: the last answer.
    """

    request: str
    records: Mapping[str, Any]
    made: tuple[DeskCall, ...]
    answer: Mapping[str, Any]


@lru_cache(maxsize=4096)
def read_tau2_state(state: str) -> ShownTau2 | None:
    """Parse a state; `None` if the text is no state of these desks.

    Args:
        state: the text state.

    Example:
        >>> text = '{"domain": "retail", "request": "Stop it.", "records": {}, "made": [], "answer": {}}'
        >>> read_tau2_state(text).request
        'Stop it.'
    """
    try:
        shown = json.loads(state)
        calls = [read_call(json.dumps(one)) for one in shown["made"]]
        request, records, answer = str(shown["request"]), dict(shown["records"]), dict(shown["answer"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    made = tuple(one for one in calls if one is not None)
    return ShownTau2(request, records, made, answer) if len(made) == len(calls) else None


class Tau2Matching:
    """The request and the calls that were answered without an error; outcomes by their answers.

    A call that was refused changed nothing, so the last answer belongs to the outcome and not to the state. What was
    read follows from the calls. Texts that are no states are compared as they are.

    Example:
        >>> rule = Tau2Matching()
        >>> one = '{"domain": "retail", "request": "Stop it.", "records": {}, "made": [], "answer": {}}'
        >>> rule.state_key(one) == rule.state_key(one.replace('"answer": {}', '"answer": {"error": 440}'))
        True
        >>> rule.state_key(one) == rule.state_key(one.replace("Stop", "Send"))
        False
    """

    name = "tau2"

    def __init__(self) -> None:
        self._plain = Exact()

    def state_key(self, state: str) -> Hashable:
        """Request and calls."""
        shown = read_tau2_state(state)
        return self._plain.state_key(state) if shown is None else (shown.request, tuple(c.text for c in shown.made))

    def same_outcome(self, a: Transition, b: Transition) -> bool:
        """Whether score, end and answer are the same."""
        one, other = read_tau2_state(a.outcome.state), read_tau2_state(b.outcome.state)
        if one is None or other is None:
            return self._plain.same_outcome(a, b)
        return (a.outcome.score, a.outcome.ended, one.answer) == (b.outcome.score, b.outcome.ended, other.answer)

    def learn(self, experience: Experience) -> None:
        """Do nothing: the rule is fixed."""

    def related(self, state: str, other: str) -> bool:
        """Whether records of `other` are relevant in `state`: for the same request, or where enough was done to end.

        Args:
            state: the present state.
            other: a state with records.
        """
        here, there = read_tau2_state(state), read_tau2_state(other)
        return here is None or there is None or here.request == there.request or len(there.made) > 1
