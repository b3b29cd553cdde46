"""The planner: looks at the prompt and hands it to the planner of that world.

* `Planner` - the offline policy of all experiments
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from drift_agents.errors import ArgumentError
from drift_agents.policy.base import Policy, Reply
from drift_agents.prompt.conflict import check_conflict
from drift_agents.prompt.lessons import parse_lessons
from drift_agents.prompt.view import parse_prompt
from drift_agents.registry import PLANNERS

STATE_MARKERS = {"lake": '"cur_pos": ', "car": '"velocity": ', "shop": '"url": '}
"""What the present state says in the worlds of each planner."""


class Planner:
    """Parses the rendered prompt and hands it to the planner of its environment.

    The same object plays every world of an experiment. What the planners have in common is given
    once; what one of them takes beside is given under its name.

    Of the lessons it reads the ways that they tell, in the one form of `drift_agents.prompt.lessons`; each step
    of a way counts as experience of other states, half as much as a lived response.

    Args:
        conflict: how several outcomes of one (state, action) are weighed (`drift_agents.prompt.conflict`).
        lake: further options of `drift_agents.policy.lake.planner.LakePlanner`, as in `{"risk": 0.5}`.
        car: further options of `drift_agents.policy.car.planner.CarPlanner`.
        shop: further options of `drift_agents.policy.shop.planner.ShopPlanner`.

    Raises:
        ArgumentError: if an option is unknown or out of its range.

    Example:
        >>> Planner(conflict="newest", lake={"risk": 0.5}).name
        'planner'
        >>> Planner(lake={"risk": 2})
        Traceback (most recent call last):
        drift_agents.errors.ArgumentError: `risk` should be in the interval (0, 1]. Received 2
    """

    name = "planner"

    def __init__(
        self,
        *,
        conflict: str = "majority",
        lake: Mapping[str, Any] | None = None,
        car: Mapping[str, Any] | None = None,
        shop: Mapping[str, Any] | None = None,
    ) -> None:
        self.conflict = check_conflict(conflict)
        self._planners: dict[str, Policy] = {}
        for world, options in (("lake", lake), ("car", car), ("shop", shop)):
            if options is not None and not isinstance(options, Mapping):
                raise ArgumentError(f"`{world}` should map option names to values. Received {options!r}")
            own = dict(options or {})
            if "conflict" in own:
                raise ArgumentError(f"`conflict` is given once for all worlds. Received `{world}`: {own!r}")
            self._planners[world] = PLANNERS.make(world, conflict=self.conflict, **own)

    def decide(self, prompt: str, rng: np.random.Generator) -> Reply:
        """Answer a prompt.

        Args:
            prompt: the rendered text.
            rng: for ties and exploration.

        Raises:
            ArgumentError: if no planner knows the world, or the prompt lacks what it needs.
        """
        view = parse_prompt(prompt)
        state = view.state
        if view.lessons and (advice := parse_lessons(view.lessons)):
            prompt = replace(view, elsewhere=view.elsewhere + advice).render()
        for world, planner in self._planners.items():
            if STATE_MARKERS[world] in state:
                return planner.decide(prompt, rng)
        signs = ", ".join(f"{world}: {sign.strip(': ')}" for world, sign in STATE_MARKERS.items())
        raise ArgumentError(f"no planner knows a world with the state {state!r}. Known by what a state names: {signs}")
