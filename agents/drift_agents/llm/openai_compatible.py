"""A model behind a server with the chat-completions protocol: OpenAI, Anthropic, Gemini, vLLM, Ollama, llama.cpp.

* `OpenAICompatible` - one request, one exchange with the server

The only retries here concern what a server refuses: a form of the answer, after which the next form is requested,
and parameters, which are renamed or left out. `drift_agents.llm.retry` retries after failures,
`drift_agents.llm.reask` after invalid answers.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from drift_agents.checks import check_choice, is_number
from drift_agents.errors import ArgumentError, ModelAccessError, ModelError
from drift_agents.llm.answer_format import (
    ALL_FORMS,
    FORMS,
    OWN_FORMS,
    constrain,
    instruct,
    read_answer,
    without_surrogates,
    without_thoughts,
)
from drift_agents.llm.base import Completion, Message
from drift_agents.llm.connection import CONNECT_SECONDS, ConnectionPool, import_httpx, import_openai
from drift_agents.llm.constraint import choose_by_probability, only_choice
from drift_agents.llm.request_parameters import ServerParameters
from drift_agents.llm.server_access import KEY_VARIABLES, OPENAI, KeySource, check_url, default_url, find_key_source
from drift_agents.llm.server_errors import is_form_refusal, is_unreachable, message_of, translate_error
from drift_agents.llm.server_replies import read_probabilities, read_reply

LONGEST_REPLY = 100_000
"""Characters of a reply; what follows is cut and counted."""
NO_KEY = "none"
"""Sent where there is no key: the client requires one, local servers accept any."""

LOADING = 503
"""The status of llama.cpp while it loads a model; the kind of server is found when it is ready."""


class OpenAICompatible:
    """One request, one exchange with a server that has the chat-completions protocol.

    Args:
        model: the server's name for the model.
        base_url: the server's address, as in `http://127.0.0.1:8000/v1`; `OPENAI_BASE_URL` if not given, or OpenAI's
            own.
        key: the source of its key, which is read at the first request and never shown.
        form: the form of answers, one of `drift_agents.llm.answer_format.ALL_FORMS`; `auto` finds the first one that
            the server supports.
        timeout: seconds to wait for an answer.
        pool: connections that several models share.
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
        key: KeySource | None = None,
        form: str = "auto",
        timeout: float = 120.0,
        pool: ConnectionPool | None = None,
        note: Callable[[str], None] | None = None,
    ) -> None:
        if not isinstance(model, str) or not model:
            raise ArgumentError(f"`model` should be the name of a model. Received {model!r}")
        check_choice("form", form, ("auto", *ALL_FORMS))
        if not is_number(timeout) or not 0 < timeout < math.inf:
            raise ArgumentError(f"`timeout` should be a positive number of seconds. Received {timeout!r}")
        self.name, self.form, self.timeout = model, form, float(timeout)
        self.base_url = check_url(default_url() if base_url is None else base_url)
        self._key = find_key_source(self.base_url) if key is None else key
        self._pool = ConnectionPool(self.timeout) if pool is None else pool
        self._note = note
        self._server = ServerParameters()
        self.cut = 0
        """Replies that were cut since they were too long."""
        self._lock = threading.Lock()
        self._client: Any = None
        self._secret = ""
        self._forms: list[str] | None = None if form == "auto" else [form]

    def __repr__(self) -> str:
        """Name and address, without the key."""
        return f"{type(self).__name__}({self.name!r}, base_url={self.base_url!r})"

    @property
    def identity(self) -> Mapping[str, Any]:
        """The part of the key of recorded replies that stands for the model."""
        return {"base_url": self.base_url, "model": self.name, "form": self.form}

    def complete(
        self,
        messages: Sequence[Message],
        schema: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        sample_index: int = 0,
    ) -> Completion:
        """Send one request.

        Args:
            messages: the conversation so far.
            schema: the form of the answer.
            parameters: sent unchanged, as in `{"temperature": 0, "max_tokens": 200}`.
            sample_index: sent as `seed` unless it is 0 or the parameters have a seed.

        Returns:
            The answer; `data` is `None` if it does not have the form. `milliseconds` is measured.

        Raises:
            ModelAccessError: if the server would refuse any retry as well.
            ContextLengthError: if the messages are too long for the model.
            ModelUnavailableError: if a retry may succeed.
            MissingDependencyError: if `openai` is not installed.
        """
        extra = {**({"seed": sample_index} if sample_index else {}), **(parameters or {})}
        if schema is None:
            return self._exchange(messages, {}, extra)
        while True:
            form, fields = self._choose_form(schema)
            try:
                answer = self._exchange(instruct(messages, schema, form), fields, extra, schema)
            except _FormRefusedError:
                self._drop_form(form)
                continue
            return replace(answer, data=read_answer(answer.text, schema)[0])

    def _choose_form(self, schema: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """The first form that the server supports and that can express the schema, with its fields."""
        forms = self._forms or self._find_forms()
        for form in forms:
            fields = constrain(schema, form)
            if fields is not None:
                return form, fields
        return "text", {}

    def _find_forms(self) -> list[str]:
        """The forms to try, from the owner that the server's list of models names."""
        self._connect()
        openai = import_openai()
        own: list[str] = []
        if urlsplit(self.base_url).hostname not in ("api.openai.com", *KEY_VARIABLES):
            try:
                listed = list(self._client.with_options(timeout=CONNECT_SECONDS).models.list())
                owners = {str(getattr(model, "owned_by", "")) for model in listed}
                own = [form for owner, form in OWN_FORMS.items() if owner in owners]
            except openai.APIConnectionError as error:
                if is_unreachable(error):
                    raise self._translate(error) from None
            except (openai.OpenAIError, ValueError, TypeError, AttributeError, RecursionError) as error:
                if getattr(error, "status_code", None) == LOADING:
                    raise self._translate(error) from None
                own = []  # not every server has this list
        with self._lock:
            if self._forms is None:
                self._forms = [*own, *FORMS]
            return self._forms

    def _drop_form(self, form: str) -> None:
        with self._lock:  # another thread may have dropped it already
            if self._forms is not None and form in self._forms:
                self._forms = [other for other in self._forms if other != form]

    def _exchange(
        self,
        messages: Sequence[Message],
        fields: Mapping[str, Any],
        parameters: Mapping[str, Any],
        schema: Mapping[str, Any] | None = None,
    ) -> Completion:
        openai = import_openai()
        create = self._connect()
        sent = [{"role": role, "content": without_surrogates(content)} for role, content in messages]
        started = time.perf_counter()
        while True:
            body = self._server.apply({**parameters, **fields})
            named = {name: value for name, value in body.items() if name not in fields or name in parameters}
            try:
                reply = create(model=self.name, messages=sent, extra_body=body)
            except openai.OpenAIError as error:
                if fields and self.form == "auto" and is_form_refusal(error):
                    raise _FormRefusedError from error
                if self._learn(error, named):
                    continue
                raise self._translate(error) from None  # its own chain may hold the key
            except (ValueError, TypeError, RecursionError) as error:  # of the client's parser: no reply of the protocol
                raise self._translate(error) from None
            break
        answer = read_reply(reply, sent, round((time.perf_counter() - started) * 1000))
        if "logprobs" in fields and schema is not None:
            return self._choose(answer, reply, schema)
        if len(answer.text) > LONGEST_REPLY:
            with self._lock:
                self.cut += 1
            short = without_thoughts(answer.text)[:LONGEST_REPLY]
            return replace(answer, text=short, finish="length" if answer.finish == "stop" else answer.finish)
        return answer

    def _choose(self, answer: Completion, reply: Any, schema: Mapping[str, Any]) -> Completion:
        """The most probable admissible value as the answer."""
        choice, tokens = only_choice(schema), read_probabilities(reply)
        value = None if choice is None or not tokens else choose_by_probability(choice.values, tokens)
        if value is None and self.form == "auto":  # no log-probabilities, or the model thinks first
            raise _FormRefusedError
        if choice is None or value is None:
            return answer
        return replace(answer, text=json.dumps({choice.name: value}, ensure_ascii=False), finish="stop")

    def _learn(self, error: Exception, sent: Mapping[str, Any]) -> bool:
        """Whether a parameter was refused, which is then renamed or left out."""
        if getattr(error, "status_code", None) not in (400, 422):
            return False
        note = self._server.learn(message_of(error), sent, getattr(error, "param", None))
        if note is not None and self._note is not None:
            self._note(f"{self.name!r} at {self.base_url}: {note}")
        return note is not None

    def _connect(self) -> Callable[..., Any]:
        """The client's method; the client is made at the first request, since recorded replies need no key."""
        with self._lock:
            if self._client is None:
                openai = import_openai()
                self._secret = self._key.read() or ""
                if not self._secret and self.base_url == OPENAI:
                    raise ModelAccessError(
                        f"{self.base_url} needs a key: {self._key.describe()} is not set. Set it, or name a file with "
                        "--key-file; a server of your own is named with --base-url"
                    )
                self._client = openai.OpenAI(
                    api_key=self._secret or NO_KEY,
                    base_url=self.base_url,
                    timeout=import_httpx().Timeout(self.timeout, connect=min(CONNECT_SECONDS, self.timeout), pool=None),
                    max_retries=0,
                    http_client=self._pool.client(),
                )
            create: Callable[..., Any] = self._client.chat.completions.create
            return create

    def _translate(self, error: Exception) -> ModelError:
        return translate_error(error, self.name, self.base_url, self._secret, self._key.describe(), self.models)

    def models(self) -> list[str]:
        """The names of the server's models; empty if it has no such list."""
        openai = import_openai()
        self._connect()
        try:
            return sorted(without_surrogates(model.id) for model in self._client.models.list())
        except (openai.OpenAIError, ValueError, TypeError, AttributeError, RecursionError):
            return []  # not every server has this list, which only completes an error message


class _FormRefusedError(Exception):
    """The server does not support this form of answer."""
