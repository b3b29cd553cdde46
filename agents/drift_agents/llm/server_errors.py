"""Errors of the client, as errors of this package.

* `translate_error` - any error
* `is_form_refusal` - whether the form of the answer alone was refused
* `is_unreachable` - whether no connection was made
* `message_of`, `remove_secret` - a server's message, and without the key
* `read_retry_after` - the pause that a server requests
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from drift_agents.errors import (
    ContextLengthError,
    ModelAccessError,
    ModelError,
    ModelUnavailableError,
    ServerUnreachableError,
)
from drift_agents.llm.answer_format import without_surrogates
from drift_agents.llm.connection import import_httpx

_TOO_LONG = re.compile(
    r"context[_ ](?:length|size|window)|maximum context|exceeds? the available context"
    r"|too many tokens|prompt is too long",
    re.IGNORECASE,
)
_FORM = re.compile(r"response_format|json_schema|json_object|structured.?output|guided|grammar|logprobs", re.IGNORECASE)
_TRANSIENT = frozenset({408, 409, 425, 429})
_LONGEST_QUOTE = 300
"""Characters of a server's message that are quoted."""


def is_unreachable(error: Exception) -> bool:
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
    message = remove_secret(message_of(error), secret)
    status = getattr(error, "status_code", None)
    if status is None and is_unreachable(error):
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
    return getattr(error, "status_code", None) in (400, 422, 501) and bool(_FORM.search(message_of(error)))


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


def message_of(error: Exception) -> str:
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
