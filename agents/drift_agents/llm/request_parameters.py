"""Parameters of requests that a server refuses.

* `ServerParameters` - what one server accepts under which name, learnt from its refusals

Servers and models differ in what they accept: models that reason take `max_completion_tokens` and no temperature,
others have no `seed`. A refused parameter is renamed or left out, once, and the server is not sent it again.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from typing import Any

RENAMED = {"max_tokens": "max_completion_tokens"}
"""The second name of a parameter, used after the first is refused."""

_REFUSAL = re.compile(
    r"unsupported|not support|unknown|unrecogni[sz]ed|unexpected|not permitted|not allowed|extra (?:inputs|fields)"
    r"|invalid (?:parameter|argument|field|json payload)|cannot find field|deprecated|only the default|not available",
    re.IGNORECASE,
)


class ServerParameters:
    """What one server accepts under which name, learnt from its refusals. Threads share it.

    Example:
        >>> server = ServerParameters()
        >>> server.learn("Unsupported parameter: 'max_tokens' is not supported with this model.", {"max_tokens": 9})
        'sends `max_completion_tokens` for `max_tokens`, which the server refuses'
        >>> server.learn("'temperature' does not support 0 with this model", {"temperature": 0})
        'leaves out `temperature`, which the server refuses'
        >>> server.apply({"max_tokens": 9, "temperature": 0, "top_p": 1})
        {'max_completion_tokens': 9, 'top_p': 1}
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._names: dict[str, str | None] = {}

    def apply(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters under the names that the server accepts."""
        with self._lock:
            named = {self._names.get(name, name): value for name, value in parameters.items()}
        return {name: value for name, value in named.items() if name is not None}

    def learn(self, message: str, sent: Mapping[str, Any], parameter: object = None) -> str | None:
        """Learn from a refusal.

        Args:
            message: the server's.
            sent: the parameters of the request, under the names that were sent.
            parameter: the name of the refused parameter, where the server gives it.

        Returns:
            What is done from now on; `None` if the message refuses no parameter that was sent.
        """
        if not _REFUSAL.search(message):
            return None
        named = [name for name in sent if name == parameter]
        # `max_completion_tokens` is often named as the alternative, so the first one in the message counts.
        found = {name: match.start() for name in sent if (match := re.search(rf"(?<!\w){re.escape(name)}\b", message))}
        named = named or sorted(found, key=lambda name: found[name])
        if not named:
            return None
        refused = named[0]
        with self._lock:
            original = next((first for first, now in self._names.items() if now == refused), refused)
            second = RENAMED.get(refused) if original == refused else None
            self._names[original] = second
        if second is not None:
            return f"sends `{second}` for `{refused}`, which the server refuses"
        return f"leaves out `{refused}`, which the server refuses"
