"""A model with prepared answers.

* `ScriptedModel` - answers from a list, or from a function of the messages
* `ScriptedRequest` - a request that such a model received
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from drift_agents.errors import ModelError
from drift_agents.llm.base import Completion, Message, Options, count_tokens
from drift_agents.types import Usage

from drift_envs.messages import read_answer

ScriptedAnswer = str | Completion | ModelError
"""A text, a whole completion, or an error that is raised."""


class ScriptedRequest(NamedTuple):
    """The arguments of one call of `ScriptedModel.complete`."""

    messages: tuple[Message, ...]
    schema: Mapping[str, Any] | None
    parameters: Mapping[str, Any]
    sample_index: int


class ScriptedModel:
    """Answers from a list, one after the other, or from a function of the messages.

    Every answer counts as one call; tokens are estimated from the length of the texts.

    Args:
        answers: the answers, or a function of the messages that returns one.
        name: the model's name.
    """

    def __init__(
        self, answers: Sequence[ScriptedAnswer] | Callable[[Sequence[Message]], ScriptedAnswer], name: str = "scripted"
    ) -> None:
        self._answers, self.name = answers, name
        self.requests: list[ScriptedRequest] = []

    @property
    def identity(self) -> Mapping[str, Any]:
        """The part of the key of recorded replies that stands for the model."""
        return {"model": self.name}

    def complete(
        self, messages: Sequence[Message], schema: Options = None, parameters: Options = None, sample_index: int = 0
    ) -> Completion:
        """Return the next answer.

        Raises:
            ModelError: if the answer is one, or none is left.
        """
        self.requests.append(ScriptedRequest(tuple(messages), schema, dict(parameters or {}), sample_index))
        if callable(self._answers):
            answer = self._answers(messages)
        elif len(self.requests) <= len(self._answers):
            answer = self._answers[len(self.requests) - 1]
        else:
            count, received = len(self._answers), len(self.requests)
            raise ModelError(f"the model {self.name!r} has {count} answers. Received {received} requests")
        if isinstance(answer, ModelError):
            raise answer
        if isinstance(answer, Completion):
            return answer
        data = None if schema is None else read_answer(answer, schema).data
        tokens_in = count_tokens(message.content for message in messages)
        return Completion(answer, data, Usage(1, tokens_in, count_tokens([answer])))
