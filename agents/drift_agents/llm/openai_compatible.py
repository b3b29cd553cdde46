"""A model behind a server with the chat-completions protocol: OpenAI's, vLLM, Ollama, llama.cpp.

* `OpenAICompatible` - one request, one exchange with the server
* `OPENAI` - the address of OpenAI's own server
* `KeySource` - where the server's key is read from
* `translate_error`, `is_form_refusal`, `read_retry_after` - errors of the client, as errors of this package

The only retry here concerns the form of the answer: a server without JSON schemas is sent a request for JSON, one
without JSON a request for text with tags. `drift_agents.llm.retry` retries after failures, `drift_agents.llm.reask`
after invalid answers.
"""

from __future__ import annotations

import math
import os
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from drift_agents.checks import check_choice, is_number
from drift_agents.errors import (
    ArgumentError,
    ContextLengthError,
    MissingDependencyError,
    ModelAccessError,
    ModelError,
    ModelUnavailableError,
)
from drift_agents.llm.answer_format import FORMS, instruct, read_answer, response_format
from drift_agents.llm.base import Completion, Message, count_tokens
from drift_agents.types import Usage

OPENAI = "https://api.openai.com/v1"
"""The address of OpenAI's own server."""
NO_KEY = "none"
"""Sent where there is no key: the client requires one, local servers accept any."""

_FINISHES = {"length": "length", "content_filter": "refusal"}
_TOO_LONG = re.compile(
    r"context[_ ](?:length|size|window)|maximum context|exceeds? the available context"
    r"|too many tokens|prompt is too long",
    re.IGNORECASE,
)
_FORM = re.compile(r"response_format|json_schema|json_object|structured output|grammar", re.IGNORECASE)
_TRANSIENT = frozenset({408, 409, 425, 429})
_LONGEST_QUOTE = 300
"""Characters of a server's message that are quoted."""


class KeySource:
    """Where a server's key is read from. The object does not hold the key.

    Args:
        variable: the name of an environment variable.
        file: a file with the key and nothing else, instead.

    Example:
        >>> KeySource("A_VARIABLE_THAT_IS_NOT_SET").read() is None
        True
    """

    def __init__(self, variable: str = "OPENAI_API_KEY", file: str | os.PathLike[str] | None = None) -> None:
        self.variable, self.file = variable, None if file is None else Path(file)

    def describe(self) -> str:
        """Name the place, for messages."""
        return f"the environment variable {self.variable}" if self.file is None else f"the file {self.file}"

    def read(self) -> str | None:
        """Return the key, `None` if there is none.

        Raises:
            ModelAccessError: if the file cannot be read, or does not hold one word.
        """
        if self.file is None:
            return os.environ.get(self.variable, "").strip() or None
        try:
            words = self.file.read_text("utf-8").split()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "is not UTF-8"
            raise ModelAccessError(f"{self.file}: the key cannot be read: {reason}") from error
        if len(words) != 1:
            raise ModelAccessError(f"{self.file}: should hold a key and nothing else. Received {len(words)} words")
        return words[0]


class OpenAICompatible:
    """One request, one exchange with a server that has the chat-completions protocol.

    Args:
        model: the server's name for the model.
        base_url: the server's address, as in `http://127.0.0.1:8000/v1`; OpenAI's own if not given.
        key: the source of its key, which is read at the first request and never shown.
        form: the form of answers, one of `drift_agents.llm.answer_format.FORMS`; `auto` finds the first of them
            that the server supports.
        timeout: seconds to wait for an answer.

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
    ) -> None:
        if not isinstance(model, str) or not model:
            raise ArgumentError(f"`model` should be the name of a model. Received {model!r}")
        check_choice("form", form, ("auto", *FORMS))
        if not is_number(timeout) or not 0 < timeout < math.inf:
            raise ArgumentError(f"`timeout` should be a positive number of seconds. Received {timeout!r}")
        self.name, self.form, self.timeout = model, form, float(timeout)
        self.base_url = check_url(OPENAI if base_url is None else base_url)
        self._key = KeySource() if key is None else key
        self._lock = threading.Lock()
        self._client: Any = None
        self._secret = ""
        self._supported_form = FORMS[0] if form == "auto" else form

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
            return self._exchange(messages, None, extra)
        while True:
            form = self._supported_form
            try:
                answer = self._exchange(instruct(messages, schema, form), response_format(schema, form), extra)
            except _FormRefusedError:
                with self._lock:  # another thread may have taken the next form already
                    if self._supported_form == form:
                        self._supported_form = FORMS[FORMS.index(form) + 1]
                continue
            return replace(answer, data=read_answer(answer.text, schema)[0])

    def _exchange(
        self, messages: Sequence[Message], form: Mapping[str, Any] | None, parameters: Mapping[str, Any]
    ) -> Completion:
        openai = import_openai()
        create = self._connect()
        body = {**parameters, **({} if form is None else {"response_format": form})}
        sent = [message._asdict() for message in messages]
        started = time.perf_counter()
        try:
            reply = create(model=self.name, messages=sent, extra_body=body)
        except openai.OpenAIError as error:
            if form is not None and self.form == "auto" and is_form_refusal(error):
                raise _FormRefusedError from error
            raise self._translate(error) from None  # its own chain may hold the key
        except (ValueError, TypeError) as error:  # of the client's parser, for a body that is not the protocol's
            raise self._translate(error) from None
        return _read_reply(reply, sent, round((time.perf_counter() - started) * 1000))

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
                    api_key=self._secret or NO_KEY, base_url=self.base_url, timeout=self.timeout, max_retries=0
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
            return sorted(model.id for model in self._client.models.list())
        except (openai.OpenAIError, ValueError, TypeError, AttributeError):
            return []  # not every server has this list, which only completes an error message


class _FormRefusedError(Exception):
    """The server does not support this form of answer."""


def import_openai() -> Any:
    """Import `openai`.

    Raises:
        MissingDependencyError: if it is not installed.
    """
    try:
        import openai
    except ImportError as error:
        raise MissingDependencyError(
            '`openai` is not installed, run `pip install "drift-envs[llm]"`. Recorded replies need no server: --replay'
        ) from error
    return openai


def check_url(url: str) -> str:
    """Return the address of a server, without a slash at its end.

    Raises:
        ArgumentError: if it is not an address, or contains a key: addresses are written into a run's folder.
    """
    parts = urlsplit(url) if isinstance(url, str) else None
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise ArgumentError(f"`base_url` should be an address, as in http://127.0.0.1:8000/v1. Received {url!r}")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ArgumentError(
            f"`base_url` should have no user, password or query: it is written down. "
            f"Received one for {parts.hostname}. Give the key by the environment or a file"
        )
    return url.rstrip("/")


def _read_reply(reply: Any, sent: Sequence[Mapping[str, str]], milliseconds: int) -> Completion:
    """Read a server's reply; missing texts are empty, missing token counts are estimated."""
    choices = getattr(reply, "choices", None) or [None]
    message = getattr(choices[0], "message", None)
    text = getattr(message, "content", None) or ""
    finish = _FINISHES.get(getattr(choices[0], "finish_reason", None) or "", "stop")
    refusal = getattr(message, "refusal", None)
    if refusal:
        text, finish = text or str(refusal), "refusal"
    elif not text.strip() and finish == "stop":
        finish = "empty"
    counts = getattr(reply, "usage", None)
    tokens_in, tokens_out = getattr(counts, "prompt_tokens", None), getattr(counts, "completion_tokens", None)
    usage = Usage(
        1,
        count_tokens(message["content"] for message in sent) if tokens_in is None else int(tokens_in),
        count_tokens([text]) if tokens_out is None else int(tokens_out),
        milliseconds,
    )
    return Completion(text, None, usage, finish)


