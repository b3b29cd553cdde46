"""What goes wrong with a server, in words that say what to do.

* `translate` - an error of the client as one of ours
* `refuses_form` - whether a server refused only the form in which it was told to answer
* `scrub` - a text without the key
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from drift_agents.errors import ContextLengthError, ModelAccessError, ModelError, ModelUnavailableError

_TOO_LONG = re.compile(
    r"context[_ ](?:length|size|window)|maximum context|exceeds? the available context"
    r"|too many tokens|prompt is too long",
    re.IGNORECASE,
)
_FORM = re.compile(r"response_format|json_schema|json_object|structured output|grammar", re.IGNORECASE)
_TRANSIENT = frozenset({408, 409, 425, 429})
_LONGEST = 300
"""Characters of a server's own words that are quoted."""


def translate(
    error: Exception,
    model: str,
    base_url: str,
    secret: str,
    key: str,
    known: Callable[[], list[str]],
) -> ModelError:
    """An error of the client as one of ours.

    Args:
        error: what the client raised.
        model: the model's name.
        base_url: where the server is.
        secret: the key, which servers like to repeat in their messages.
        key: where the key comes from.
        known: the names of the models that the server knows; called for an unknown one alone.

    Returns:
        What to raise: `ModelAccessError` for what would be refused again, `ContextLengthError`, or
        `ModelUnavailableError` for what may pass.
    """
    said = scrub(_words(error), secret)
    status = getattr(error, "status_code", None)
    if status is None:
        # No answer at all, or one that cannot be read: the line, a time-out, half a body.
        return ModelUnavailableError(f"{base_url} gave no answer that can be read: {said}")
    if status in (400, 413, 422) and (_code(error) == "context_length_exceeded" or _TOO_LONG.search(said)):
        return ContextLengthError(f"the prompt is too long for {model!r}: {said}")
    if status in (401, 403):
        return ModelAccessError(f"{base_url} refuses the key from {key} (status {status}): {said}")
    if status == 404:
        names = known()
        there = f"The server has: {', '.join(names[:20])}" if names else "Is there `/v1` at the end of the address?"
        return ModelAccessError(f"{base_url} has no model {model!r} (status 404): {said}. {there}")
    if status == 429 and _code(error) in ("insufficient_quota", "billing_hard_limit_reached"):
        return ModelAccessError(f"{base_url} gives no more, the quota is used up (status 429): {said}")
    if status in _TRANSIENT or status >= 500:
        headers = getattr(getattr(error, "response", None), "headers", {})
        return ModelUnavailableError(
            f"{base_url} answers with status {status}: {said}", retry_after(headers), is_limit=status == 429
        )
    return ModelAccessError(f"{base_url} refuses the request (status {status}): {said}")


def refuses_form(error: Exception) -> bool:
    """Whether a server refused only the form in which it was told to answer."""
    return getattr(error, "status_code", None) in (400, 422, 501) and bool(_FORM.search(_words(error)))


def scrub(text: str, secret: str) -> str:
    """A text without the key, in one line, cut when it is long.

    Example:
        >>> scrub("Incorrect key: sk-12345678", "sk-12345678")
        'Incorrect key: ***'
    """
    text = " ".join((text.replace(secret, "***") if secret else text).split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds after which a server asks to be tried again, `None` if it does not say.

    Args:
        headers: of its answer: `retry-after-ms`, or `retry-after` in seconds or as a date.

    Example:
        >>> retry_after({"retry-after": "2"}), retry_after({})
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


def _code(error: Exception) -> Any:
    return getattr(error, "code", None) or getattr(error, "type", None)


def _words(error: Exception) -> str:
    """What the server or the line said, without the client's wrapping."""
    body = getattr(error, "body", None)
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        if isinstance(inner, Mapping) and isinstance(inner.get("message"), str):
            return str(inner["message"])
        return str(inner)
    cause = error.__cause__
    return f"{error} ({type(cause).__name__}: {cause})" if cause is not None and str(cause) else str(error)
