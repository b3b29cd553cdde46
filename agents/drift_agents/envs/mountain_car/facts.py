"""The mountain cars in words.

* `MountainCarFacts` - position and velocity
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from drift_agents.policy.facts import PlainFacts, without_meanings
from drift_agents.prompt.view import PromptView, Recollection


class MountainCarFacts(PlainFacts):
    """Position and velocity.

    Example:
        >>> MountainCarFacts().describe_state('{"position": -0.5, "velocity": 0.010}')
        'position -0.5, velocity 0.010'
    """

    def describe_state(self, state: str) -> str:
        """Position and velocity, with the digits of the state."""
        data = json.loads(state, parse_float=str)
        return f"position {data['position']}, velocity {data['velocity']}"

    def brief_fields(self, view: PromptView) -> Mapping[str, str]:
        """`position` and `velocity`, rounded."""
        data = json.loads(view.state)
        return {"position": f"{data['position']:.2f}", "velocity": f"{data['velocity']:.4f}"}

    def brief_outcome(self, item: Recollection) -> str:
        """The change of the velocity."""
        before, after = (json.loads(state)["velocity"] for state in (item.state, item.outcome.state))
        return f"velocity {after - before:+.4f}"

    def brief_end(self, item: Recollection) -> str:
        """The position where it ended."""
        return f"position {json.loads(item.outcome.state)['position']:.2f}"

    def goal(self, task: str) -> str:
        """The task without what the actions do, which the template shows elsewhere."""
        return without_meanings(task)
