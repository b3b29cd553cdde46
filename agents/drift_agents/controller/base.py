"""The interface of controllers, which make one decision; and `Direct`: memory into the prompt, prompt to the policy."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from drift_agents.envs.matching import Matching
from drift_agents.memory.base import Memory
from drift_agents.policy.base import Policy, Reply, decide
from drift_agents.prompt.view import PromptView
from drift_agents.registry.parts import check_protocol, check_result, refuse_result
from drift_agents.registry.tables import CONTROLLERS
from drift_agents.types import AgentClock, Episode, RecordId, Removed, Thought
from drift_envs.checks import check_flag


class Render(Protocol):
    """Makes the view of the present step: task, present state, admissible actions and clock are its own."""

    @property
    def now(self) -> AgentClock:
        """The agent's clock."""
        ...

    @property
    def matching(self) -> Matching:
        """When two states count as the same."""
        ...

    def __call__(
        self, recall: bool = True, strategy: str | None = None, own_steps: bool = False
    ) -> tuple[PromptView, tuple[RecordId, ...]]:
        """Make the view.

        Args:
            recall: whether memory is queried; a view without it shows the present step, those of this
                episode, and verified summaries (`drift_agents.memory.views`).
            strategy: a text that is shown among the lessons, if there is one.
            own_steps: whether the steps of this episode that memory does not hold are shown with what it recalls.

        Returns:
            The view, and the ids of what stands in it.
        """
        ...


class Decision(NamedTuple):
    """A decision and the views and answers behind it.

    Args:
        view: what the action rests on.
        reply: the policy's answer to it; its usage includes all model calls of the step.
        retrieved: the ids of what stood in the view.
        strategy: the strategy in force, if there is one.
        thought: how it was made, if it was made at this step.
        aside: all other prompts and answers of the decision, as texts.
    """

    view: PromptView
    reply: Reply
    retrieved: tuple[RecordId, ...]
    strategy: str | None = None
    thought: Thought | None = None
    aside: tuple[str, ...] = ()


@runtime_checkable
class Controller(Protocol):
    """Makes one decision with any number of memory queries and policy calls."""

    name: str

    def begin_episode(self, task: str) -> None:
        """A new episode begins; nothing of the last one's strategy stays."""

    def act(self, state: str, memory: Memory, policy: Policy, render: Render, rng: np.random.Generator) -> Decision:
        """Decide."""
        ...

    def on_removed(self, removed: Removed) -> None:
        """A verifier took this out of memory."""

    def end_episode(self, result: Episode) -> None:
        """The episode is over."""


def make_controller(name: str, **options: Any) -> Controller:
    """Make a controller by name.

    Args:
        name: one of `registry.CONTROLLERS.names()`.

    Raises:
        UnknownNameError: if there is no controller of that name.
        ArgumentError: if it does not take one of the options, or refuses its value.

    Example:
        >>> make_controller("direct").name
        'direct'
    """
    made: Controller = CONTROLLERS.make(name, **options)
    check_protocol("controller", name, made, Controller)
    return made


def check_decision(controller: Controller, decision: Any) -> None:
    """Check what `act` of a controller returned.

    Raises:
        PartError: if it is no decision, or has no view or reply.
    """
    check_result("controller", controller, "act", decision, Decision)
    if not isinstance(decision.view, PromptView) or not isinstance(decision.reply, Reply):
        raise refuse_result("controller", controller, "act", "a Decision with a PromptView and a Reply", decision)


class Direct:
    """Retrieves once, makes one view, calls the policy once.

    Args:
        own_steps: whether the view shows the steps of the present episode where memory does not hold them: a frozen
            memory, or none. The prompts of AdaMEM's baselines do (appendix B.1).

    Raises:
        ArgumentError: if `own_steps` is neither true nor false.

    Example:
        >>> from drift_agents.memory.base import NoMemory
        >>> from drift_agents.policy.base import RandomPolicy
        >>> def render(recall=True, strategy=None, own_steps=False):
        ...     return PromptView("Any task.", "{}", ("0",)), ()
        >>> Direct().act("{}", NoMemory(), RandomPolicy(), render, np.random.default_rng(0)).reply.text
        '0'
    """

    name = "direct"

    def __init__(self, *, own_steps: bool = False) -> None:
        self.own_steps = check_flag("own_steps", own_steps)

    def begin_episode(self, task: str) -> None:
        """Do nothing: there is no strategy."""

    def act(self, state: str, memory: Memory, policy: Policy, render: Render, rng: np.random.Generator) -> Decision:
        """Call the policy once."""
        view, retrieved = render(own_steps=True) if self.own_steps else render()
        return Decision(view, decide(policy, view, rng), retrieved)

    def on_removed(self, removed: Removed) -> None:
        """Do nothing: no state depends on removed records."""

    def end_episode(self, result: Episode) -> None:
        """Nothing."""
