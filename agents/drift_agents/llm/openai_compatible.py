"""A model behind a server with the chat-completions protocol: OpenAI, Anthropic, Gemini, vLLM, Ollama, llama.cpp.

The package `openai` repeats requests after failures. Repeated here is what a server refuses: a form of the answer,
after which the next form is requested, and parameters, which are renamed or left out.
`drift_agents.llm.reask.ReaskingModel` repeats requests after invalid answers.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from drift_agents.errors import ArgumentError
from drift_agents.llm.answer_format import (
    FORMS,
    TOOL,
    constrain,
    function_name,
    instruct,
)
from drift_agents.llm.base import Completion, Message, Options, count_tokens
from drift_agents.llm.connection import connect_client, find_url, import_openai, read_key
from drift_agents.llm.server_errors import ServerError, find_limit, find_refused, read_error, translate_error
from drift_agents.types import Usage
from drift_envs.checks import check_choice, check_count, check_interval, is_number
from drift_envs.messages import (
    ends_with_answer,
    read_answer,
    read_arguments,
    read_content,
    without_thoughts,
)
from drift_envs.utils.json_schema import without_surrogates

RETRIES = 10
"""Default number of repeated requests after failures. Their pauses add up to a minute, over which servers count."""
RENAMED: Mapping[str, str] = {"max_tokens": "max_completion_tokens"}
"""The second name of a parameter, used after the first is refused."""

_FINISHES = {
    **dict.fromkeys(("length", "max_tokens", "model_length", "model_context_window_exceeded"), "length"),
    **dict.fromkeys(("content_filter", "refusal", "safety", "recitation", "sensitive", "blocklist"), "refusal"),
}
"""What the reasons for the end of a reply mean, in lower case; any other is the model's own end."""
_THOUGHTS = ("reasoning_content", "reasoning")
"""The parts of a message with the model's thoughts: DeepSeek and vLLM, OpenRouter and newer versions of vLLM."""

LONGEST_REPLY = 100_000
"""Characters of a reply; what follows is cut."""
MOST_TOKENS = 10**9
"""Tokens of one reply that are believed; any other count is replaced by an estimate."""


