"""A model that says what it was told to say: for tests, and to try prompts without a server.

* `Scripted` - answers from a list, or from a function of the messages
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from drift_agents.errors import ModelError
from drift_agents.llm.base import Completion, Message
from drift_agents.llm.forms import read_answer
from drift_agents.llm.tokens import count_tokens
from drift_agents.types import Usage

Line = str | Completion | ModelError
"""What is said next: a text, a whole completion, or an error that is raised."""


class ScriptedQuestion(NamedTuple):
    """What a scripted model was asked."""

    messages: tuple[Message, ...]
    schema: Mapping[str, Any] | None
    parameters: Mapping[str, Any]
    sample_index: int


class Scripted:
    """Answers from a list, one after the other, or from a function of the messages.

    Every answer counts as one call; tokens are estimated from the length of the texts.

    Args:
        lines: the answers, or a function that takes the messages and gives one.
        name: how it is called.

    Example:
        >>> model = Scripted(["It is slippery.", '{"action": "2"}'])
        >>> model.complete([Message("user", "How is it?")]).text
        'It is slippery.'
        >>> model.complete([Message("user", "Where to?")], {"title": "action", "type": "object"}).data
        {'action': '2'}
        >>> len(model.asked)
        2
    """

    def __init__(self, lines: Sequence[Line] | Callable[[Sequence[Message]], Line], name: str = "scripted") -> None:
        self._lines, self.name = lines, name
        self.asked: list[ScriptedQuestion] = []

    @property
    def identity(self) -> Mapping[str, Any]:
        """What tells its recorded replies from those of other models."""
        return {"model": self.name}

    def complete(
        self,
        messages: Sequence[Message],
        schema: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        sample_index: int = 0,
    ) -> Completion:
        """Say the next line.

        Raises:
            ModelError: if the line is one, or there is none left.
        """
        self.asked.append(ScriptedQuestion(tuple(messages), schema, dict(parameters or {}), sample_index))
        if callable(self._lines):
            line = self._lines(messages)
        elif len(self.asked) <= len(self._lines):
            line = self._lines[len(self.asked) - 1]
        else:
            said, asked = len(self._lines), len(self.asked)
            raise ModelError(f"the model {self.name!r} has {said} lines. Received {asked} questions")
        if isinstance(line, ModelError):
            raise line
        if isinstance(line, Completion):
            return line
        data = None if schema is None else read_answer(line, schema)[0]
        tokens_in = count_tokens(message.content for message in messages)
        return Completion(line, data, Usage(1, tokens_in, count_tokens([line])))
