"""The offline policy of all experiments, and the planner of environments of which nothing is known beforehand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from drift_agents.envs.base import AgentEnvironment, environments, named_environment
from drift_agents.errors import ArgumentError
from drift_agents.policy.base import Policy, Reply, check_actions, pick
from drift_agents.prompt.lessons import has_trajectory, parse_lessons
from drift_agents.prompt.value_estimate import PathEstimate, as_records
from drift_agents.prompt.view import PromptView, Recollection, check_conflict, settle
from drift_agents.registry.tables import ENVIRONMENTS

STEP_COST = 1e-6
"""What a step costs, so that of equal scores the nearest one is taken."""


class GenericPlanner:
    """Repeats what pays, else tries what is untried.

    * Of the actions with records in this state, the one after which the highest score is reachable: as the prompt
      shows it, or computed from the prompt's records; of equal scores the nearest one.
    * If none leads to a score above zero, an action with the fewest responses, so that untried ones come first.

    Args:
        conflict: how several outcomes of one (state, action) are weighed (`drift_agents.prompt.view`).

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
            rng: for ties and exploration.

        Raises:
            ArgumentError: if the prompt names no admissible action.
        """
        check_actions(view)
        known = {action: [item for item in view.here if item.action == action] for action in view.actions}
        values = self._values(view, {action: items for action, items in known.items() if items})
        if max(values.values(), default=0.0) <= 0:
            values = {action: -sum(item.n for item in items) for action, items in known.items()}
        choices = [action for action, value in values.items() if value == max(values.values())]
        return Reply(pick(choices, rng))

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


class Planner:
    """Hands the view to the planner of its environment.

    One object plays all environments of an experiment. It makes an environment's planner when it first meets it; one
    of which nothing is known is played by `GenericPlanner`.

    It reads the trajectories in lessons, in the one form of `drift_agents.prompt.lessons`; each of their
    steps is added to the records of other states with weight `LESSON_WEIGHT`.

    Args:
        conflict: how several outcomes of one (state, action) are weighed (`drift_agents.prompt.view`); given
            once for all environments.
        options: options of single planners by the name of the environment, as in `frozen_lake={"risk": 0.5}`.

    Raises:
        ArgumentError: if an option is unknown or out of its range.

    Example:
        >>> Planner(conflict="newest", frozen_lake={"risk": 0.5}).name
        'planner'
        >>> Planner(frozen_lake={"risk": 2})
        Traceback (most recent call last):
        drift_envs.errors.ArgumentError: `risk` should be in the interval (0, 1]. Received 2
    """

    name = "planner"

    def __init__(self, *, conflict: str = "majority", **options: Mapping[str, Any] | None) -> None:
        self.conflict = check_conflict(conflict)
        self.has_unread_notes = False
        """Whether a prompt had a lesson that it cannot read."""
        self._planners: dict[str, Policy] = {}
        named = {one.name: one for one in environments()}
        for name, given in options.items():
            if name not in named:
                raise ArgumentError(
                    f"the planner has options for the environments {', '.join(named)}. Received {name!r}: {given!r}"
                )
            if given is not None and not isinstance(given, Mapping):
                raise ArgumentError(f"`{name}` should map option names to values. Received {given!r}")
            own = dict(given or {})
            if "conflict" in own:
                raise ArgumentError(f"`conflict` is given once for all environments. Received `{name}`: {own!r}")
            self._planners[name] = self._make(named[name], own)

    @staticmethod
    def option_names() -> tuple[str, ...]:
        """The names of all options."""
        return ("conflict", *ENVIRONMENTS.names())

    def _make(self, environment: AgentEnvironment, options: Mapping[str, Any]) -> Policy:
        made: Policy = environment.make("planner", conflict=self.conflict, **options)
        return made

    def decide(self, view: PromptView, rng: np.random.Generator) -> Reply:
        """Choose an action.

        Args:
            rng: for ties and exploration.

        Raises:
            ArgumentError: if the view lacks what the planner needs.
        """
        if view.environment not in self._planners:
            self._planners[view.environment] = self._make(named_environment(view.environment), {})
        self.has_unread_notes = self.has_unread_notes or not all(map(has_trajectory, view.lessons))
        if view.lessons and (steps := parse_lessons(view.lessons)):
            view = replace(view, elsewhere=view.elsewhere + steps)
        return self._planners[view.environment].decide(view, rng)
