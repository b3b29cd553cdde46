"""What a policy is: rendered text in, text out.

* `Reply` - an answer with what it cost
* `Policy` - the protocol
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np


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
