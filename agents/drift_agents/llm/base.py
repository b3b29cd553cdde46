"""What a small model is: messages in, text or checked JSON out.

* `Message` - one message of a conversation
* `Completion` - an answer with what it cost
* `Model` - the protocol
* `ask` - one question whose answer must be JSON of a given form

Memories use a model for summaries, importance, reflection and critique. Offline that is
`drift_agents.llm.rules.RuleModel`: declared rules that read the messages and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

from drift_agents.errors import ModelError
from drift_agents.llm.schema import violations
from drift_agents.types import NO_USAGE, Usage, UsageFields


class Message(NamedTuple):
    """One message of a conversation.

    Args:
        role: `system`, `user` or `assistant`.
        content: the text.
    """

    role: str
    content: str


@dataclass(frozen=True)
class Completion(UsageFields):
    """An answer with what it cost.

    Args:
        text: the answer as text.
        data: the parsed JSON when a schema was given, else `None`.
        usage: what it cost; nothing for rules, which are no language model.
        finish: why the answer ends: `stop`, `length` (cut off), `refusal` or `empty`.
    """

    text: str
    data: Any = None
    usage: Usage = NO_USAGE
    finish: str = "stop"


@runtime_checkable
class Model(Protocol):
    """Messages in, text out; JSON when a schema is given.

    The answer is a function of the arguments alone, as far as the model can promise that: equal
    questions with equal `sample_index` get equal answers.
    """

    name: str

    def complete(
        self,
        messages: Sequence[Message],
        schema: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        sample_index: int = 0,
    ) -> Completion:
        """Answer.

        Args:
            messages: the conversation so far.
            schema: a JSON Schema with a `title`, when the answer must be JSON of that form.
            parameters: the model's own parameters, as in `{"temperature": 0}`.
            sample_index: tells several answers to one question apart.
        """
        ...


def ask(
    model: Model,
    messages: Sequence[Message],
    schema: Mapping[str, Any],
    parameters: Mapping[str, Any] | None = None,
    sample_index: int = 0,
) -> Completion:
    """One question whose answer must be JSON of a given form.

    Args:
        model: who is asked.
        messages: the conversation so far.
        schema: the form; its `title` says what is asked.
        parameters: the model's own parameters.
        sample_index: tells several answers to one question apart.

    Returns:
        The answer; `data` satisfies the schema.

    Raises:
        ModelError: if the answer does not have that form.

    Example:
        >>> from drift_agents.llm.rules import RuleModel
        >>> schema = {"title": "length", "type": "integer"}
        >>> model = RuleModel({"length": lambda text: len(text.split())})
        >>> ask(model, [Message("user", "how many words are these")], schema).data
        5
    """
    answer = model.complete(messages, schema, parameters, sample_index)
    wrong = violations(answer.data, schema)
    if wrong:
        raise ModelError(
            f"the model {model.name!r} should answer {schema.get('title', 'a question')!r} by its schema: "
            f"{'; '.join(wrong)}. Received {answer.text[:200]!r}"
        )
    return answer
