"""A baseline for the mountain car with built-in knowledge: accelerate along the velocity.

* `EnergyPumping` - uses no memory; the meaning of the actions is built in, so it does not learn
"""

from __future__ import annotations

import numpy as np

from drift_agents.envs.mountain_car.matching import read_state
from drift_agents.errors import ArgumentError
from drift_agents.policy.base import Reply
from drift_agents.prompt.view import PromptView


class EnergyPumping:
    """Accelerates in the direction of the velocity, so that each swing is higher than the one before.

    The last admissible action is assumed to accelerate to the right, the first one to the left,
    independent of memory. It measures the score of built-in knowledge alone, which fails once the
    controls are reversed.

    Example:
        >>> view = PromptView("Reach the flag.", '{"position": -0.5, "velocity": -0.01}', ("0", "1", "2"))
        >>> EnergyPumping().decide(view, np.random.default_rng(0)).text
        '0'
    """

    name = "energy_pumping"

    def decide(self, view: PromptView, rng: np.random.Generator) -> Reply:
        """The first action while the car rolls to the left, the last one otherwise.

        Raises:
            ArgumentError: if the view has no state of a mountain car, or no action.
        """
        if not view.actions:
            raise ArgumentError(f"the view names no admissible action. Received the task {view.task!r}")
        _, velocity = read_state(view.state)
        return Reply(view.actions[0] if velocity < 0 else view.actions[-1])
