"""Replies of servers with the chat-completions protocol.

* `read_reply` - a reply as a completion; no client checks its types, so what is missing or of another type is empty
  or estimated
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from drift_agents.llm.answer_format import ends_with_answer, without_surrogates, without_thoughts
from drift_agents.llm.base import Completion, count_tokens
from drift_agents.types import Usage
from drift_envs.checks import is_number

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
    text = without_surrogates(_read_content(getattr(message, "content", None)))
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
        thoughts = (without_surrogates(_read_content(getattr(message, name, None))) for name in _THOUGHTS)
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
