"""The planner: looks at the prompt and hands it to the planner of that world.

* `WorldPlanner` - the protocol of a planner for one kind of world
* `PLANNERS` - all of them; other packages add theirs through the entry-point group `drift_envs.planners`
* `Planner` - the offline policy of all experiments
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from drift_agents.conflict import check_conflict
from drift_agents.errors import ArgumentError
from drift_agents.policy.base import Reply
from drift_agents.prompt import PromptView, parse_prompt
from drift_agents.registry import Registry


class WorldPlanner(Protocol):
    """A planner for one kind of world; made with `conflict` and options of its own."""

    def reads(self, view: PromptView) -> bool:
        """Whether the prompt is about a world of that kind."""
        ...

    def choose(self, view: PromptView, rng: np.random.Generator) -> str:
        """The action; a function of the prompt and the generator alone."""
        ...


PLANNERS: Registry[WorldPlanner] = Registry(
    "planner",
    "drift_envs.planners",
    {
        "lake": "drift_agents.policy.lake:LakePlanner",
    },
)


class Planner:
    """Reads the rendered prompt, sees which world it is about, and plans there.

    The same object plays every world of an experiment. What the planners have in common is given
    once; what one of them takes beside is given under its name.

    Args:
        conflict: how several outcomes of one (state, action) are weighed (`drift_agents.conflict`).
        options: planner -> its own options, as in `{"lake": {"risk": 0.5}}`.

    Raises:
        UnknownNameError: if `options` names a planner that does not exist.
        ArgumentError: if an option is unknown or out of its range.

    Example:
        >>> Planner(conflict="newest", options={"lake": {"risk": 0.5}}).name
        'planner'
        >>> Planner(options={"lake": {"risk": 2}})
        Traceback (most recent call last):
        drift_agents.errors.ArgumentError: `risk` should be a number in (0, 1]. Received 2
    """

    name = "planner"

    def __init__(self, *, conflict: str = "majority", options: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        self.conflict = check_conflict(conflict)
        given = {} if options is None else options
        if not isinstance(given, Mapping) or not all(isinstance(own, Mapping) for own in given.values()):
            raise ArgumentError(f"`options` should map planners to their options. Received {options!r}")
        for name, own in given.items():
            PLANNERS.load(name)
            if "conflict" in own:
                raise ArgumentError(f"`conflict` is given once for all planners. Received it in `options.{name}`")
        self._planners = [
            PLANNERS.make(name, conflict=self.conflict, **given.get(name, {})) for name in PLANNERS.names()
        ]

    def decide(self, prompt: str, rng: np.random.Generator) -> Reply:
        """Answer a prompt.

        Args:
            prompt: the rendered text.
            rng: for ties and exploration.

        Raises:
            ArgumentError: if no planner knows the world, or the prompt lacks what it needs.
        """
        view = parse_prompt(prompt)
        for planner in self._planners:
            if planner.reads(view):
                return Reply(planner.choose(view, rng))
        known = ", ".join(PLANNERS.names())
        raise ArgumentError(f"no planner knows this world (known: {known}). Received the state {view.state!r}")
