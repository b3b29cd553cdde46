"""Replies and errors of servers with the chat-completions protocol.

* `read_reply` - a reply as a completion; no client checks its types, so what is missing or of another type is empty
  or estimated
* `translate_error` - any error of the client, as an error of this package
* `is_transient`, `is_form_refusal` - whether a retry may succeed, and whether the form of the answer was refused
* `find_refused` - the parameter that a server refuses
* `message_of` - the server's message

Servers give no codes for most refusals, so they are recognised by their words; all of these stand at the top.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from drift_agents.errors import (
    ContextLengthError,
    ModelAccessError,
    ModelError,
    ModelUnavailableError,
    ServerUnreachableError,
)
from drift_agents.llm.answer_format import without_surrogates, without_thoughts
from drift_agents.llm.base import Completion, count_tokens
from drift_agents.types import Usage
from drift_envs.checks import is_number

_TOO_LONG = re.compile(
    r"context[_ ](?:length|size|window)|maximum context|exceeds? the available context"
    r"|too many tokens|prompt is too long",
    re.IGNORECASE,
)
_FORM = re.compile(r"response_format|json_schema|json_object|structured.?output|guided|grammar", re.IGNORECASE)
_PARAMETER = re.compile(
    r"unsupported|not support|unknown|unrecogni[sz]ed|unexpected|not permitted|not allowed|extra (?:inputs|fields)"
    r"|invalid (?:parameter|argument|field|json payload)|cannot find field|deprecated|only the default|not available",
    re.IGNORECASE,
)
_QUOTA = ("insufficient_quota", "billing_hard_limit_reached")
_FINISHES = {"length": "length", "content_filter": "refusal"}

LONGEST_REPLY = 100_000
"""Characters of a reply; what follows is cut."""
MOST_TOKENS = 10**9
"""Tokens of one reply that are believed; any other count is replaced by an estimate."""
_LONGEST_QUOTE = 300
"""Characters of a server's message that are quoted."""


def read_reply(
    reply: Any, sent: Sequence[Mapping[str, str]], milliseconds: int, called: str | None = None
) -> Completion:
    """Read a server's reply.

    Args:
        reply: the client's object.
        sent: the messages of the request, for an estimate of their tokens.
        milliseconds: the time from the request to the reply.
        called: the function whose call is the answer; its arguments follow the text.
    """
    choices = getattr(reply, "choices", None)
    choice = choices[0] if isinstance(choices, (list, tuple)) and choices else None
    message = getattr(choice, "message", None)
    text = without_surrogates(_read_content(getattr(message, "content", None)))
    if call := _read_call(message, called):
        text = f"{without_thoughts(text)}\n{call}".strip()
    if len(text) > LONGEST_REPLY:
        text = without_thoughts(text)[:LONGEST_REPLY]
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


def _read_content(content: Any) -> str:
    """The text of a message: one text, or the texts of a list of parts."""
    if not isinstance(content, (list, tuple)):
        return content if isinstance(content, str) else ""
    texts = (part.get("text") if isinstance(part, Mapping) else part for part in content)
    return "".join(text for text in texts if isinstance(text, str))


def _read_call(message: Any, called: str | None) -> str:
    """The arguments of all calls of a function, which an answer has one of; empty without a call."""
    calls = getattr(message, "tool_calls", None)
    functions = [getattr(call, "function", None) for call in calls] if called and isinstance(calls, list) else []
    found = [getattr(one, "arguments", None) for one in functions if getattr(one, "name", None) == called]
    return without_surrogates("\n".join(text for text in found if isinstance(text, str)))


def _read_count(count: Any) -> int | None:
    """A number of tokens, `None` if it is none."""
    return int(count) if is_number(count) and 0 <= count <= MOST_TOKENS else None


def translate_error(
    error: Exception, model: str, base_url: str, key: tuple[str, str], list_models: Callable[[], list[str]]
) -> ModelError:
    """Translate an error of the client into one of this package.

    Args:
        error: the client's error.
        model: the model's name.
        base_url: the server's address.
        key: the key, which servers often repeat in their messages, and the place from which it was read.
        list_models: returns the names of the server's models; called for an unknown one alone.

    Returns:
        The error to raise: `ModelAccessError` if any retry would be refused as well, `ContextLengthError`, or
        `ModelUnavailableError` if there was no answer.
    """
    secret, place = key
    message = _without_secret(message_of(error), secret)
    status = getattr(error, "status_code", None)
    if _is_unreachable(error):
        return ServerUnreachableError(f"no server answers at {base_url}, is it running? {message}")
    if status is None:  # a connection error, a time-out, or a body that is incomplete
        return ModelUnavailableError(f"{base_url} gave no answer that can be read: {message}")
    if status in (400, 413, 422) and (_code_of(error) == "context_length_exceeded" or _TOO_LONG.search(message)):
        return ContextLengthError(f"the prompt is too long for {model!r}: {message}")
    if status in (401, 403):
        return ModelAccessError(f"{base_url} refuses the key from {place} (status {status}): {message}")
    if status == 404:
        names = list_models()
        hint = f"The server has: {', '.join(names[:20])}" if names else "Is there `/v1` at the end of the address?"
        return ModelAccessError(f"{base_url} has no model {model!r} (status 404): {message}. {hint}")
    if is_transient(error):
        return ModelUnavailableError(f"{base_url} answers with status {status}: {message}")
    what = "says that the quota is used up" if status == 429 else "refuses the request"
    return ModelAccessError(f"{base_url} {what} (status {status}): {message}")


def is_transient(error: Exception) -> bool:
    """Whether a retry may succeed."""
    status = getattr(error, "status_code", None)
    if status is None:
        return not _is_unreachable(error)
    return (status in (408, 409, 429) and _code_of(error) not in _QUOTA) or status >= 500


def _is_unreachable(error: Exception) -> bool:
    """Whether no connection was made at all."""
    return type(error.__cause__).__name__ in ("ConnectError", "ConnectTimeout")


def _code_of(error: Exception) -> object:
    return getattr(error, "code", None) or getattr(error, "type", None)


def is_form_refusal(error: Exception) -> bool:
    """Whether the server refused the form of the answer, not the request."""
    return getattr(error, "status_code", None) in (400, 422, 501) and bool(_FORM.search(message_of(error)))


def find_refused(error: Exception, sent: Collection[str]) -> str | None:
    """The parameter that a server refuses, `None` if it refuses none that was sent.

    Args:
        error: the client's error.
        sent: the names of the request's parameters.
    """
    message = message_of(error)
    if getattr(error, "status_code", None) not in (400, 422) or not _PARAMETER.search(message):
        return None
    parameter = getattr(error, "param", None)
    # `max_completion_tokens` is often named as the alternative, so the first one in the message counts.
    found = {name: match.start() for name in sent if (match := re.search(rf"(?<!\w){re.escape(name)}\b", message))}
    return next((name for name in sent if name == parameter), min(found, key=lambda name: found[name], default=None))


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


def _without_secret(text: str, secret: str) -> str:
    """The text on one line, without the key, cut after 300 characters."""
    text = without_surrogates(text)
    text = " ".join((text.replace(secret, "***") if secret else text).split())
    return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}..."