class OpenAICompatible:
    """A model of a server that has the chat-completions protocol.

    Servers and models differ in the parameters that they accept: models that reason take `max_completion_tokens` and
    no temperature, others have no `seed`. A refused parameter is renamed or left out, once, and not sent again.

    Args:
        model: the server's name for the model.
        base_url: the server's address, as in `http://127.0.0.1:8000/v1`; `OPENAI_BASE_URL` if not given, or OpenAI's
            own.
        key_file: a file with its key, in the place of the environment variable. The key is read at the first request,
            since recorded replies need none, and never shown.
        form: the form of answers, one of `json_schema`, `json_object`, `text` and `tool`
            (`drift_agents.llm.answer_format`); `auto` finds the first one that the server supports, but for `tool`.
        timeout: seconds to wait for an answer.
        retries: repeated requests after failures, at the most.
        note: called with a sentence about what the server refuses.

    Raises:
        ArgumentError: if an argument is not valid.

    Example:
        >>> OpenAICompatible("qwen3:4b", base_url="http://127.0.0.1:11434/v1")
        OpenAICompatible('qwen3:4b', base_url='http://127.0.0.1:11434/v1')
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        key_file: str | os.PathLike[str] | None = None,
        form: str = "auto",
        timeout: float = 120.0,
        retries: int = RETRIES,
        note: Callable[[str], None] | None = None,
    ) -> None:
        if not isinstance(model, str) or not model:
            raise ArgumentError(f"`model` should be the name of a model. Received {model!r}")
        check_choice("form", form, ("auto", *FORMS, TOOL))
        self.timeout = check_interval("timeout", timeout, "(0, inf)")
        self.retries = check_count("retries", retries, least=0)
        self.name, self.form = model, form
        self.base_url = find_url(base_url)
        self._key_file, self._note = key_file, note
        self._lock = threading.Lock()
        self._opened: Any = None
        self._end: Callable[[], object] = lambda: None
        self._key = ("", "")
        self._forms = list(FORMS) if form == "auto" else [form]
        self._enforces = True  # schemas, until an answer breaks one
        self._names: dict[str, str | None] = {}
        self._limits: dict[str, int] = {}

    def __repr__(self) -> str:
        """Name and address, without the key."""
        return f"{type(self).__name__}({self.name!r}, base_url={self.base_url!r})"

    @property
    def identity(self) -> Mapping[str, Any]:
        """The part of the key of recorded replies that stands for the model."""
        return {"base_url": self.base_url, "model": self.name, "form": self.form}

    @property
    def _client(self) -> Any:
        """The client, made at the first request."""
        with self._lock:
            if self._opened is None:
                self._key = read_key(self.base_url, self._key_file)
                self._opened = connect_client(self.base_url, self._key[0], self.timeout, self.retries)
                # not `__del__`, which the garbage collector may call after it has found a socket that is not closed
                self._end = weakref.finalize(self, self._opened.close)
            return self._opened

    def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        with self._lock:
            if self._opened is not None:
                self._end()
                self._opened = None

    def complete(
        self, messages: Sequence[Message], schema: Options = None, parameters: Options = None, sample_index: int = 0
    ) -> Completion:
        """Send one request.

        Args:
            messages: the conversation so far.
            schema: the form of the answer.
            parameters: sent unchanged, as in `{"temperature": 0, "max_tokens": 200}`.
            sample_index: sent as `seed` unless it is 0 or the parameters have a seed.

        Returns:
            The answer; `data` is `None` if it does not have the form. `milliseconds` is measured, with the
            pauses of retries.

        Raises:
            ModelAccessError: if the server would refuse any retry as well.
            ContextLengthError: if the messages are too long for the model.
            ModelUnavailableError: if there was no answer, after all retries.
            MissingDependencyError: if `openai` is not installed.
        """
        openai, client = import_openai(), self._client
        wanted = {**({"seed": sample_index} if sample_index else {}), **(parameters or {})}
        while True:
            form = "" if schema is None else self._forms[0]
            fields = {} if schema is None else constrain(schema, form)
            instructed = messages if schema is None else instruct(messages, schema, form, self._enforces)
            sent = [{"role": role, "content": without_surrogates(content)} for role, content in instructed]
            own = {second: value for name, value in wanted.items() if (second := self._names.get(name, name))}
            own |= {name: min(value, own[name]) for name, value in self._limits.items() if name in own}
            started = time.perf_counter()
            try:
                reply = client.chat.completions.create(model=self.name, messages=sent, extra_body={**fields, **own})
                break
            except (openai.OpenAIError, ValueError, TypeError, RecursionError) as error:  # also of the client's parser
                found = read_error(error)
                if not (
                    self._drops(found, form if fields else "") or self._lowers(found, own) or self._renames(found, own)
                ):
                    # its own chain may hold the key
                    raise translate_error(found, self.name, self.base_url, self._key, self.models) from None
        called = function_name(schema) if schema is not None and form == TOOL else None
        answer = read_reply(reply, sent, round((time.perf_counter() - started) * 1000), called, schema)
        if schema is None:
            return answer
        data = read_answer(answer.text, schema).data
        if data is None and answer.finish == "stop" and form == "json_schema":
            self._enforces = False  # the next request, which says why this answer is no use, has the schema in words
        return replace(answer, data=data)

    def _drops(self, error: ServerError, form: str) -> bool:
        """Whether the form of the answer was refused, which is then not used again."""
        if not form or self.form != "auto" or not error.is_form_refusal:
            return False
        self._forms = [other for other in self._forms if other != form]  # another thread may have dropped it already
        return True

    def _lowers(self, error: ServerError, sent: Mapping[str, Any]) -> bool:
        """Whether a limit of tokens was too large, which is then the largest that the server takes."""
        limit = find_limit(error, sent)
        if limit is None:
            return False
        name, most = limit
        self._limits = {**self._limits, name: most}
        if self._note is not None:
            self._note(f"{self.name!r} at {self.base_url}: sends `{name}` {most} for {sent[name]}, its largest")
        return True

    def _renames(self, error: ServerError, sent: Mapping[str, Any]) -> bool:
        """Whether a parameter was refused, which is then renamed or left out."""
        refused = find_refused(error, sent)
        if refused is None:
            return False
        original = next((first for first, now in self._names.items() if now == refused), refused)
        second = RENAMED.get(refused) if original == refused else None
        self._names = {**self._names, original: second}
        if self._note is not None:
            done = f"leaves out `{refused}`" if second is None else f"sends `{second}` for `{refused}`"
            self._note(f"{self.name!r} at {self.base_url}: {done}, which the server refuses")
        return True

    def models(self) -> list[str]:
        """The names of the server's models; empty if it has no such list."""
        openai, client = import_openai(), self._client
        try:
            return sorted(str(model.id) for model in client.with_options(max_retries=0).models.list())
        except (openai.OpenAIError, ValueError, TypeError, AttributeError, RecursionError):
            return []  # not every server has this list, which only completes an error message


