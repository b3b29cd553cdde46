"""The planner for a car on a hill.

* `CarPlanner` - reads the rendered prompt, fits a model to its recollections and plans with it
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import or_

import numpy as np

from drift_agents.checks import check_integer
from drift_agents.errors import ArgumentError
from drift_agents.matching.grid import read_state
from drift_agents.policy.base import Reply
from drift_agents.policy.car.evidence import Evidence, read_evidence
from drift_agents.policy.car.model import fit_model, insist_on
from drift_agents.policy.car.plan import make_plan
from drift_agents.prompt.conflict import check_conflict
from drift_agents.prompt.view import PromptView, Recollection, parse_prompt

# Values that lie closer are ties.
_EVEN = 1e-9
# Where a wall hid what an action does, trying it again helps only this far away.
_NEAR = 0.05


class CarPlanner:
    """Fits a model of the car's dynamics to the records of the prompt and plans with it.

    What the recollections say of the changes of velocity becomes a local model (`car_model`), value
    iteration makes it a plan (`car_plan`), and the action that is worth most in the present state
    is taken. An action of which nothing is remembered is tried first: one step shows what it does.
    Where no action promises anything, any is taken; so without memory the car moves at random.

    The answer is a function of prompt and generator alone; models and plans are cached by value.

    Args:
        conflict: which of several answers to one action in one place is believed: `majority`,
            `newest`, `frequency` (each as likely as it is often told) or `max` (the one that serves
            best).
        neighbours: how many of the nearest recollections are asked at each place; positive.

    Raises:
        ArgumentError: if an argument breaks its rule.

    Example:
        >>> from drift_agents.prompt.view import PromptView
        >>> view = PromptView("Reach the flag.", '{"position": -0.5, "velocity": 0.0}', ("2",))
        >>> CarPlanner().decide(view.render(), np.random.default_rng(0)).text
        '2'
    """

    name = "car"

    def __init__(self, *, conflict: str = "majority", neighbours: int = 5) -> None:
        self.conflict, self.neighbours = check_conflict(conflict), check_integer("neighbours", neighbours)
        self._told: tuple[tuple[Recollection, ...], tuple[str, ...]] = (), ()
        self._sorted: tuple[frozenset[Evidence], ...] = ()

    def decide(self, prompt: str, rng: np.random.Generator) -> Reply:
        """Choose the action that is worth most.

        Raises:
            ArgumentError: if the text is not a rendered prompt of a car's world.
        """
        view = parse_prompt(prompt)
        if not view.actions:
            raise ArgumentError(f"the prompt names no admissible action: {prompt[:80]!r}")
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
            return Reply(_any(untried, rng))
        if not model.actions:
            return Reply(_any(view.actions, rng))
        model = insist_on(model, here, view.actions, x, self.conflict, self.neighbours)
        plan = make_plan(model, hopeful=self.conflict == "max")
        worths = [plan.worth(action, x, v) for action in model.actions]
        best = max(worths) - _EVEN
        return Reply(_any([action for action, worth in zip(model.actions, worths, strict=True) if worth >= best], rng))

    def _sort_elsewhere(self, view: PromptView) -> tuple[frozenset[Evidence], ...]:
        """Evidence from other states, which often is the same as in the prompt before."""
        told = view.elsewhere, view.actions
        if told != self._told:
            self._told, self._sorted = told, read_evidence(*told)
        return self._sorted


def _any(actions: Sequence[str], rng: np.random.Generator) -> str:
    return actions[0] if len(actions) == 1 else actions[int(rng.integers(len(actions)))]
