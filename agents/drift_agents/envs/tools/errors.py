"""The errors of tools, in any form.

* `DeskError`, `read_error` - code and rule of an error
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

_CODES = {403: "policy", 409: "conflict", 424: "redundant", 440: "not_found", 441: "not_looked_up"}
"""Numbers of errors that matter here; they resemble those of the web."""
_RULE = re.compile(r"the rule (\w+)")


class DeskError(NamedTuple):
    """An error of a tool.

    Args:
        code: the code in words, or what stands in its place.
        rule: the rule of the policy that it names, or an empty text.
    """

    code: str
    rule: str = ""


def read_error(answer: Mapping[str, Any]) -> DeskError | None:
    """The error in an answer; `None` if it is none.

    Args:
        answer: the answer.

    Example:
        >>> read_error({"error": "policy", "message": "the rule return_days does not allow this"})
        DeskError(code='policy', rule='return_days')
        >>> read_error({"error": 424}), read_error({"ok": True})
        (DeskError(code='redundant', rule=''), None)
    """
    if "error" not in answer:
        return None
    code = answer["error"]
    rule = _RULE.search(str(answer.get("message", "")))
    return DeskError(_CODES.get(code, str(code)) if isinstance(code, int) else str(code), rule[1] if rule else "")
