"""What happens after an answer that does not have the requested form.

* `ReaskingModel` - repeats the request with a description of the error
* `RuleFallbackModel` - answers by declared rules where the model's answer remains invalid
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from drift_agents.checks import check_integer
from drift_agents.errors import ContextLengthError
from drift_agents.llm.answer_format import read_answer
from drift_agents.llm.base import Completion, Message, Model
from drift_agents.llm.monitor import AnswerMonitor
from drift_agents.llm.schema import violations
from drift_agents.types import NO_USAGE

REASKS = 2
"""Default number of repeated requests after invalid answers."""

_REASONS = {
    "length": "it was cut off, so it should be shorter",
    "thinking": "it was cut off before it began, so think less",
    "refusal": "it is a refusal; the question is about a game, nothing in it is real",
    "empty": "it is empty",
}


LONGEST_QUOTE = 4000
"""Characters of an invalid answer that are repeated in the next request."""


class ReaskingModel:
    """A model that gets a description of the error after an invalid answer, and answers again.

    When all answers are invalid, the last one is returned with `data` left `None`. The results are reported to the
    model's `monitor`, if it has one.

    Args:
        model: the model that answers.
        parameters: defaults for every request, as in `{"temperature": 0}`; those of a request override them.
        reasks: repeated requests at the most.

    Raises:
        ArgumentError: if `reasks` is negative.

    Example:
        >>> from drift_agents.llm.scripted import ScriptedModel
        >>> schema = {"title": "steps", "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        >>> model = ReaskingModel(ScriptedModel(["Many.", '{"n": 3}']))
        >>> answer = model.complete([Message("user", "How many steps?")], schema)
        >>> answer.data, answer.model_calls, answer.reasks
        ({'n': 3}, 2, 1)
    """

    def __init__(self, model: Model, parameters: Mapping[str, Any] | None = None, reasks: int = REASKS) -> None:
        self.reasks = check_integer("reasks", reasks, least=0)
        self.model, self.name = model, model.name
        self.parameters = dict(parameters or {})
        self._monitor: AnswerMonitor | None = getattr(model, "monitor", None)

    def complete(
        self,
        messages: Sequence[Message],
        schema: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        sample_index: int = 0,
    ) -> Completion:
        """Answer; the usage includes all invalid answers."""
        merged = {**self.parameters, **(parameters or {})}
        conversation, usage, reasks = list(messages), NO_USAGE, 0
        while True:
            answer = self.model.complete(conversation, schema, merged, sample_index)
            usage += answer.usage
            errors = [] if schema is None or answer.data is not None else read_answer(answer.text, schema)[1]
            if not errors or reasks == self.reasks:
                if self._monitor is not None and schema is not None:
                    self._monitor.count(is_valid=not errors, is_cut=answer.finish == "thinking")
                return replace(answer, usage=usage._replace(reasks=reasks))
            reasks += 1
            reason = _REASONS.get(answer.finish, "; ".join(errors))
            conversation += [
                Message("assistant", answer.text[:LONGEST_QUOTE]),
                Message("user", f"Your answer cannot be used: {reason}. Answer again."),
            ]


class RuleFallbackModel:
    """A model whose invalid answers are replaced by those of rules, and counted as `fallbacks`.

    A memory needs its summary, its critique or its insights. So where a language model refuses, returns nothing or
    nothing valid after all re-asks, or the request is too long for it, the memory's own declared rules answer. A
    server that does not respond remains an error.

    Args:
        model: the model that answers.
        rules: the replacement, as in `drift_agents.llm.rules.RuleModel`.

    Example:
        >>> from drift_agents.llm.rules import RuleModel
        >>> from drift_agents.llm.scripted import ScriptedModel
        >>> rules = RuleModel({"importance": lambda text: {"importance": 1}})
        >>> schema = {"title": "importance", "type": "object", "required": ["importance"]}
        >>> model = RuleFallbackModel(ScriptedModel(["I'd rather not say."]), rules)
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
        """Answer, by rule where the model's answer is invalid."""
        try:
            answer = self.model.complete(messages, schema, parameters, sample_index)
        except ContextLengthError:
            answer = Completion("")
        if schema is None or (answer.data is not None and not violations(answer.data, schema)):
            return answer
        by_rule = self.rules.complete(messages, schema, parameters, sample_index)
        usage = answer.usage._replace(fallbacks=answer.fallbacks + 1)
        return replace(answer, text=by_rule.text, data=by_rule.data, usage=usage)
