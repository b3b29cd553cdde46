"""The interface of policies: a view in, text out; and the random policy, the lower baseline of all tables."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np

from drift_agents.errors import ArgumentError
from drift_agents.llm.base import Completion, Message, Model
from drift_agents.prompt.builder import MOVES
from drift_agents.prompt.view import PromptView, check_conflict
from drift_agents.registry.parts import check_protocol, check_result, refuse_result
from drift_agents.registry.tables import POLICIES
from drift_agents.types import NO_USAGE, Usage, UsageFields


@dataclass(frozen=True, init=False)
class Reply(UsageFields):
    """An answer with what it cost.

    Args:
        text: the answer; the agent reads the action out of it.
        usage: what the answer cost.
        counts: fields of `usage` by name, added to it.

    Example:
        >>> Reply("2", model_calls=1, tokens_in=200).usage == Usage(1, 200)
        True
    """

    text: str
    usage: Usage

    def __init__(self, text: str, usage: Usage = NO_USAGE, **counts: Any) -> None:
        object.__setattr__(self, "text", text)
        object.__setattr__(self, "usage", usage + Usage(**counts) if counts else usage)


@runtime_checkable
class Policy(Protocol):
    """A view in, text out.

    A policy gets a frozen view and a generator for ties, and nothing else. It may cache what it computes from views;
    its reply is a function of view and generator alone.
    """

    name: str

    def decide(self, view: PromptView, rng: np.random.Generator) -> Reply:
        """Choose an action: its text is one of `view.actions`."""
        ...


def check_policy(policy: Policy, name: str = "") -> Policy:
    """Return a policy.

    Args:
        name: for messages; the name of its class if not given.

    Raises:
        ArgumentError: if its `decide` expects the text of a prompt, as before policies got views.
        PartError: if it has not what a policy has.
    """
    check_protocol("policy", name or type(policy).__name__, policy, Policy)
    signature = inspect.signature(policy.decide)
    first = next(iter(signature.parameters.values()), None)
    if first is not None and (first.name == "prompt" or first.annotation in (str, "str")):
        raise ArgumentError(
            f"the policy {policy.name!r}: `decide` should take a `drift_agents.PromptView`, as in "
            f"`decide(self, view, rng)`; `view.render()` is the text. Received decide{signature}"
        )
    return policy


def decide(policy: Policy, view: PromptView, rng: np.random.Generator) -> Reply:
    """What a policy decides.

    Raises:
        PartError: if it is no `Reply` with a text.
    """
    reply: Reply = check_result("policy", policy, "decide", policy.decide(view, rng), Reply)
    if not isinstance(reply.text, str) or not isinstance(reply.usage, Usage):
        rule = "a Reply with a text, one of `view.actions`, and a Usage"
        raise refuse_result("policy", policy, "decide", rule, reply)
    return reply


def check_actions(view: PromptView) -> None:
    """Check that a view names an action.

    Raises:
        ArgumentError: if it names none.
    """
    if not view.actions:
        raise ArgumentError(f"the view names no admissible action. Received the task {view.task!r}")


def pick(among: Sequence[str], rng: np.random.Generator) -> str:
    """One of several texts at random; of a single one nothing is drawn."""
    return among[int(rng.integers(len(among)))]


Shown = TypeVar("Shown")


class ParsedPlanner(ABC, Generic[Shown]):
    """The base of planners for states that can be parsed.

    Args:
        conflict: how several outcomes of one (state, action) are weighed (`drift_agents.prompt.view`).

    Raises:
        ArgumentError: if an option is outside its range.

    Example:
        >>> class Pond(ParsedPlanner[int]):
        ...     name, shows = "pond", "the number of a lily pad"
        ...     parse = staticmethod(lambda state: int(state) if state.isdecimal() else None)
        ...
        ...     def _choose(self, shown, view, rng):
        ...         return str(shown + 1)
        >>> Pond().decide(PromptView("Jump.", "3", ("2", "4")), np.random.default_rng(0)).text
        '4'
    """

    name: str
    shows: ClassVar[str]
    """What a state should be, for errors."""
    parse: Callable[[str], Shown | None]
    """Parses a state; `None` if the text is no state of this environment."""

    def __init__(self, *, conflict: str = "majority") -> None:
        self.conflict = check_conflict(conflict)

    def decide(self, view: PromptView, rng: np.random.Generator) -> Reply:
        """Choose an action.

        Args:
            view: what the policy decides by.
            rng: for ties and exploration.

        Raises:
            ArgumentError: if the prompt has no state of this environment, or names no admissible action.
        """
        shown = self.parse(view.state)
        if shown is None:
            raise ArgumentError(f"the state should be {self.shows}. Received {view.state[:200]!r}")
        return Reply(self._choose(shown, view, rng))

    @abstractmethod
    def _choose(self, shown: Shown, view: PromptView, rng: np.random.Generator) -> str:
        """The action in a parsed state."""


def history_length(policy: Policy) -> int:
    """How many of the newest steps of the present episode the prompts of a policy show; 0 for none.

    A policy says so by an attribute `needs_history`: their number, or true for `drift_agents.prompt.builder.MOVES`. A
    prompt that shows any also has the steps to go beside every score. The offline planners compute both from the
    records of the prompt, so their prompts have neither.
    """
    needed = getattr(policy, "needs_history", 0)
    return MOVES if needed is True else int(needed)


class SideQuestion(NamedTuple):
    """A question in addition to the one for the action, to be answered with true or false.

    Args:
        field: the name of its field in the reply.
        text: the question; it follows the prompt.
        rationale: the name of a field for reasons before that one, if there are to be any.
    """

    field: str
    text: str
    rationale: str = ""


@runtime_checkable
class LanguagePolicy(Protocol):
    """A policy that also answers other messages: a language model."""

    def decide_and_say(self, view: PromptView, aside: SideQuestion, rng: np.random.Generator) -> tuple[Reply, bool]:
        """Choose an action and answer a side question; an unusable answer to the latter counts as false."""
        ...

    def answer(
        self, messages: Sequence[Message], schema: Mapping[str, Any], rules: Model, rng: np.random.Generator
    ) -> Completion:
        """Answer other messages by a schema; the rules answer where the reply is unusable, which is counted."""
        ...


def make_policy(name: str, **options: Any) -> Policy:
    """Make a policy by name.

    Args:
        name: one of `registry.POLICIES.names()`.

    Raises:
        UnknownNameError: if there is no policy of that name.
        ArgumentError: if it does not take one of the options, or refuses its value.
        PartError: if it is a part of a file or of another package, and cannot be used.

    Example:
        >>> make_policy("random").name
        'random'
    """
    made: Policy = POLICIES.make(name, **options)
    return check_policy(made, name)


class RandomPolicy:
    """One admissible action at random.

    Example:
        >>> RandomPolicy().decide(PromptView("Any task.", "{}", ("0",)), np.random.default_rng(0)).text
        '0'
    """

    name = "random"

    def decide(self, view: PromptView, rng: np.random.Generator) -> Reply:
        """Draw one of the admissible actions.

        Raises:
            ArgumentError: if there is none.
        """
        check_actions(view)
        return Reply(pick(view.actions, rng))
