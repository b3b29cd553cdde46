"""A model behind a server with the chat-completions protocol: OpenAI, Anthropic, Gemini, vLLM, Ollama, llama.cpp.

* `OpenAICompatible` - one request, one exchange with the server
* `OPENAI` - the address of OpenAI's own server
* `KeySource` - where the server's key is read from
* `translate_error`, `is_form_refusal`, `read_retry_after` - errors of the client, as errors of this package

The only retries here concern what a server refuses: a form of the answer, after which the next form is requested,
and parameters, which are renamed or left out. `drift_agents.llm.retry` retries after failures,
`drift_agents.llm.reask` after invalid answers.
"""

from __future__ import annotations

import json
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
    ModelAccessError,
    ModelError,
    ModelUnavailableError,
    ServerUnreachableError,
)
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
from drift_agents.llm.base import Completion, Message, count_tokens
from drift_agents.llm.connection import CONNECT_SECONDS, ConnectionPool, import_httpx, import_openai
from drift_agents.llm.constraint import choose_by_probability, only_choice
from drift_agents.llm.request_parameters import ServerParameters
from drift_agents.types import Usage

OPENAI = "https://api.openai.com/v1"
KEY_VARIABLES: Mapping[str, str] = {
    "api.anthropic.com": "ANTHROPIC_API_KEY",
    "generativelanguage.googleapis.com": "GEMINI_API_KEY",
}
"""Variables with the keys of other servers, by host; they precede `OPENAI_API_KEY`, if they are set."""
LONGEST_REPLY = 100_000
"""Characters of a reply; what follows is cut and counted."""
MOST_TOKENS = 10**9
"""Tokens of one reply that are believed; any other count is replaced by an estimate."""
"""The address of OpenAI's own server."""
NO_KEY = "none"
"""Sent where there is no key: the client requires one, local servers accept any."""

_FINISHES = {"length": "length", "content_filter": "refusal"}
_TOO_LONG = re.compile(
    r"context[_ ](?:length|size|window)|maximum context|exceeds? the available context"
    r"|too many tokens|prompt is too long",
    re.IGNORECASE,
)
_FORM = re.compile(r"response_format|json_schema|json_object|structured.?output|guided|grammar|logprobs", re.IGNORECASE)
_TRANSIENT = frozenset({408, 409, 425, 429})
LOADING = 503
"""The status of llama.cpp while it loads a model; the kind of server is found when it is ready."""
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
                if _is_unreachable(error):
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
        answer = _read_reply(reply, sent, round((time.perf_counter() - started) * 1000))
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
        choice, tokens = only_choice(schema), _read_probabilities(reply)
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
        note = self._server.learn(_message_of(error), sent, getattr(error, "param", None))
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


def default_url() -> str:
    """The address where none is given: that of the environment variable `OPENAI_BASE_URL`, or OpenAI's own."""
    return os.environ.get("OPENAI_BASE_URL", "").strip() or OPENAI


def find_key_source(base_url: str) -> KeySource:
    """Where a server's key is read from, by default: `OPENAI_API_KEY`, or the server's own variable without it.

    Example:
        >>> find_key_source("http://127.0.0.1:8000/v1").variable
        'OPENAI_API_KEY'
    """
    own = KEY_VARIABLES.get(urlsplit(base_url).hostname or "")
    return KeySource() if own is None or not os.environ.get(own) else KeySource(own)


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
    """Read a server's reply. The client checks no types: what is missing or of another type is empty or estimated."""
    choice = _first_choice(reply)
    message = getattr(choice, "message", None)
    text = _read_content(getattr(message, "content", None))
    reason = getattr(choice, "finish_reason", None)
    finish = _FINISHES.get(reason, "stop") if isinstance(reason, str) else "stop"
    refusal = getattr(message, "refusal", None)
    if isinstance(refusal, str) and refusal:
        text, finish = text or without_surrogates(refusal), "refusal"
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


def _first_choice(reply: Any) -> Any:
    choices = getattr(reply, "choices", None)
    return choices[0] if isinstance(choices, (list, tuple)) and choices else None


def _read_content(content: Any) -> str:
    """The text of a message: one text, or the texts of a list of parts."""
    if isinstance(content, str):
        return without_surrogates(content)
    if not isinstance(content, (list, tuple)):
        return ""
    texts = (part.get("text") if isinstance(part, Mapping) else part for part in content)
    return without_surrogates("".join(text for text in texts if isinstance(text, str)))


def _read_count(count: Any) -> int | None:
    """A number of tokens, `None` if it is none."""
    return int(count) if is_number(count) and 0 <= count <= MOST_TOKENS else None


def _read_probabilities(reply: Any) -> list[tuple[str, float]]:
    """Candidates for the first token of a reply, with their log-probabilities; empty without any."""
    tokens = getattr(getattr(_first_choice(reply), "logprobs", None), "content", None)
    top = getattr(tokens[0], "top_logprobs", None) if isinstance(tokens, (list, tuple)) and tokens else None
    found = []
    for candidate in top if isinstance(top, (list, tuple)) else ():
        token, logarithm = getattr(candidate, "token", None), getattr(candidate, "logprob", None)
        if isinstance(token, str) and is_number(logarithm):
            found.append((token, float(logarithm)))
    return found


def _is_unreachable(error: Exception) -> bool:
    """Whether no connection was made at all."""
    httpx = import_httpx()
    return isinstance(error.__cause__, (httpx.ConnectError, httpx.ConnectTimeout))


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
    if status is None and _is_unreachable(error):
        return ServerUnreachableError(f"no server answers at {base_url}: {message}. Is it running?")
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
    text = without_surrogates(text)
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
    if isinstance(body, list) and body:  # Gemini's
        body = body[0]
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        if isinstance(inner, Mapping) and isinstance(inner.get("message"), str):
            return str(inner["message"])
        return str(inner)
    cause = error.__cause__
    return f"{error} ({type(cause).__name__}: {cause})" if cause is not None and str(cause) else str(error)
