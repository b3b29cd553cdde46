"""What a model's answers cost, added up where nobody else does.

* `Meter` - a sum that is taken and begins anew
* `MeteredModel` - a model whose answers are added to a meter

Memories ask their models by themselves, at times of their own, and hand on no bill. The meter goes to
the agent, which takes the sum at the end of every episode.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from drift_agents.llm.base import Completion, Message, Model
from drift_agents.types import NO_USAGE, Usage


class Meter:
    """A sum that is taken and begins anew.

    Example:
        >>> meter = Meter()
        >>> meter.add(Usage(model_calls=1, tokens_in=20))
        >>> meter.take().tokens_in, meter.take().tokens_in
        (20, 0)
    """

    def __init__(self) -> None:
        self.usage = NO_USAGE

    def add(self, usage: Usage) -> None:
        """Add what something cost."""
        self.usage += usage

    def take(self) -> Usage:
        """What was added since it was last taken."""
        taken, self.usage = self.usage, NO_USAGE
        return taken


class MeteredModel:
    """A model whose answers are added to a meter.

    Args:
        model: who answers.
        meter: what is added to.

    Example:
        >>> from drift_agents.llm.scripted import Scripted
        >>> model = MeteredModel(Scripted(["yes", "no"]), Meter())
        >>> model.complete([Message("user", "Is it slippery?")]).text, model.meter.take().model_calls
        ('yes', 1)
    """

    def __init__(self, model: Model, meter: Meter) -> None:
        self.model, self.meter, self.name = model, meter, model.name

    def complete(
        self,
        messages: Sequence[Message],
        schema: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        sample_index: int = 0,
    ) -> Completion:
        """Answer, and add up."""
        answer = self.model.complete(messages, schema, parameters, sample_index)
        self.meter.add(answer.usage)
        return answer