def read_reply(
    reply: Any,
    sent: Sequence[Mapping[str, str]],
    milliseconds: int,
    called: str | None = None,
    schema: Mapping[str, Any] | None = None,
) -> Completion:
    """Read a server's reply.

    Args:
        reply: the client's object.
        sent: the messages of the request, for an estimate of their tokens.
        milliseconds: the time from the request to the reply.
        called: the function whose call is the answer; its arguments follow the text.
        schema: the form of the answer. Servers that take thoughts apart sometimes take the answer for one: thoughts
            that end with an answer of this form are the text where there is no other.
    """
    choices = getattr(reply, "choices", None)
    choice = choices[0] if isinstance(choices, (list, tuple)) and choices else None
    message = getattr(choice, "message", None)
    text = without_surrogates(read_content(getattr(message, "content", None)))
    if call := _read_call(message, called):
        text = f"{without_thoughts(text)}\n{call}".strip()
    if len(text) > LONGEST_REPLY:
        text = without_thoughts(text)[:LONGEST_REPLY]
    reason = getattr(choice, "finish_reason", None)
    finish = _FINISHES.get(reason.lower(), "stop") if isinstance(reason, str) else "stop"
    refusal = getattr(message, "refusal", None)
    if isinstance(refusal, str) and refusal:
        text, finish = text or without_surrogates(refusal), "refusal"
    elif schema is not None and finish == "stop" and not without_thoughts(text):
        thoughts = (without_surrogates(read_content(getattr(message, name, None))) for name in _THOUGHTS)
        text = next((thought for thought in thoughts if ends_with_answer(thought[-LONGEST_REPLY:], schema)), text)
        finish = finish if text.strip() else "empty"
    elif not text.strip() and finish == "stop":
        finish = "empty"
    elif finish == "length" and not without_thoughts(text):
        finish = "thinking"
    counts = getattr(reply, "usage", None)
    tokens_in = _read_count(getattr(counts, "prompt_tokens", None))
    tokens_out = _read_count(getattr(counts, "completion_tokens", None))
    cached = _read_count(getattr(getattr(counts, "prompt_tokens_details", None), "cached_tokens", None))
    if tokens_in is None:
        tokens_in = count_tokens(message["content"] for message in sent)
    usage = Usage(1, tokens_in, count_tokens([text]) if tokens_out is None else tokens_out, milliseconds)
    return Completion(text, None, usage, finish, min(cached or 0, tokens_in))


def _read_call(message: Any, called: str | None) -> str:
    """The arguments of all calls of a function, which an answer has one of; empty without a call."""
    calls = getattr(message, "tool_calls", None)
    functions = [getattr(call, "function", None) for call in calls] if called and isinstance(calls, list) else []
    found = [read_arguments(getattr(one, "arguments", "")) for one in functions if getattr(one, "name", None) == called]
    return without_surrogates("\n".join(map(read_content, found)))


def _read_count(count: Any) -> int | None:
    """A number of tokens, `None` if it is none."""
    return int(count) if is_number(count) and 0 <= count <= MOST_TOKENS else None
