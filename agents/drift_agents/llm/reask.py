"""What happens after an invalid answer: the request is repeated, rules answer, and a run of such answers is stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from drift_agents.errors import ContextLengthError, UnusableAnswersError
from drift_agents.llm.base import Completion, Message, Model, Options
from drift_agents.llm.budget import Meter
from drift_agents.types import NO_USAGE
from drift_envs.checks import check_count
from drift_envs.messages import read_answer
from drift_envs.utils.json_schema import violations

REASKS = 2
"""Default number of repeated requests after invalid answers."""
LONGEST_QUOTE = 4000
"""Characters of an invalid answer that are repeated in the next request."""
LEAST = 50
"""Answers before a run is stopped."""
MOST_INVALID = 0.2
"""Share of answers that may be invalid."""

_REASONS = {
    "length": "it was cut off, so it should be shorter",
    "thinking": "it was cut off before it began, so think less",
    "refusal": "it is a refusal; the question is about a game, nothing in it is real",
    "empty": "it is empty",
}


class ReaskingModel:
    """A model that gets a description of the error after an invalid answer, and answers again.

    A memory needs its summary, its critique or its insights. So where all answers are invalid, or the request is too
    long for the model, its declared rules answer, which is counted as `fallbacks`; without rules the last answer is
    returned with `data` left `None`. A server that does not respond remains an error.

    Whether the last answer is valid is reported to the model's method `report`, if it has one.

    Args:
        model: the model that answers.
        parameters: defaults for every request, as in `{"temperature": 0}`; those of a request override them.
        reasks: repeated requests at the most.
        rules: the replacement for invalid answers, as in `drift_agents.llm.base.RuleModel`.
        meter: a sum to which the usage is added.

    Raises:
        ArgumentError: if `reasks` is negative.

    Example:
        >>> from drift_agents.llm.base import RuleModel
        >>> schema = {"title": "steps", "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        >>> invalid, rules = RuleModel({"steps": lambda text: None}), RuleModel({"steps": lambda text: {"n": 3}})
        >>> answer = ReaskingModel(invalid, rules=rules).complete([Message("user", "How many steps?")], schema)
        >>> answer.data, answer.reasks, answer.fallbacks
        ({'n': 3}, 2, 1)
    """

    def __init__(
        self,
        model: Model,
        parameters: Mapping[str, Any] | None = None,
        reasks: int = REASKS,
        rules: Model | None = None,
        meter: Meter | None = None,
    ) -> None:
        self.reasks = check_count("reasks", reasks, least=0)
        self.model, self.name, self.rules, self.meter = model, model.name, rules, meter
        self.parameters = dict(parameters or {})
        self._report: Callable[[bool, bool], object] | None = getattr(model, "report", None)

    def complete(
        self, messages: Sequence[Message], schema: Options = None, parameters: Options = None, sample_index: int = 0
    ) -> Completion:
        """Answer; the usage includes all invalid answers."""
        merged = {**self.parameters, **(parameters or {})}
        conversation, usage, reasks = list(messages), NO_USAGE, 0
        while True:
            try:
                answer = self.model.complete(conversation, schema, merged, sample_index)
            except ContextLengthError:
                if self.rules is None:
                    raise
                answer = Completion("")
                break
            usage += answer.usage
            errors = [] if schema is None or answer.data is not None else read_answer(answer.text, schema).errors
            if not errors or reasks == self.reasks:
                if self._report is not None and schema is not None:
                    self._report(not errors, answer.finish == "thinking")
                break
            reasks += 1
            reason = _REASONS.get(answer.finish, "; ".join(errors))
            conversation += [
                Message("assistant", answer.text[:LONGEST_QUOTE]),
                Message("user", f"Your answer cannot be used: {reason}. Answer again."),
            ]
        usage = usage._replace(reasks=reasks)
        if self.rules is not None and schema is not None and (answer.data is None or violations(answer.data, schema)):
            by_rule = self.rules.complete(messages, schema, parameters, sample_index)
            answer = replace(answer, text=by_rule.text, data=by_rule.data)
            usage = usage._replace(fallbacks=usage.fallbacks + 1)
        if self.meter is not None:
            self.meter.add(usage)
        return replace(answer, usage=usage)


class AnswerMonitor:
    """Stops a run in which more than a fifth of the answers is invalid after all re-asks.

    Such a run measures the form of the answers, and not what a memory contributes.

    Args:
        least: answers before an error is raised.

    Example:
        >>> monitor = AnswerMonitor(least=1)
        >>> monitor.count(is_valid=False)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        drift_agents.errors.UnusableAnswersError: 1 of 1 answers are invalid: use a server that restricts answers ...
    """

    def __init__(self, least: int = LEAST) -> None:
        self.least = least
        self.answers = self.invalid = self.cut = 0
        self._lock = threading.Lock()

    def count(self, is_valid: bool, is_cut: bool = False) -> None:
        """Count an answer.

        Args:
            is_valid: whether it has the requested form.
            is_cut: whether it was cut off while the model was thinking.

        Raises:
            UnusableAnswersError: if too many answers are invalid.
        """
        with self._lock:
            self.answers += 1
            self.invalid += not is_valid
            self.cut += is_cut and not is_valid
            if self.answers < self.least or self.invalid <= MOST_INVALID * self.answers:
                return
        advice = ": use a server that restricts answers to a schema, or a larger model"
        if 2 * self.cut >= self.invalid:
            advice = f", {self.cut} of them cut off while thinking: raise `max_tokens`, or limit the thoughts, as with "
            advice += "--set policy.parameters.reasoning_effort=low"
        raise UnusableAnswersError(
            f"{self.invalid} of {self.answers} answers are invalid{advice}. --set models.keep_going=true goes on"
        )