def translate_error(
    error: Exception,
    model: str,
    base_url: str,
    secret: str,
    key: str,
    list_models: Callable[[], list[str]],
) -> ModelError:
    """Translate an error of the client into one of this package.

    Args:
        error: the client's error.
        model: the model's name.
        base_url: the server's address.
        secret: the key, which servers often repeat in their messages.
        key: where the key is read from.
        list_models: returns the names of the server's models; called for an unknown one alone.

    Returns:
        The error to raise: `ModelAccessError` if any retry would be refused as well, `ContextLengthError`, or
        `ModelUnavailableError` if a retry may succeed.
    """
    message = remove_secret(_message_of(error), secret)
    status = getattr(error, "status_code", None)
    if status is None:  # a connection error, a time-out, or a body that is incomplete
        return ModelUnavailableError(f"{base_url} gave no answer that can be read: {message}")
    if status in (400, 413, 422) and (_code_of(error) == "context_length_exceeded" or _TOO_LONG.search(message)):
        return ContextLengthError(f"the prompt is too long for {model!r}: {message}")
    if status in (401, 403):
        return ModelAccessError(f"{base_url} refuses the key from {key} (status {status}): {message}")
    if status == 404:
        names = list_models()
        hint = f"The server has: {', '.join(names[:20])}" if names else "Is there `/v1` at the end of the address?"
        return ModelAccessError(f"{base_url} has no model {model!r} (status 404): {message}. {hint}")
    if status == 429 and _code_of(error) in ("insufficient_quota", "billing_hard_limit_reached"):
        return ModelAccessError(f"{base_url}: the quota is used up (status 429): {message}")
    if status in _TRANSIENT or status >= 500:
        headers = getattr(getattr(error, "response", None), "headers", {})
        return ModelUnavailableError(
            f"{base_url} answers with status {status}: {message}", read_retry_after(headers), is_limit=status == 429
        )
    return ModelAccessError(f"{base_url} refuses the request (status {status}): {message}")


def is_form_refusal(error: Exception) -> bool:
    """Whether the server refused the form of the answer, not the request."""
    return getattr(error, "status_code", None) in (400, 422, 501) and bool(_FORM.search(_message_of(error)))


def remove_secret(text: str, secret: str) -> str:
    """Replace the key in a text, join its lines, and cut it after 300 characters.

    Example:
        >>> remove_secret("Incorrect key: sk-12345678", "sk-12345678")
        'Incorrect key: ***'
    """
    text = " ".join((text.replace(secret, "***") if secret else text).split())
    return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}..."


def read_retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds after which a server requests a retry, `None` if it gives none.

    Args:
        headers: of its answer: `retry-after-ms`, or `retry-after` in seconds or as a date.

    Example:
        >>> read_retry_after({"retry-after": "2"}), read_retry_after({})
        (2.0, None)
    """
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = headers.get(name)
        if text is None:
            continue
        try:
            seconds = float(text) * scale
        except ValueError:
            try:
                seconds = parsedate_to_datetime(text).timestamp() - time.time()
            except ValueError:
                continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    return None


def _code_of(error: Exception) -> Any:
    return getattr(error, "code", None) or getattr(error, "type", None)


def _message_of(error: Exception) -> str:
    """The message of the server or of the connection, without the client's additions."""
    body = getattr(error, "body", None)
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        if isinstance(inner, Mapping) and isinstance(inner.get("message"), str):
            return str(inner["message"])
        return str(inner)
    cause = error.__cause__
    return f"{error} ({type(cause).__name__}: {cause})" if cause is not None and str(cause) else str(error)
