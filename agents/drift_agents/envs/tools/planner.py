"""The planner for the service desk: a function of the view and a generator for ties.

* `ToolsPlanner` - chooses a call from the state, the tools on offer, the policy page and the recollections

Its prior knowledge is what tools of a service desk commonly do, as a language model has it, and in which units an
amount may be. Which unit, which code and which default holds at this one it does not know.
"""

from __future__ import annotations

import numpy as np

from drift_agents.envs.tools.beliefs import DeskBeliefs
from drift_agents.envs.tools.manual import read_manual
from drift_agents.envs.tools.matching import read_desk_state
from drift_agents.envs.tools.plan import DeskPlan
from drift_agents.envs.tools.wish import read_wish
from drift_agents.errors import ArgumentError
from drift_agents.policy.base import Reply
from drift_agents.policy.generic_planner import GenericPlanner
from drift_agents.prompt.conflict import check_conflict
from drift_agents.prompt.view import PromptView
from drift_envs.checks import check_flag


class ToolsPlanner:
    """Looks up, writes, checks and ends; records of the prompt decide how tools are used.

    * Tools are found by names and descriptions that resemble what is common, so that a new name is no obstacle.
    * What can be done in several ways (the unit of an amount, a code, a default that is named or left out) is done as
      it is known to have worked; else as is natural.
    * A way that is not known to work is checked: the order is read again before the end, and a write that does not
      show is repeated.
    * A refused call is replaced by the next way; a denial by a rule of the policy is answered by declining, and an
      amount that needs a person by handing over, before anything was written where that is known.

    What was seen before memory was found wrong does not count as known. Requests of an unknown kind are left to
    `drift_agents.policy.generic_planner.GenericPlanner`.

    Args:
        conflict: how several outcomes of one (state, action) are weighed (`drift_agents.prompt.conflict`).
        checks: whether it reads again what was written in a way that is not known to work.

    Raises:
        ArgumentError: if an option is outside its range.

    Example:
        >>> at = '{"shop": 7, "request": "I am Ada Garcia, ada@example.org. Please cancel my latest order.", '
        >>> at += '"records": {}, "calls": [], "answer": {}}'
        >>> task = "lookup(email: text) - Find a customer by email address."
        >>> call = '{"tool": "lookup", "arguments": {"email": "ada@example.org"}}'
        >>> view = PromptView(task, at, ('{"tool": "close", "arguments": {}}', call))
        >>> ToolsPlanner().decide(view, np.random.default_rng(0)).text == call
        True
    """

    name = "tools"

    def __init__(self, *, conflict: str = "majority", checks: bool = True) -> None:
        self.conflict = check_conflict(conflict)
        self.checks = check_flag("checks", checks)
        self._generic = GenericPlanner(conflict=conflict)

    def decide(self, view: PromptView, rng: np.random.Generator) -> Reply:
        """Choose an action.

        Args:
            view: what the policy decides by.
            rng: where nothing sensible is admissible, and among other ways where nothing shows which call was refused.

        Raises:
            ArgumentError: if the prompt has no state of a service desk, or names no admissible call.
        """
        shown = read_desk_state(view.state)
        if shown is None:
            raise ArgumentError(f"the state should be one of a service desk. Received {view.state!r}")
        wish = read_wish(shown.request)
        if wish is None:
            return self._generic.decide(view, rng)
        plan = DeskPlan(
            shown, wish, read_manual(view.task), DeskBeliefs(view, self.conflict), view.actions, self.checks
        )
        calls = plan.calls()
        if not calls:
            return self._generic.decide(view, rng)
        return Reply(calls[int(rng.integers(len(calls))) if plan.is_blind else 0])
