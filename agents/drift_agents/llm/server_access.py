"""The address of a server, and its key.

* `OPENAI` - the address of OpenAI's own server
* `default_url`, `check_url` - the address where none is given, and its rule
* `KeySource`, `find_key_source` - where the key is read from
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from drift_agents.errors import ArgumentError, ModelAccessError

OPENAI = "https://api.openai.com/v1"
"""The address of OpenAI's own server."""
KEY_VARIABLES: Mapping[str, str] = {
    "api.anthropic.com": "ANTHROPIC_API_KEY",
    "generativelanguage.googleapis.com": "GEMINI_API_KEY",
}
"""Variables with the keys of other servers, by host; they precede `OPENAI_API_KEY`, if they are set."""


def default_url() -> str:
    """The address where none is given: that of the environment variable `OPENAI_BASE_URL`, or OpenAI's own."""
    return os.environ.get("OPENAI_BASE_URL", "").strip() or OPENAI


def find_key_source(base_url: str) -> KeySource:
    """Where a server's key is read from, by default: `OPENAI_API_KEY`, or the server's own variable without it.

    Example:
        >>> find_key_source("http://127.0.0.1:8000/v1").variable
        'OPENAI_API_KEY'
    """
    own = KEY_VARIABLES.get(urlsplit(base_url).hostname or "")
    return KeySource() if own is None or not os.environ.get(own) else KeySource(own)


def check_url(url: str) -> str:
    """Return the address of a server, without a slash at its end.

    Raises:
        ArgumentError: if it is not an address, or contains a key: addresses are written into a run's folder.
    """
    parts = urlsplit(url) if isinstance(url, str) else None
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise ArgumentError(f"`base_url` should be an address, as in http://127.0.0.1:8000/v1. Received {url!r}")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ArgumentError(
            f"`base_url` should have no user, password or query: it is written down. "
            f"Received one for {parts.hostname}. Give the key by the environment or a file"
        )
    return url.rstrip("/")


class KeySource:
    """Where a server's key is read from. The object does not hold the key.

    Args:
        variable: the name of an environment variable.
        file: a file with the key and nothing else, instead.

    Example:
        >>> KeySource("A_VARIABLE_THAT_IS_NOT_SET").read() is None
        True
    """

    def __init__(self, variable: str = "OPENAI_API_KEY", file: str | os.PathLike[str] | None = None) -> None:
        self.variable, self.file = variable, None if file is None else Path(file)

    def describe(self) -> str:
        """Name the place, for messages."""
        return f"the environment variable {self.variable}" if self.file is None else f"the file {self.file}"

    def read(self) -> str | None:
        """Return the key, `None` if there is none.

        Raises:
            ModelAccessError: if the file cannot be read, or does not hold one word.
        """
        if self.file is None:
            return os.environ.get(self.variable, "").strip() or None
        try:
            words = self.file.read_text("utf-8").split()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "is not UTF-8"
            raise ModelAccessError(f"{self.file}: the key cannot be read: {reason}") from error
        if len(words) != 1:
            raise ModelAccessError(f"{self.file}: should hold a key and nothing else. Received {len(words)} words")
        return words[0]
