"""Rules in the place of an answer that cannot be used.

* `RuleFallbackModel` - a model whose unusable answers are given by rules, and counted
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from drift_agents.errors import ContextLengthError
from drift_agents.llm.base import Completion, Message, Model
from drift_agents.llm.schema import violations


class RuleFallbackModel:
    """A model whose unusable answers are given by rules, and counted as `fallbacks`.

    A memory cannot go on without its summary, its critique or its insights. So where a language model
    refuses, says nothing or nothing of use after all re-asks, or is asked more than it can take, the
    memory's own declared rules answer. A server that does not answer is an error all the same.

    Args:
        model: who answers.
        rules: who answers else, as in `drift_agents.llm.rules.RuleModel`.

    Example:
        >>> from drift_agents.llm.rules import RuleModel
        >>> from drift_agents.llm.scripted import Scripted
        >>> rules = RuleModel({"importance": lambda text: {"importance": 1}})
        >>> schema = {"title": "importance", "type": "object", "required": ["importance"]}
        >>> model = RuleFallbackModel(Scripted(["I'd rather not say."]), rules)
        >>> answer = model.complete([Message("user", "Ouch.")], schema)
        >>> answer.data, answer.fallbacks, answer.model_calls
        ({'importance': 1}, 1, 1)
    """

    def __init__(self, model: Model, rules: Model) -> None:
        self.model, self.rules, self.name = model, rules, model.name

    def complete(
        self,
        messages: Sequence[Message],
        schema: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        sample_index: int = 0,
    ) -> Completion:
        """Answer, by rule where the model's answer cannot be used."""
        try:
            answer = self.model.complete(messages, schema, parameters, sample_index)
        except ContextLengthError:
            answer = Completion("")
        if schema is None or (answer.data is not None and not violations(answer.data, schema)):
            return answer
        ruled = self.rules.complete(messages, schema, parameters, sample_index)
        usage = answer.usage._replace(fallbacks=answer.fallbacks + 1)
        return replace(answer, text=ruled.text, data=ruled.data, usage=usage)
