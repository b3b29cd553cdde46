"""The planner of environments of which nothing is known beforehand.

* `GenericPlanner` - repeats what pays, else tries what is untried
"""

from __future__ import annotations

import numpy as np

from drift_agents.errors import ArgumentError
from drift_agents.policy.base import Reply
from drift_agents.prompt.conflict import check_conflict, settle
from drift_agents.prompt.value_estimate import PathEstimate, as_records
from drift_agents.prompt.view import PromptView, Recollection

STEP_COST = 1e-6
"""What a step costs, so that of equal scores the nearest one is taken."""


class GenericPlanner:
    """Repeats what pays, else tries what is untried.

    * Of the actions with records in this state, the one after which the highest score is reachable: as the prompt
      shows it, or computed from the prompt's records; of equal scores the nearest one.
    * If none leads to a score above zero, an action with the fewest responses, so that untried ones come first.

    Args:
        conflict: how several outcomes of one (state, action) are weighed (`drift_agents.prompt.conflict`).

    Raises:
        ArgumentError: if `conflict` is no rule.

    Example:
        >>> from drift_agents.types import Outcome
        >>> view = PromptView("", "[0]", ("a", "b"), (Recollection("[0]", "b", Outcome("[1]", 1.0, True), 1.0, 0),))
        >>> GenericPlanner().decide(view, np.random.default_rng(0)).text
        'b'
    """

    name = "generic"

    def __init__(self, *, conflict: str = "majority") -> None:
        self.conflict = check_conflict(conflict)

    def decide(self, view: PromptView, rng: np.random.Generator) -> Reply:
        """Choose an action.

        Args:
            view: what the policy decides by.
            rng: for ties and exploration.

        Raises:
            ArgumentError: if the prompt names no admissible action.
        """
        if not view.actions:
            raise ArgumentError(f"the view names no admissible action. Received the task {view.task!r}")
        known = {action: [item for item in view.here if item.action == action] for action in view.actions}
        values = self._values(view, {action: items for action, items in known.items() if items})
        if max(values.values(), default=0.0) <= 0:
            values = {action: -sum(item.n for item in items) for action, items in known.items()}
        choices = [action for action, value in values.items() if value == max(values.values())]
        return Reply(choices[int(rng.integers(len(choices)))])

    def _values(self, view: PromptView, known: dict[str, list[Recollection]]) -> dict[str, float]:
        """The highest score reachable by each action, by the rule for several outcomes."""
        paths, values = PathEstimate(self.conflict), {}
        paths.update(as_records((*view.here, *view.elsewhere)))
        for action, items in known.items():
            sightings = [(self._value(item, *paths.find(item.outcome)), item.support, item.last) for item in items]
            shares = settle(sightings, self.conflict)
            values[action] = max(v for v, _ in shares) if self.conflict == "max" else sum(v * p for v, p in shares)
        return values

    @staticmethod
    def _value(item: Recollection, score: float, steps: int | None) -> float:
        return (score if item.value_estimate is None else item.value_estimate) - STEP_COST * (steps or 0)
