"""The labelled baseline for a car on a hill: push along the velocity.

* `EnergyPumping` - needs no memory and knows what the actions do, so it is no agent that learns
"""

from __future__ import annotations

import numpy as np

from drift_agents.errors import ArgumentError
from drift_agents.matching.grid import read_state
from drift_agents.policy.base import Reply
from drift_agents.prompt.view import parse_prompt


class EnergyPumping:
    """Accelerates in the direction of the velocity, so that each swing is higher than the one before.

    A rule made for this world by people who know it: the last admissible action is taken for the
    push to the right, the first one for the push to the left, whatever memory says. It shows what
    knowledge of the task alone is worth, and that it is worth nothing once the controls are reversed.

    Example:
        >>> from drift_agents.prompt.view import PromptView
        >>> view = PromptView("Reach the flag.", '{"position": -0.5, "velocity": -0.01}', ("0", "1", "2"))
        >>> EnergyPumping().decide(view.render(), np.random.default_rng(0)).text
        '0'
    """

    name = "energy_pumping"

    def decide(self, prompt: str, rng: np.random.Generator) -> Reply:
        """The first action while the car rolls to the left, the last one otherwise.

        Raises:
            ArgumentError: if the text is not a rendered prompt of a car's world.
        """
        view = parse_prompt(prompt)
        if not view.actions:
            raise ArgumentError(f"the prompt names no admissible action: {prompt[:80]!r}")
        _, velocity = read_state(view.state)
        return Reply(view.actions[0] if velocity < 0 else view.actions[-1])
