"""The offline model: declared, deterministic rules in the place of a language model.

* `Rule` - text in, JSON out
* `RuleModel` - answers by the rule that has the schema's title

The messages are a rule's only input, as they are a language model's. Results that rest on rules show that a
mechanism works; they say nothing about how well a language model would do.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from drift_agents.errors import ArgumentError, UnknownNameError
from drift_agents.llm.base import Completion, Message, Options

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
