"""Common sense at a service desk, for rule-based message policies.

* `ToolsSense` - looks up, writes and ends, by the tools and the page in the messages
"""

from __future__ import annotations

import json
import re

from drift_agents.envs.tools.beliefs import DeskBeliefs
from drift_agents.envs.tools.manual import read_manual
from drift_agents.envs.tools.matching import read_desk_state
from drift_agents.envs.tools.plan import DeskPlan
from drift_agents.envs.tools.wish import read_wish
from drift_agents.policy.message_reader.common_sense import CommonSense, choose_untried
from drift_agents.policy.message_reader.text import MessageText
from drift_agents.prompt.conflict import CONFLICTS
from drift_agents.prompt.view import PromptView

_STATE = re.compile(r'(?:Current state|current observation is): (?=\{"shop": )')


class ToolsSense(CommonSense):
    """Looks up, writes, checks and ends; of several ways that make sense one that was not tried in this state."""

    def choose(self, read: MessageText) -> list[str]:
        """The calls that make sense, the best ones first.

        Args:
            read: the parsed messages.
        """
        found = _STATE.search(read.text)
        shown = read_desk_state(_first_object(read.text[found.end() :])) if found else None
        wish = None if shown is None else read_wish(shown.request)
        if shown is None or wish is None:
            return choose_untried(read)
        beliefs = DeskBeliefs(PromptView(read.text, "{}", read.actions), CONFLICTS[0])
        calls = DeskPlan(shown, wish, read_manual(read.text), beliefs, read.actions).calls()
        if not calls:
            return choose_untried(read)
        return [min(calls, key=lambda call: (read.times(call), self._has_failed(read, call), calls.index(call)))]

    def _has_failed(self, read: MessageText, call: str) -> bool:
        """Whether the newest known outcome of a call in this state is no score at the end."""
        known = [one for one in read.known if one.action == call and not read.is_stale(one)]
        newest = max(known, key=lambda one: one.last, default=None)
        return newest is not None and newest.ended and not newest.score


def _first_object(text: str) -> str:
    """The JSON object with which a text begins."""
    try:
        _, end = json.JSONDecoder().raw_decode(text)
    except ValueError:
        return ""
    return text[:end]
