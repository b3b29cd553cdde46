"""Errors of servers with the chat-completions protocol, whatever their status and the shape of their body.

Servers give no codes for most refusals, so they are recognised by their words; all of these stand at the top.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from drift_agents.errors import (
    ContextLengthError,
    ModelAccessError,
    ModelError,
    ModelUnavailableError,
    ServerUnreachableError,
)

_TOO_LONG = re.compile(
    # OpenAI, vLLM, SGLang, llama.cpp, LM Studio, Ollama, OpenRouter, Anthropic
    r"context[ _-]?(?:length|size|window|limit|overflow)|maximum context|\bn_ctx\b|context the overflows"
    # vLLM, xAI, TensorRT-LLM, TabbyAPI, Zhipu
    r"|max(?:imum)?[ _](?:prompt|input|sequence|seq|model|num)[ _](?:length|len|tokens)|exceeds max(?:imum)? length"
    # Anthropic, Bedrock, Fireworks, Mistral, llama.cpp
    r"|\b(?:prompt|inputs?|messages?|conversation|tokens)\b[^.]{0,80}?\b(?:is |are |was )?too (?:long|large|big)\b"
    # Gemini, Vertex, Bedrock, Moonshot, GitHub, watsonx
    r"|token (?:count|limit)|tokens exceeded|input tokens?\b.{0,60}(?:exceed|limit|maximum|at most)"
    r"|(?:exceed|maximum|limit).{0,60}(?:input|prompt) (?:tokens|length)|number of tokens allowed"
    # servers of one's own that count: "the prompt has 9 tokens, but at most 8 are allowed"
    r"|\b(?:prompt|inputs?|sequence|request(?:ed)?)\b(?:(?!output|completion)[^.]){0,40}?\b(?:tokens|length)\b"
    r"[^.]{0,40}?(?:exceed|more than|at most|\blimit|\bmax|<=)"
    # Cohere, TGI, Qwen, Groq, Cerebras
    r"|too many (?:input |prompt )?tokens|`inputs` (?:tokens \+|must have)|(?:input|prompt) length\b"
    r"|reduce (?:the length of|your (?:prompt|messages?|input))|string too long|\u8d85\u957f|\u8d85\u9650",
    re.IGNORECASE,
)
_TOO_LONG_CODE = re.compile(
    r"context|too_(?:large|long)|max_prompt|prompt_tokens|tokens_limit|above_max_length", re.IGNORECASE
)
_FORM = re.compile(
    r"response[ _-]?(?:format|schema|mime)|json[ _-]?(?:schema|object|mode|output|validat)|\bschema\b"
    r"|structured[ _-]?(?:output|decod|generat)|guided|grammar|constrained|constraint|output[ _]format"
    r"|failed to generate json|too many states",
    re.IGNORECASE,
)
_PARAMETER = re.compile(
    r"unsupported|not support|unknown|unrecogni[sz]ed|unexpected|not permitted|not allowed|extra (?:inputs|fields)"
    r"|invalid (?:parameter|argument|field|json payload)|cannot find field|deprecated|only the default|not available"
    r"|not enabled|not implemented|unavailable",
    re.IGNORECASE,
)
_BROKEN = re.compile(
    r"fail(?:ed|s|ures?)? (?:to |in )?(?:pars|compil|initiali|build|convert|creat|generat)|invalid|malformed"
    r"|(?:could|can)(?: ?not|n't)|unable"
    r"|error (?:while |in )?(?:pars|compil|initiali|build|convert)|too (?:many|complex)",
    re.IGNORECASE,
)
"""Words by which a server says that it cannot use a form, beside those of `_PARAMETER`."""
_LIMITED = re.compile(r"(?<!\w)max(?:_completion|_output|_new)?_tokens\b", re.IGNORECASE)
_QUOTA = re.compile(r"insufficient[ _](?:quota|balance|credits?|funds)|billing", re.IGNORECASE)
_GUESSES = tuple(
    (status, re.compile(words, re.IGNORECASE))
    for status, words in (
        (402, _QUOTA.pattern),
        (400, r"invalid[ _](?:request|argument|param)|bad[ _]request"),
        (401, r"api[ _-]?key|unauthori[sz]ed|unauthenticated|authenticat|\b(?:sign|log)[ -]?in\b"),
        (403, r"permission|\bforbidden|access denied"),
        (404, r"not[ _]?found|no such model|does not exist|unexpected endpoint"),
        (429, r"rate[ _-]?limit|too[ _]many[ _]requests|exhausted|quota|throttl|slow down"),
        (
            503,
            r"overload|unavailable|temporar|try again|retry|time[ds]?[ _-]?out|deadline|internal|server[ _]error"
            r"|loading|busy|capacity|gateway|upstream|provider returned",
        ),
    )
)
"""Statuses that codes or words mean, where an error has none of its own; any other is 400, which is not retried."""
UNREACHABLE = "unreachable"
"""The code of the error that no connection was made at all."""
_FAILED = ("error", "network_error", "abort", "aborted", "cancelled", "failed", "insufficient_system_resource")
"""Ends of a reply that are errors of the server: OpenRouter, Zhipu, vLLM, SGLang, DeepSeek."""

_WORDS = frozenset(
    (
        *("error", "errors", "message", "msg", "loc", "error_msg", "error_message", "errorMessage", "status_msg"),
        *("error_description", "title", "detail", "raw"),
    )
)
"""Keys of an error with words, or with something that has them."""
_MORE_WORDS = frozenset(("reason", "description", "details", "text"))
"""Keys that count where there are no other words."""
_CODES = frozenset(("code", "status", "status_code", "statusCode", "error_code", "type", "error_type"))
_KEYS = _WORDS | _MORE_WORDS | _CODES | {"param", "metadata", "base_resp"}
_DEEPEST, _MOST_ITEMS = 8, 10
_TAGS = re.compile(r"(?is)<(script|style)\b.*?</\1>|<[^<>]*>")

_LONGEST_QUOTE = 300
"""Characters of a server's message that are quoted."""
_LONGEST_PAGE = 10_000
_LONGEST_WORDS = 4000
"""Characters of a server's message that are read."""


