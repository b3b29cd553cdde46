"""Calls of tools as JSON, and the errors that tools answer with: what environments with tools share.

* `Refusal` - a tool's error; the call has changed nothing
* `ERRORS`, `ERROR_NUMBERS` - the forms of errors, and the numbers that can take the place of codes
* `write_error` - an error in one of these forms
* `read_call` - the name and the arguments of a call
* `MOST_CHARACTERS` - the longest call that is read
"""

from __future__ import annotations

import json
from typing import Any

ERRORS = ("words", "numbers", "terse")
"""Errors with a code and a message, with a number alone, or with no reason at all."""

ERROR_NUMBERS = {
    "invalid_call": 400,
    "unknown_tool": 404,
    "missing_argument": 421,
    "unexpected_argument": 422,
    "invalid_value": 423,
    "not_found": 440,
    "not_looked_up": 441,
    "conflict": 409,
    "redundant": 424,
    "policy": 403,
    "gone": 410,
}

MOST_CHARACTERS = 2000
"""The longest call that is read."""


class Refusal(Exception):
    """A tool's error, which a client gets as an answer.

    Args:
        code: its code, a key of `ERROR_NUMBERS`.
        message: the message.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


def write_error(refusal: Refusal, form: str) -> dict[str, Any]:
    """A tool's error in a form.

    Args:
        refusal: the error.
        form: one of `ERRORS`.

    Example:
        >>> write_error(Refusal("not_found", "there is no such record"), "numbers")
        {'error': 440}
    """
    if form == "words":
        return {"error": refusal.code, "message": refusal.message}
    return {"error": ERROR_NUMBERS[refusal.code] if form == "numbers" else "failed"}


def read_call(text: str) -> tuple[str, dict[str, Any]]:
    """The name and the arguments of a call.

    Args:
        text: the call as JSON.

    Raises:
        Refusal: it is no JSON object with `tool` and `arguments`.

    Example:
        >>> read_call('{"tool": "find_customer", "arguments": {"email": "a@example.org"}}')
        ('find_customer', {'email': 'a@example.org'})
    """
    if len(text) > MOST_CHARACTERS:
        raise Refusal("invalid_call", f"a call should have at most {MOST_CHARACTERS} characters")
    try:
        call = json.loads(text)
    except (ValueError, RecursionError):
        call = None
    if not isinstance(call, dict) or not isinstance(call.get("tool"), str) or set(call) - {"tool", "arguments"}:
        raise Refusal("invalid_call", 'a call should be JSON: {"tool": NAME, "arguments": {...}}')
    given = call.get("arguments", {})
    if not isinstance(given, dict):
        raise Refusal("invalid_call", "`arguments` should be an object")
    return call["tool"], given
