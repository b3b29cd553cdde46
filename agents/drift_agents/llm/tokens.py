"""How long a text is to a model that was not asked.

* `count_tokens` - an estimate, where no server says
"""

from __future__ import annotations

from collections.abc import Iterable

CHARACTERS = 4
"""Characters of a token, roughly, in English; servers say what it really was."""


def count_tokens(texts: Iterable[str]) -> int:
    """How many tokens some texts have, roughly.

    Example:
        >>> count_tokens(["Reach the goal.", "Go"])
        5
    """
    return sum(-(-len(text) // CHARACTERS) for text in texts)
