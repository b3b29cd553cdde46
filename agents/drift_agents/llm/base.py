"""The protocol of a language model: messages in, text or checked JSON out; and declared rules in the place of one.

Memories use a model for summaries, importance, reflection and critique. Offline that is `RuleModel`. The messages are a
rule's only input, as they are a language model's. Results that rest on rules show that a mechanism works; they say
nothing about how well a language model would do.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from string import Template
from typing import Any, NamedTuple, Protocol, runtime_checkable

from drift_agents.errors import ArgumentError, ModelError, UnknownNameError
from drift_agents.types import NO_USAGE, Usage, UsageFields
from drift_envs.utils.json_schema import violations

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
        schema: the form; its `title` names the task, as in `importance`.
        sample_index: distinguishes several answers to the same messages.

    Returns:
        The answer; `data` satisfies the schema.

    Raises:
        ModelError: if the answer does not have that form.

    Example:
        >>> from drift_agents.llm.base import RuleModel
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


def object_schema(title: str, /, *, optional: Sequence[str] = (), **properties: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a JSON object without other properties.

    Args:
        title: names the task of an answer; empty for an object inside another schema.
        optional: the properties that may be missing.
        **properties: the schema of each, in the order of the answer.

    Example:
        >>> object_schema("choice", why={"type": "string"}, choice={"type": "integer"}, optional=["why"])["required"]
        ['choice']
    """
    return {
        **({"title": title} if title else {}),
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


Rule = Callable[[str], Any]
"""A pure function: the text of the user's messages in, JSON by the schema of that title out."""


class RuleModel:
    """Answers by the rule that has the schema's title.

    Every memory that needs a model has a table of rules, from which it makes its default model. There is no
    global registry; tables can be joined with `|`.

    Args:
        rules: title of a schema -> rule.

    Raises:
        ArgumentError: if a rule cannot be called.

    Example:
        >>> model = RuleModel({"importance": lambda text: {"importance": 8 if "fell" in text else 1}})
        >>> model.complete([Message("user", "I fell into a hole.")], {"title": "importance"}).text
        '{"importance": 8}'
    """

    name = "rules"

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        for title, rule in rules.items():
            if not callable(rule):
                raise ArgumentError(f"the rule {title!r} should be a function of a text. Received {rule!r}")
        self.rules: Mapping[str, Rule] = dict(rules)

    def complete(
        self, messages: Sequence[Message], schema: Options = None, parameters: Options = None, sample_index: int = 0
    ) -> Completion:
        """Answer by rule.

        Args:
            messages: the rule's input are those whose role is `user`, joined by empty lines; the others are
                instructions for language models.
            schema: its title selects the rule.
            parameters: ignored; a rule has none.
            sample_index: ignored; a rule is deterministic.

        Raises:
            ArgumentError: if there is no schema, or it has no title.
            UnknownNameError: if there is no rule of that title.
        """
        title = None if schema is None else schema.get("title")
        if not isinstance(title, str):
            raise ArgumentError(f"the rules need a schema with a `title` that names a rule. Received {schema!r}")
        if title not in self.rules:
            raise UnknownNameError("rule", title, self.rules)
        data = self.rules[title]("\n\n".join(message.content for message in messages if message.role == "user"))
        return Completion(json.dumps(data, ensure_ascii=False), data)


_SEPARATOR = "\n---\n"
"""The line between the system's message and the user's."""


@lru_cache(maxsize=64)
def _read(name: str) -> tuple[Template, Template]:
    text = files("drift_agents").joinpath(name).read_text(encoding="utf-8")
    system, _, user = text.partition(_SEPARATOR)
    return Template(system.strip()), Template(user.strip())


def read_messages(name: str, **values: str) -> tuple[Message, Message]:
    """A template with its gaps filled: a system message and a user message.

    Args:
        name: the file's path below the package, as in `memory/templates/memory_bank_day.txt`. It holds the
            system's message, a line of three dashes, and the user's message; gaps are written `$name`, a dollar
            sign `$$`.
        values: the texts of all gaps, by name.

    Example:
        >>> system, user = read_messages("memory/templates/memory_bank_day.txt", day="It is slippery.")
        >>> user.content
        'It is slippery.'
    """
    return tuple(  # type: ignore[return-value]  # two templates make two messages
        Message(role, template.substitute(values))
        for role, template in zip(("system", "user"), _read(name), strict=True)
    )