class ServerError(NamedTuple):
    """An error of a server.

    Args:
        status: of HTTP; where the server's is that of a success, the one that its code or its words mean.
        sent: the server's own status; 0 without a response that can be read.
        message: its words.
        codes: its codes, types and names of a status, as one text.
        param: the parameter that it names, empty if it names none.
        is_final: whether no retry is made, whatever the status.
    """

    status: int
    sent: int
    message: str
    codes: str = ""
    param: str = ""
    is_final: bool = False

    @property
    def is_too_long(self) -> bool:
        """Whether the prompt was too long."""
        if self.status in (400, 422) or self.status >= 500:
            return bool(_TOO_LONG_CODE.search(self.codes) or _TOO_LONG.search(self.message))
        return self.status == 413 or (self.status == 429 and "request too large" in self.message.lower())

    @property
    def is_form_refusal(self) -> bool:
        """Whether the form of the answer was refused, not the request."""
        if not _FORM.search(self.message) or self.is_too_long:
            return False
        return self.status in (400, 404, 422) or (
            self.status >= 500 and bool(_PARAMETER.search(self.message) or _BROKEN.search(self.message))
        )

    @property
    def is_transient(self) -> bool:
        """Whether a retry may succeed."""
        if self.is_final or self.is_too_long or self.is_form_refusal:
            return False
        return (self.status in (408, 409, 429) and not _QUOTA.search(self.codes)) or self.status >= 500


