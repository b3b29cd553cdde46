"""The language model as the policy: the view as messages, the action from the model's reply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from drift_agents.envs.base import PLAIN_TEMPLATES, named_environment
from drift_agents.errors import ArgumentError, ContextLengthError
from drift_agents.llm.base import Completion, Message, Model, ask, count_tokens, object_schema
from drift_agents.llm.reask import REASKS, ReaskingModel
from drift_agents.llm.service import Service
from drift_agents.policy.base import Reply, SideQuestion
from drift_agents.policy.brief import BRIEF
from drift_agents.policy.messages import (
    ARRANGEMENTS,
    FACTS_FORMATS,
    FORMATS,
    arrange,
    count_entries,
    render_messages,
    without_oldest,
)
from drift_agents.policy.prompt_template import load_template
from drift_agents.policy.ranked import PLAIN
from drift_agents.prompt.builder import WHOLE
from drift_agents.prompt.view import PromptView
from drift_agents.registry.parts import check_protocol
from drift_envs.checks import check_choice, check_count, check_flag, check_interval
from drift_envs.utils.json_schema import without_surrogates

MAX_TOKENS = 1024
"""Default length of a reply, thoughts included."""
MOST_SAMPLES = 2**31 - 1
"""Sample indices are sent to servers as seeds, which have 31 bits."""


class LanguageModelPolicy:
    """Renders the view as messages to a language model, and parses the action from its reply.

    The view is rendered by the environment's template (`drift_agents.policy.prompt_template`). A reply without an
    admissible action is requested again, with the reason; the last one is returned as it is, and the agent counts it
    as an invalid action. With only one admissible action the model is not called.

    With a temperature above 0 each decision is a sample of its own, seeded by the agent's generator; at
    temperature 0 equal prompts share one recorded reply.

    Args:
        model: the name of a model, or a model.
        base_url: the address of its server, as in `http://127.0.0.1:8000/v1`; by default OpenAI's.
        temperature: in [0, 2], 0 for greedy decoding; `None` omits it, as some models require.
        max_tokens: the maximum length of a reply; `None` leaves it to the server.
        parameters: further parameters of each request, as in `{"reasoning_effort": "low"}`.
        form: how the reply's form is requested: `json_schema`, `json_object`, `text`; `auto` tries them in turn.
        format: which parts of the prompt the messages contain, one of `drift_agents.policy.messages.FORMATS`.
        order: the order of records, one of `drift_agents.policy.messages.ARRANGEMENTS`.
        reason: whether the reply has a field for reasons before the action; the format `react` always has.
        context: the maximum of tokens of prompt and reply together, by estimate; records are left out, the
            oldest first, until they fit. Without it they are left out when the server refuses a prompt.
        reasks: how often a reply without an admissible action is requested again.
        price: of a million tokens of prompts and of replies.
        sheets: a folder with prompt templates of one's own.
        examples: whether the prompt has a worked example, in the formats `brief`, `ranked` and `raw`.

    Raises:
        ArgumentError: if an argument is outside its range.

    Example:
        >>> from drift_agents.llm.base import RuleModel
        >>> view = PromptView("Any task.", '{"at": 1}', ("0", "1"))
        >>> policy = LanguageModelPolicy(RuleModel({"action": lambda text: {"action": "1"}}))
        >>> policy.decide(view, np.random.default_rng(0)).text
        '1'
    """

    name = "llm"

    def __init__(
        self,
        model: str | Model,
        *,
        base_url: str | None = None,
        temperature: float | None = 0.0,
        max_tokens: int | None = MAX_TOKENS,
        parameters: Mapping[str, Any] | None = None,
        form: str = "auto",
        format: str = BRIEF,
        order: str = "memory",
        reason: bool = False,
        context: int | None = None,
        reasks: int = REASKS,
        price: object = None,
        sheets: str | None = None,
        examples: bool = False,
    ) -> None:
        check_choice("format", format, FORMATS)
        check_choice("order", order, ARRANGEMENTS)
        check_interval("temperature", temperature, "[0, 2]", optional=True)
        check_count("max_tokens", max_tokens, optional=True)
        check_count("context", context, optional=True)
        if parameters is not None and not isinstance(parameters, Mapping):
            raise ArgumentError(f"`parameters` should map names to values. Received {parameters!r}")
        self.format, self.order, self.context, self.sheets = format, order, context, sheets
        self.examples = check_flag("examples", examples)
        self.needs_history = WHOLE if format == "react" else format in FACTS_FORMATS
        self.reason = check_flag("reason", reason) or format == "react"
        self._greedy, self._room = temperature == 0, 0 if max_tokens is None else max_tokens
        own = {"temperature": temperature, "max_tokens": max_tokens}
        self.parameters = {**{key: value for key, value in own.items() if value is not None}, **(parameters or {})}
        if isinstance(model, str):
            model = Service().model(model, base_url, form, price)
        elif not isinstance(model, Model):
            raise ArgumentError(f"`model` should be the name of a language model, or a model. Received {model!r}")
        elif (base_url, form, price) != (None, "auto", None):
            raise ArgumentError("`base_url`, `form` and `price` belong to a model's name. Received a model beside them")
        check_protocol("model", type(model).__name__, model, Model)
        self.model = model
        self._model = ReaskingModel(self.model, self.parameters, reasks)

    def decide(self, view: PromptView, rng: np.random.Generator) -> Reply:
        """Choose an action.

        Args:
            rng: for the order of records, and for samples.

        Raises:
            ArgumentError: if the template does not fit the environment.
            ContextLengthError: if it is too long for the model even without records.
            ModelError: if the model's server fails.
        """
        if len(view.actions) == 1:
            return Reply(view.actions[0])
        return self.decide_and_say(view, None, rng)[0]

    def decide_and_say(
        self, view: PromptView, aside: SideQuestion | None, rng: np.random.Generator
    ) -> tuple[Reply, bool]:
        """Choose an action and answer a side question; an unusable answer to the latter counts as false.

        Args:
            rng: for the order of records, and for samples.

        Raises:
            ArgumentError: if the template does not fit the environment.
            ContextLengthError: if it is too long for the model even without records.
            ModelError: if the model's server fails.
        """
        view = arrange(view, self.order, rng)
        completion, dropped = self._complete(view, aside, self._sample(rng))
        data = completion.data or {}
        text = without_surrogates(str(data.get("action", completion.text)))  # not every model cleans its replies
        reply = Reply(text, completion.usage._replace(dropped_records=dropped))
        return reply, aside is not None and data.get(aside.field) is True

    def answer(
        self, messages: Sequence[Message], schema: Mapping[str, Any], rules: Model, rng: np.random.Generator
    ) -> Completion:
        """Answer other messages by a schema; the rules answer where the model's reply is unusable, which is counted.

        Args:
            schema: the JSON schema of the reply.
            rules: the fallback.
            rng: for samples.

        Raises:
            ModelError: if the model's server fails.
        """
        model = ReaskingModel(self.model, self.parameters, self._model.reasks, rules)
        return ask(model, messages, schema, None, self._sample(rng))

    def _sample(self, rng: np.random.Generator) -> int:
        return 0 if self._greedy else int(rng.integers(1, MOST_SAMPLES))

    def messages(self, view: PromptView, aside: SideQuestion | None = None) -> list[Message]:
        """The messages of a decision."""
        environment = named_environment(view.environment)
        reference = environment.templates[self.format]
        # A plain template shows states as they are, so an environment's words go with its own templates alone.
        facts = PLAIN if reference == PLAIN_TEMPLATES[self.format] else environment.share("facts")
        template = load_template(reference, self.sheets)
        system, user = render_messages(view, template, facts, self.format, examples=self.examples)
        return [system, user if aside is None else user._replace(content=f"{user.content}\n\n{aside.text}")]

    def schema(self, view: PromptView, aside: SideQuestion | None = None) -> dict[str, Any]:
        """The JSON schema of the reply.

        Args:
            view: the prompt; it names the admissible actions.
        """
        properties: dict[str, Any] = {"reasoning": {"type": "string"}} if self.reason else {}
        properties["action"] = {"type": "string", "enum": list(view.actions)}
        if aside is not None:
            if aside.rationale:
                properties[aside.rationale] = {"type": "string"}
            properties[aside.field] = {"type": "boolean"}
        return object_schema("action", **properties)

    def _complete(self, view: PromptView, aside: SideQuestion | None, sample: int) -> tuple[Completion, int]:
        """The completion, and how many records had to be left out."""
        schema, most = self.schema(view, aside), count_entries(view, self.format)
        dropped = self._surplus(view, aside, most)
        while True:
            messages = self.messages(without_oldest(view, self.format, dropped), aside)
            try:
                return self._model.complete(messages, schema, None, sample), dropped
            except ContextLengthError:
                if dropped == most:
                    raise
                dropped += (most - dropped + 1) // 2

    def _surplus(self, view: PromptView, aside: SideQuestion | None, most: int) -> int:
        """How many records have to be left out to stay within `context`, by estimate."""
        if self.context is None:
            return 0
        low, high = 0, most
        while low < high:
            middle = (low + high) // 2
            messages = self.messages(without_oldest(view, self.format, middle), aside)
            if count_tokens(message.content for message in messages) + self._room <= self.context:
                high = middle
            else:
                low = middle + 1
        return low
