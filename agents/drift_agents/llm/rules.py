"""The offline model: declared, deterministic rules in the place of a language model.

* `Rule` - what a rule is: text in, JSON out
* `RuleModel` - answers by the rule that has the schema's title

A rule reads the text of the messages and nothing else, so it knows no more than a language model
would. Results that rest on rules show that a mechanism works; they say nothing about introspection.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from drift_agents.errors import ArgumentError, UnknownNameError
from drift_agents.llm.base import Completion, Message

Rule = Callable[[str], Any]
"""Pure: the text of the user's messages in, JSON by the schema of that title out."""


class RuleModel:
    """Answers by the rule that has the schema's title.

    Every memory that needs a model brings its rules in a table of its own and makes its default
    model of them, so nothing is registered behind anyone's back. Tables can be joined with `|`.

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
        self.rules: Mapping[str, Rule] = MappingProxyType(dict(rules))

    def complete(
        self,
        messages: Sequence[Message],
        schema: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        sample_index: int = 0,
    ) -> Completion:
        """Answer by rule.

        Args:
            messages: the rule reads the text of those whose role is `user`, joined by empty lines;
                the others tell a language model what the rule does anyway.
            schema: its title chooses the rule.
            parameters: not used, a rule has none.
            sample_index: not used, a rule always answers the same.

        Raises:
            ArgumentError: if there is no schema, or it has no title.
            UnknownNameError: if there is no rule of that title.
        """
        title = None if schema is None else schema.get("title")
        if not isinstance(title, str):
            raise ArgumentError(f"the rules need a schema whose `title` says what is asked. Received {schema!r}")
        if title not in self.rules:
            raise UnknownNameError("rule", title, self.rules)
        data = self.rules[title]("\n\n".join(message.content for message in messages if message.role == "user"))
        return Completion(json.dumps(data, ensure_ascii=False), data)

    def __reduce__(self) -> tuple[type[RuleModel], tuple[dict[str, Rule]]]:
        """Rebuild from the rules: a read-only mapping cannot be copied or pickled."""
        return type(self), (dict(self.rules),)
