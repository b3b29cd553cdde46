"""The offline policy of all experiments.

* `Planner` - hands the view to the planner of its environment
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from drift_agents.environment import AgentEnvironment, environments, named_environment
from drift_agents.errors import ArgumentError
from drift_agents.policy.base import Policy, Reply
from drift_agents.prompt.conflict import check_conflict
from drift_agents.prompt.lessons import has_trajectory, parse_lessons
from drift_agents.prompt.view import PromptView
from drift_agents.registry import ENVIRONMENTS


class Planner:
    """Hands the view to the planner of its environment.

    One object plays all environments of an experiment. It makes an environment's planner when it first meets it; one
    of which nothing is known is played by `drift_agents.policy.generic_planner.GenericPlanner`.

    It reads the trajectories in lessons, in the one form of `drift_agents.prompt.lessons`; each of their
    steps is added to the records of other states with weight `LESSON_WEIGHT`.

    Args:
        conflict: how several outcomes of one (state, action) are weighed (`drift_agents.prompt.conflict`); given
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
            view: what the policy decides by.
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
