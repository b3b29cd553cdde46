"""The planner for a car on a hill.

* `MountainCarPlanner` - fits a model of the dynamics to the records of the prompt and plans with it
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import or_

import numpy as np

from drift_agents.envs.mountain_car.evidence import Evidence, read_evidence
from drift_agents.envs.mountain_car.matching import read_state
from drift_agents.envs.mountain_car.model import fit_model, override_locally
from drift_agents.envs.mountain_car.plan import make_plan
from drift_agents.errors import ArgumentError
from drift_agents.policy.base import Reply
from drift_agents.prompt.conflict import check_conflict
from drift_agents.prompt.view import PromptView, Recollection
from drift_envs.checks import check_count

# The tolerance for ties of values.
_EVEN = 1e-9
# Where a wall hid the effect of an action, it is tried again only this far away.
_NEAR = 0.05


class MountainCarPlanner:
    """Fits a model of the car's dynamics to the records of the prompt and plans with it.

    A local model is fitted to the changes of velocity (`car.model`), value iteration makes a plan
    (`car.plan`), and the action with the highest value in the present state is taken. Actions without
    records are tried first: one step shows their effect. Ties are broken at random, so that without
    memory the car moves at random.

    The reply is a function of prompt and generator alone; models and plans are cached by value.

    Args:
        conflict: the rule for several responses to one action at one place: `majority`, `newest`,
            `frequency` (probabilities are frequencies) or `max` (the one with the highest value).
        neighbours: the number of nearest recollections used at each place; positive.

    Raises:
        ArgumentError: if an argument is outside its range.

    Example:
        >>> view = PromptView("Reach the flag.", '{"position": -0.5, "velocity": 0.0}', ("2",))
        >>> MountainCarPlanner().decide(view, np.random.default_rng(0)).text
        '2'
    """

    name = "mountain_car"

    def __init__(self, *, conflict: str = "majority", neighbours: int = 5) -> None:
        self.conflict, self.neighbours = check_conflict(conflict), check_count("neighbours", neighbours)
        self._last_input: tuple[tuple[Recollection, ...], tuple[str, ...]] = (), ()
        self._sorted: tuple[frozenset[Evidence], ...] = ()

    def decide(self, view: PromptView, rng: np.random.Generator) -> Reply:
        """Choose the action with the highest value.

        Raises:
            ArgumentError: if the view has no state of a mountain car, or no action.
        """
        if not view.actions:
            raise ArgumentError(f"the view names no admissible action. Received the task {view.task!r}")
        x, v = read_state(view.state)
        here = read_evidence(view.here, view.actions)
        evidence = tuple(map(or_, self._sort_elsewhere(view), here))
        model = fit_model(evidence, view.actions, self.conflict, self.neighbours)
        untried = [
            action
            for action, known in zip(view.actions, evidence, strict=True)
            if action not in model.actions and not any(abs(item.x - x) < _NEAR for item in known)
        ]
        if untried:
            return Reply(_choose(untried, rng))
        if not model.actions:
            return Reply(_choose(view.actions, rng))
        model = override_locally(model, here, view.actions, x, self.conflict, self.neighbours)
        plan = make_plan(model, optimistic=self.conflict == "max")
        values = [plan.action_value(action, x, v) for action in model.actions]
        best = max(values) - _EVEN
        return Reply(_choose([one for one, value in zip(model.actions, values, strict=True) if value >= best], rng))

    def _sort_elsewhere(self, view: PromptView) -> tuple[frozenset[Evidence], ...]:
        """Evidence from other states, cached, since it is often the same as in the prompt before."""
        given = view.elsewhere, view.actions
        if given != self._last_input:
            self._last_input, self._sorted = given, read_evidence(*given)
        return self._sorted


def _choose(actions: Sequence[str], rng: np.random.Generator) -> str:
    return actions[0] if len(actions) == 1 else actions[int(rng.integers(len(actions)))]
