"""The random policy.

* `RandomPolicy` - one admissible action at random: the lower baseline of all tables
"""

from __future__ import annotations

import json
import re

import numpy as np

from drift_agents.errors import ArgumentError
from drift_agents.policy.base import Reply

_ACTIONS = re.compile(r"^Admissible actions: (.*)$", re.MULTILINE)


class RandomPolicy:
    r"""One admissible action at random.

    Example:
        >>> prompt = 'Any task.\n\nCurrent state: {}\nAdmissible actions: ["0"]\n'
        >>> RandomPolicy().decide(prompt, np.random.default_rng(0)).text
        '0'
    """

    name = "random"

    def decide(self, prompt: str, rng: np.random.Generator) -> Reply:
        """Draw one of the prompt's admissible actions.

        Raises:
            ArgumentError: if the prompt has none.
        """
        match = _ACTIONS.search(prompt)
        actions = json.loads(match[1]) if match else []
        if not actions:
            raise ArgumentError(f"the prompt names no admissible action: {prompt[:80]!r}")
        return Reply(actions[int(rng.integers(len(actions)))])
