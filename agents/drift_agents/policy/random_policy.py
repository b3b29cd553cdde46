"""The random policy.

* `RandomPolicy` - one admissible action at random: the lower baseline of all tables
"""

from __future__ import annotations

import numpy as np

from drift_agents.errors import ArgumentError
from drift_agents.policy.base import Reply
from drift_agents.prompt.view import PromptView


class RandomPolicy:
    """One admissible action at random.

    Example:
        >>> RandomPolicy().decide(PromptView("Any task.", "{}", ("0",)), np.random.default_rng(0)).text
        '0'
    """

    name = "random"

    def decide(self, view: PromptView, rng: np.random.Generator) -> Reply:
        """Draw one of the admissible actions.

        Raises:
            ArgumentError: if there is none.
        """
        if not view.actions:
            raise ArgumentError(f"the view names no admissible action. Received the task {view.task!r}")
        return Reply(view.actions[int(rng.integers(len(view.actions)))])
