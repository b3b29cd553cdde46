"""The mountain cars in words.

* `MountainCarFacts` - position and velocity
"""

from __future__ import annotations

import json

from drift_agents.policy.facts import PlainFacts, without_meanings


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

    def goal(self, task: str) -> str:
        """The task without what the actions do, which the template shows elsewhere."""
        return without_meanings(task)
