"""The offline policy of all experiments.

* `Planner` - parses the rendered prompt and hands it to the planner of its environment
* `STATE_MARKERS` - how the environment is recognised
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

STATE_MARKERS = {
    "lake": '"cur_pos": ',
    "car": '"velocity": ',
    "shop": '"url": ',
    "house": '"holds": ',
    "room": '"facing": ',
    "web": '"elements": ',
    "control": ', "score": ',
}
"""A substring of the present state, by the environments' planners."""


class Planner:
    """Parses the rendered prompt and hands it to the planner of its environment.

    One object plays all environments of an experiment. Options common to the planners are given once;
    options of one planner are given under its name.

    It parses the trajectories in lessons, in the one form of `drift_agents.prompt.lessons`; each of their
    steps is added to the records of other states with weight `LESSON_WEIGHT`.

    Args:
        conflict: how several outcomes of one (state, action) are weighed (`drift_agents.prompt.conflict`).
        lake: further options of `drift_agents.envs.frozen_lake.planner.LakePlanner`, as in `{"risk": 0.5}`.
        car: further options of `drift_agents.envs.mountain_car.planner.CarPlanner`.
        shop: further options of `drift_agents.envs.webshop.planner.ShopPlanner`.
        house: further options of `drift_agents.envs.house.planner.HousePlanner`.
        room: further options of `drift_agents.envs.minigrid.planner.RoomPlanner`.
        web: further options of `drift_agents.envs.miniwob.planner.WebPlanner`.
        control: further options of `drift_agents.policy.control.planner.ControlPlanner`.

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
        house: Mapping[str, Any] | None = None,
        room: Mapping[str, Any] | None = None,
        web: Mapping[str, Any] | None = None,
        control: Mapping[str, Any] | None = None,
    ) -> None:
        self.conflict = check_conflict(conflict)
        self._planners: dict[str, Policy] = {}
        given = {"lake": lake, "car": car, "shop": shop, "house": house, "room": room, "web": web, "control": control}
        for world, options in given.items():
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
            ArgumentError: if there is no planner for the environment, or the prompt lacks what it needs.
        """
        view = parse_prompt(prompt)
        state = view.state
        if view.lessons and (steps := parse_lessons(view.lessons)):
            prompt = replace(view, elsewhere=view.elsewhere + steps).render()
        for world, planner in self._planners.items():
            if STATE_MARKERS[world] in state:
                return planner.decide(prompt, rng)
        keys = ", ".join(f"{world}: {marker.strip(': ')}" for world, marker in STATE_MARKERS.items())
        raise ArgumentError(f"no planner is for an environment with the state {state!r}. Known by a key: {keys}")
