"""Replies of the chat-completions protocol, whose types no client checks.

* `read_reply` - a reply as a completion; what is missing or of another type is empty or estimated
* `read_probabilities` - candidates for the first token
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from drift_agents.checks import is_number
from drift_agents.llm.answer_format import without_surrogates, without_thoughts
from drift_agents.llm.base import Completion, count_tokens
from drift_agents.types import Usage

MOST_TOKENS = 10**9
"""Tokens of one reply that are believed; any other count is replaced by an estimate."""
_FINISHES = {"length": "length", "content_filter": "refusal"}


def read_reply(reply: Any, sent: Sequence[Mapping[str, str]], milliseconds: int) -> Completion:
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


def read_probabilities(reply: Any) -> list[tuple[str, float]]:
    """Candidates for the first token of a reply, with their log-probabilities; empty without any."""
    tokens = getattr(getattr(_first_choice(reply), "logprobs", None), "content", None)
    top = getattr(tokens[0], "top_logprobs", None) if isinstance(tokens, (list, tuple)) and tokens else None
    found = []
    for candidate in top if isinstance(top, (list, tuple)) else ():
        token, logarithm = getattr(candidate, "token", None), getattr(candidate, "logprob", None)
        if isinstance(token, str) and is_number(logarithm):
            found.append((token, float(logarithm)))
    return found
