"""What a policy is: rendered text in, text out.

* `Reply` - an answer with what it cost
* `Policy` - the protocol
* `SideQuestion` - a question beside the one for the action
* `LanguagePolicy` - a policy that also answers other questions: a language model
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from drift_agents.llm.base import Completion, Message, Model


class Reply(NamedTuple):
    """An answer with what it cost.

    Args:
        text: the answer; the agent reads the action out of it.
        model_calls: calls of a language model.
        tokens_in: tokens of the prompts.
        tokens_out: tokens of the answers.
        milliseconds: how long the answers took.
        cost: what the tokens cost.
        reasks: how often an answer could not be used and was asked for again.
        fallbacks: how often a rule answered in the model's place.
        dropped_records: records that were left out of prompts which were too long.
    """

    text: str
    model_calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    milliseconds: int = 0
    cost: float = 0.0
    reasks: int = 0
    fallbacks: int = 0
    dropped_records: int = 0


@runtime_checkable
class Policy(Protocol):
    """Rendered text in, text out.

    A policy gets the text of the prompt and a generator for its ties, and nothing else. It may
    cache what it computed from texts; its answer is a function of text and generator alone.
    """

    name: str

    def decide(self, prompt: str, rng: np.random.Generator) -> Reply:
        """Answer a prompt."""
        ...


class SideQuestion(NamedTuple):
    """A question beside the one for the action, to be answered with true or false.

    Args:
        field: what the answer is called.
        text: the question; it stands below the prompt.
    """

    field: str
    text: str


@runtime_checkable
class LanguagePolicy(Protocol):
    """A policy that also answers other questions: a language model."""

    def decide_and_say(self, prompt: str, aside: SideQuestion, rng: np.random.Generator) -> tuple[Reply, bool]:
        """Answer a prompt, and the question beside it; an answer that cannot be used is a no."""
        ...

    def answer(
        self, messages: Sequence[Message], schema: Mapping[str, Any], rules: Model, rng: np.random.Generator
    ) -> Completion:
        """Answer another question by a schema; where the answer cannot be used, by the rules, which is counted."""
        ...