def find_error(status: int, content: bytes) -> ServerError | None:
    """The error that a response is, `None` if it is a reply of the model.

    Args:
        status: of HTTP.
        content: the body.

    Raises:
        ValueError: if it is neither: empty, or JSON that ends too early.

    Example:
        >>> find_error(200, b'{"error": {"message": "slow down", "code": 429}}').status
        429
        >>> find_error(200, b'{"choices": [{"message": {"content": "1"}, "finish_reason": "stop"}]}') is None
        True
    """
    body, is_json = _read_body(content)
    if status < 400 and is_json and _is_reply(body):
        return None
    if status < 400 and not is_json and body[:1] in ("", "{", "["):
        raise ValueError("the reply is no JSON" if body else "the reply is empty")
    choice = _choice_of(body)
    found = list(_walk([body.get("error"), choice.get("error")] if choice else body))
    words = [text for key, text in found if key in _WORDS] or [text for key, text in found if key in _MORE_WORDS]
    codes = [text for key, text in found if key in _CODES or _is_status(text)]
    names = " ".join(code for code in codes if not code.isdigit())
    message = ": ".join(dict.fromkeys(words))[:_LONGEST_WORDS] or names
    param = next((text for key, text in found if key == "param"), "")
    error = ServerError(status, status, message, names, param)
    if status >= 400:
        return error if message else error._replace(message=json.dumps(body)[:_LONGEST_WORDS])
    if not is_json and content.lstrip()[:1] == b"<":
        return error._replace(status=400, message=f"it answers with a page, is the address right? {message}")
    own = next((int(code) for code in codes if _is_status(code)), None)
    if own is None and not words and not any(known.search(names) for _, known in _GUESSES):
        ended = choice.get("finish_reason")
        failed = ended in _FAILED
        reason = f"the reply ends with {ended!r}" if failed else f"the reply has no answer: {json.dumps(body)[:80]}"
        return error._replace(status=502, message=reason)
    return error._replace(status=_guess(error) if own is None else own, message=message or json.dumps(body)[:80])


def _guess(error: ServerError) -> int:
    """The status that codes or else words mean."""
    refused = error._replace(status=400)
    if refused.is_too_long or refused.is_form_refusal:
        return 400
    guesses = (status for text in (error.codes, error.message) for status, words in _GUESSES if words.search(text))
    return next(guesses, 400)


def _is_status(code: str) -> bool:
    return len(code) == 3 and code.isdigit() and 400 <= int(code) < 600


def _read_body(content: bytes) -> tuple[Any, bool]:
    """A body as JSON, or else as plain text, and whether it is JSON; of a stream of events the one with an error."""
    try:
        return json.loads(content), True
    except (ValueError, RecursionError):
        text = content[: 50 * _LONGEST_WORDS].decode("utf-8", "replace").lstrip("\ufeff").strip()
    if re.match(r"(?:data|event|id|retry)?:", text) is None:
        return _TAGS.sub(" ", text[:_LONGEST_PAGE]).strip() if text.startswith("<") else text, False
    for line in text.splitlines():
        if line.startswith("data:") and '"error"' in line:
            try:
                return json.loads(line[len("data:") :]), True
            except (ValueError, RecursionError):
                continue
    return f"it answers with a stream of events, which was not asked for: {text}", False


def _choice_of(body: Any) -> Mapping[str, Any]:
    """The first choice of a reply, empty if it has none."""
    choices = body.get("choices") if isinstance(body, dict) else None
    return choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}


def _is_reply(body: Any) -> bool:
    """Whether a body is a reply of the model."""
    choice = _choice_of(body)
    ended = choice.get("finish_reason")
    # A filter may leave out the message; where the model's own end has none, it is not what was asked for.
    has_message = isinstance(choice.get("message"), dict) or ended not in (None, "stop")
    if not choice or ended in _FAILED or not has_message:
        return False
    return not any(key in _WORDS or _is_status(text) for key, text in _walk([body.get("error"), choice.get("error")]))


def _walk(value: Any, key: str = "error", depth: int = 0) -> Iterator[tuple[str, str]]:
    """The words, codes and parameters of an error of any shape, each with its key."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):  # a body in the words of another server
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    if isinstance(value, dict) and depth < _DEEPEST:
        for name, inner in value.items():
            if name == "loc" and isinstance(inner, list):
                yield name, ".".join(map(str, inner))
            elif name in _KEYS:
                yield from _walk(inner, name, depth + 1)
    elif isinstance(value, list) and depth < _DEEPEST:
        for inner in value[:_MOST_ITEMS]:
            yield from _walk(inner, key, depth + 1)
    elif isinstance(value, str) and value.strip():
        yield key, value.strip()
    elif isinstance(value, int) and not isinstance(value, bool) and (key in _CODES or _is_status(str(value))):
        yield key, str(value)


def read_error(error: Exception) -> ServerError:
    """The server's error that the client has raised, or an error that stands for a reply which it cannot read."""
    body = getattr(error, "body", None)
    if isinstance(body, Mapping) and "sent" in body:
        return ServerError(**body)
    return ServerError(503, 0, f"{error} ({type(error).__name__})")


