"""The language model as the policy.

* `LanguageModelPolicy` - tells the prompt in the paper's words, and takes the model's answer
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from drift_agents.checks import check_choice, check_integer, check_number
from drift_agents.errors import ArgumentError, ContextLengthError
from drift_agents.llm.base import Completion, Message, Model, ask, count_tokens
from drift_agents.llm.reask import REASKS, ReaskingModel, RuleFallbackModel
from drift_agents.llm.service import connect
from drift_agents.policy.base import Reply, SideQuestion
from drift_agents.policy.messages import ARRANGEMENTS, FORMATS, arrange, render_messages, size, without_oldest
from drift_agents.policy.planner import STATE_MARKERS
from drift_agents.policy.prompt_template import load_template
from drift_agents.prompt.view import PromptView, parse_prompt

MOST_SAMPLES = 2**31 - 1
"""Sample indices are sent to servers as seeds, which have 31 bits."""


class LanguageModelPolicy:
    """Renders the prompt as messages to a language model, and parses the action from its reply.

    The rendered prompt is parsed and told once more by a template that belongs to the world
    (`drift_agents.policy.prompt_template`); nothing else is known here. An answer that names no admissible action
    is asked for again, with the reason; the last one is handed on as it is, and the agent counts it as
    an invalid action. Where there is but one admissible action nobody is asked.

    With a temperature every decision is a sample of its own, drawn by the agent's generator; at
    temperature 0 equal prompts are one question, so that recorded replies are shared.

    Args:
        model: the name of a model, or a model.
        base_url: where its server is, as in `http://127.0.0.1:8000/v1`; OpenAI's own if not given.
        temperature: 0 for the likeliest answer; `None` leaves it to the server, as some models want it.
        max_tokens: of an answer, at the most; `None` leaves it to the server.
        parameters: what else is sent with every question, as in `{"reasoning_effort": "low"}`.
        form: how the model is told to answer: `json_schema`, `json_object`, `text`; `auto` finds out.
        format: how much of the prompt is told, one of `drift_agents.policy.messages.FORMATS`.
        order: in which order records are told, one of `drift_agents.policy.messages.ARRANGEMENTS`.
        reason: whether the model is asked for its reasons before the action; the format `react` always asks.
        context: tokens that prompt and answer may have together, roughly; records are left out, the
            oldest first, until they fit. Without it they are left out when the server refuses.
        reasks: how often an answer that names no admissible action is asked for again.
        price: of a million tokens of prompts and of answers.
        sheets: a folder with prompts of one's own.

    Raises:
        ArgumentError: if an argument cannot be meant.

    Example:
        >>> from drift_agents.llm.scripted import ScriptedModel
        >>> prompt = PromptView("Any task.", '{"at": 1}', ("0", "1")).render()
        >>> policy = LanguageModelPolicy(ScriptedModel(["I take 1.", '{"action": "1"}']))
        >>> policy.decide(prompt, np.random.default_rng(0)).text
        '1'
    """

    name = "llm"

    def __init__(
        self,
        model: str | Model,
        *,
        base_url: str | None = None,
        temperature: float | None = 0.0,
        max_tokens: int | None = 1024,
        parameters: Mapping[str, Any] | None = None,
        form: str = "auto",
        format: str = "paper",
        order: str = "memory",
        reason: bool = False,
        context: int | None = None,
        reasks: int = REASKS,
        price: object = None,
        sheets: str | None = None,
    ) -> None:
        check_choice("format", format, FORMATS)
        check_choice("order", order, ARRANGEMENTS)
        check_number("temperature", temperature, "[0, 2]", optional=True)
        check_integer("max_tokens", max_tokens, optional=True)
        check_integer("context", context, optional=True)
        if parameters is not None and not isinstance(parameters, Mapping):
            raise ArgumentError(f"`parameters` should map names to values. Received {parameters!r}")
        self.format, self.order, self.context, self.sheets = format, order, context, sheets
        self.reason = bool(reason) or format == "react"
        self._greedy, self._room = temperature == 0, 0 if max_tokens is None else max_tokens
        own = {"temperature": temperature, "max_tokens": max_tokens}
        self.parameters = {**{key: value for key, value in own.items() if value is not None}, **(parameters or {})}
        self.model = connect(model, base_url, form, price)
        self._model = ReaskingModel(self.model, self.parameters, reasks)

    def decide(self, prompt: str, rng: np.random.Generator) -> Reply:
        """Answer a prompt.

        Args:
            prompt: the rendered text.
            rng: for the order of records, and for samples.

        Raises:
            ArgumentError: if the prompt cannot be parsed, or the template does not fit the world.
            ContextLengthError: if it is too long for the model without any record.
            ModelError: if the model cannot be asked.
        """
        view = parse_prompt(prompt)
        if len(view.actions) == 1:
            return Reply(view.actions[0])
        return self._decide(view, None, rng)[0]

    def decide_and_say(self, prompt: str, aside: SideQuestion, rng: np.random.Generator) -> tuple[Reply, bool]:
        """Answer a prompt, and the question beside it; an answer that cannot be used is a no.

        Args:
            prompt: the rendered text.
            aside: the question beside the one for the action.
            rng: for the order of records, and for samples.

        Raises:
            ArgumentError: if the prompt cannot be parsed, or the template does not fit the world.
            ContextLengthError: if it is too long for the model without any record.
            ModelError: if the model cannot be asked.
        """
        return self._decide(parse_prompt(prompt), aside, rng)

    def answer(
        self, messages: Sequence[Message], schema: Mapping[str, Any], rules: Model, rng: np.random.Generator
    ) -> Completion:
        """Answer another question by a schema; where the answer cannot be used, by the rules, which is counted.

        Args:
            messages: the question.
            schema: the form of the answer.
            rules: who answers else.
            rng: for samples.

        Raises:
            ModelError: if the model cannot be asked.
        """
        return ask(RuleFallbackModel(self._model, rules), messages, schema, None, self._sample(rng))

    def _sample(self, rng: np.random.Generator) -> int:
        return 0 if self._greedy else int(rng.integers(1, MOST_SAMPLES))

    def _decide(self, view: PromptView, aside: SideQuestion | None, rng: np.random.Generator) -> tuple[Reply, bool]:
        view = arrange(view, self.order, rng)
        answer, dropped = self._ask(view, aside, self._sample(rng))
        said = answer.data or {}
        reply = Reply(str(said.get("action", answer.text)), answer.usage._replace(dropped_records=dropped))
        return reply, aside is not None and said.get(aside.field) is True

    def messages(self, view: PromptView, aside: SideQuestion | None = None) -> list[Message]:
        """What the model reads.

        Args:
            view: the prompt.
            aside: a question beside the one for the action.
        """
        world = next((world for world, sign in STATE_MARKERS.items() if sign in view.state), "plain")
        template = self.format if self.format in ("plain", "react") else world
        system, user = render_messages(view, load_template(template, self.sheets), template, self.format)
        return [system, user if aside is None else user._replace(content=f"{user.content}\n\n{aside.text}")]

    def schema(self, view: PromptView, aside: SideQuestion | None = None) -> dict[str, Any]:
        """The form of the answer.

        Args:
            view: the prompt; it names the admissible actions.
            aside: a question beside the one for the action.
        """
        properties: dict[str, Any] = {"reasoning": {"type": "string"}} if self.reason else {}
        properties["action"] = {"type": "string", "enum": list(view.actions)}
        if aside is not None:
            properties[aside.field] = {"type": "boolean"}
        return {
            "title": "action",
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }

    def _ask(self, view: PromptView, aside: SideQuestion | None, sample: int) -> tuple[Completion, int]:
        """The answer, and how many records had to be left out."""
        schema, most = self.schema(view, aside), size(view, self.format)
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
        """How many records have to be left out to keep to `context`, by estimate."""
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
