"""The controller that adds nothing.

* `Direct` - memory into the prompt, prompt to the policy, once
"""

from __future__ import annotations

import numpy as np

from drift_agents.controller.base import Decision, Render
from drift_agents.memory.base import Memory
from drift_agents.policy.base import Policy
from drift_agents.types import Episode, Removed


class Direct:
    """Retrieves once, renders one prompt, calls the policy once.

    Example:
        >>> from drift_agents.memory.base import NoMemory
        >>> from drift_agents.policy.random_policy import RandomPolicy
        >>> def render(recall=True, strategy=None):
        ...     return 'Admissible actions: ["0"]', ()
        >>> Direct().act("{}", NoMemory(), RandomPolicy(), render, np.random.default_rng(0)).reply.text
        '0'
    """

    name = "direct"

    def begin_episode(self, task: str) -> None:
        """Do nothing: there is no strategy."""

    def act(self, state: str, memory: Memory, policy: Policy, render: Render, rng: np.random.Generator) -> Decision:
        """Call the policy once."""
        prompt, retrieved = render()
        return Decision(prompt, policy.decide(prompt, rng), retrieved)

    def on_removed(self, removed: Removed) -> None:
        """Do nothing: no state depends on removed records."""

    def end_episode(self, result: Episode) -> None:
        """Nothing."""