def find_refused(error: ServerError, sent: Collection[str]) -> str | None:
    """The parameter that a server refuses, `None` if it refuses none that was sent.

    Args:
        error: the server's error.
        sent: the names of the request's parameters.
    """
    if error.status not in (400, 422) or not _PARAMETER.search(error.message):
        return None
    # `max_completion_tokens` is often named as the alternative, so the first one in the message counts.
    words = {name: re.search(rf"(?<!\w){re.escape(name)}\b", error.message) for name in sent}
    found = {name: match.start() for name, match in words.items() if match}
    return error.param if error.param in sent else min(found, key=lambda name: found[name], default=None)


def find_limit(error: ServerError, sent: Mapping[str, Any]) -> tuple[str, int] | None:
    """The limit of tokens that a server says is too large, and the largest that it takes; `None` if it says neither.

    Args:
        error: the server's error.
        sent: the parameters of the request.

    Example:
        >>> error = ServerError(400, 400, "max_tokens is too large: 1024. The model supports at most 512.")
        >>> find_limit(error, {"max_tokens": 1024})
        ('max_tokens', 512)
    """
    if error.status not in (400, 422) or error.is_too_long:
        return None
    named = [name for name in sent if _LIMITED.fullmatch(name) and isinstance(sent[name], int)]
    text = f"{error.message} {error.param}"
    if len(named) != 1 or not _LIMITED.search(text):
        return None
    exclusive = re.search(r"(?:less|smaller|lower) than (?!or\b)\W*(\d+)", error.message)
    found = [int(number) - bool(exclusive) for number in re.findall(r"(?<![\w.])\d{1,9}(?![\w]|\.\d)", error.message)]
    lower = [number for number in found if 0 < number < sent[named[0]]]
    return (named[0], max(lower)) if lower else None


def translate_error(
    found: ServerError, model: str, base_url: str, key: tuple[str, str], list_models: Callable[[], list[str]]
) -> ModelError:
    """Translate a server's error into one of this package.

    Args:
        found: the server's error.
        model: the model's name.
        base_url: the server's address.
        key: the key, which servers often repeat in their messages, and the place from which it was read.
        list_models: returns the names of the server's models; called for an unknown one alone.

    Returns:
        The error to raise: `ModelAccessError` if any retry would be refused as well, `ContextLengthError`, or
        `ModelUnavailableError` if there was no answer.
    """
    secret, place = key
    message, status = _to_line(found.message, secret), f"status {found.sent}"
    if found.codes == UNREACHABLE:
        return ServerUnreachableError(f"no server answers at {base_url}, is it running? {message}")
    if not found.sent:
        return ModelUnavailableError(f"{base_url} gave no answer that can be read: {message}")
    if found.status != found.sent:
        status += f", code {found.status}"
    if found.is_too_long:
        return ContextLengthError(f"the prompt is too long for {model!r}: {message}")
    if found.status in (401, 403):
        return ModelAccessError(f"{base_url} refuses the key from {place} ({status}): {message}")
    if found.status == 404:
        names = _to_line(", ".join(list_models()[:20]), secret)
        hint = f"The server has: {names}" if names else "Is there `/v1` at the end of the address?"
        return ModelAccessError(f"{base_url} has no model {model!r} ({status}): {message}. {hint}")
    if found.is_transient or found.status >= 500:
        return ModelUnavailableError(f"{base_url} answers with {status}: {message}")
    what = "says that the quota is used up" if found.status in (402, 429) else "refuses the request"
    return ModelAccessError(f"{base_url} {what} ({status}): {message}")


def _to_line(text: str, secret: str) -> str:
    """The text on one line that a terminal can print, without the key, cut after 300 characters."""
    text = "".join(character if character.isprintable() else " " for character in text)
    text = " ".join((text.replace(secret, "***") if secret else text).split())
    return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}..."
