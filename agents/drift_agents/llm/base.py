"""The protocol of a language model: messages in, text or checked JSON out.

* `Message` - one message of a conversation
* `Completion` - an answer with what it cost
* `Model` - the protocol
* `ask` - requests an answer by a JSON Schema and checks it
* `count_tokens` - estimates the number of tokens of texts

Memories use a model for summaries, importance, reflection and critique. Offline that is
`drift_agents.llm.rules.RuleModel`: declared rules whose only input is the messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

from drift_agents.errors import ModelError
from drift_agents.llm.schema import violations
from drift_agents.types import NO_USAGE, Usage, UsageFields

Options = Mapping[str, Any] | None
"""A schema or the parameters of a request, if it has any."""

CHARACTERS_PER_TOKEN = 4
"""A rough figure for English, used where no server has counted."""


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
        usage: what it cost; zero for rules, which are no language model.
        finish: why the answer ends: `stop`, `length` (cut off), `thinking` (cut off before it began), `refusal` or
            `empty`.
        tokens_cached: tokens of the prompt that the server had in its cache; they are part of `tokens_in`.
    """

    text: str
    data: Any = None
    usage: Usage = NO_USAGE
    finish: str = "stop"
    tokens_cached: int = 0


@runtime_checkable
class Model(Protocol):
    """Messages in, text out; JSON when a schema is given.

    The answer depends on the arguments alone, as far as the model can guarantee that: equal requests
    with equal `sample_index` get equal answers.
    """

    name: str

    def complete(
        self, messages: Sequence[Message], schema: Options = None, parameters: Options = None, sample_index: int = 0
    ) -> Completion:
        """Answer.

        Args:
            messages: the conversation so far.
            schema: a JSON Schema with a `title`, when the answer must be JSON of that form.
            parameters: the model's own parameters, as in `{"temperature": 0}`.
            sample_index: distinguishes several answers to the same messages.
        """
        ...


def ask(
    model: Model,
    messages: Sequence[Message],
    schema: Mapping[str, Any],
    parameters: Options = None,
    sample_index: int = 0,
) -> Completion:
    """Request an answer that must be JSON of a given form, and check it.

    Args:
        model: the model that answers.
        messages: the conversation so far.
        schema: the form; its `title` names the task, as in `importance`.
        parameters: the model's own parameters.
        sample_index: distinguishes several answers to the same messages.

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
    errors = violations(answer.data, schema)
    if errors:
        raise ModelError(
            f"the model {model.name!r} should answer {schema.get('title', 'a request')!r} by its schema: "
            f"{'; '.join(errors)}. Received {answer.text[:200]!r}"
        )
    return answer


def count_tokens(texts: Iterable[str]) -> int:
    """Estimate the number of tokens of some texts, each rounded up.

    Example:
        >>> count_tokens(["Reach the goal.", "Go"])
        5
    """
    return sum(-(-len(text) // CHARACTERS_PER_TOKEN) for text in texts)
