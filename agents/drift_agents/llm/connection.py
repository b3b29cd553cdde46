"""A server's address and key, and the client that speaks to it.

* `OPENAI`, `find_url` - the address of OpenAI's own server, and the checked address of any
* `read_key` - a server's key, and where it was read
* `import_openai`, `connect_client` - the package `openai`, and its client of one server
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from drift_agents.errors import ArgumentError, MissingDependencyError, ModelAccessError
from drift_agents.llm.http_client import make_http_client

OPENAI = "https://api.openai.com/v1"
"""The address of OpenAI's own server."""
KEY_VARIABLE = "OPENAI_API_KEY"
KEY_VARIABLES: Mapping[str, str] = {
    "api.anthropic.com": "ANTHROPIC_API_KEY",
    "generativelanguage.googleapis.com": "GEMINI_API_KEY",
}
"""Variables with the keys of other servers, by host; they precede `OPENAI_API_KEY`, if they are set."""
NO_KEY = "none"
"""Sent where there is no key: the client requires one, local servers accept any."""
CONNECT_SECONDS = 4.0
"""Seconds to connect to a server. A server that is down is reported after this time at the latest."""


def find_url(url: str | None) -> str:
    """Return the address of a server, without a slash at its end.

    Args:
        url: the address; that of the environment variable `OPENAI_BASE_URL` if not given, or OpenAI's own.

    Raises:
        ArgumentError: if it is not an address, or contains a key: addresses are written into a run's folder.

    Example:
        >>> find_url("http://127.0.0.1:8000/v1/")
        'http://127.0.0.1:8000/v1'
    """
    if url is None:
        url = os.environ.get("OPENAI_BASE_URL", "").strip() or OPENAI
    parts = urlsplit(url) if isinstance(url, str) else None
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise ArgumentError(f"`base_url` should be an address, as in http://127.0.0.1:8000/v1. Received {url!r}")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ArgumentError(
            f"`base_url` should have no user, password or query: it is written down. "
            f"Received one for {parts.hostname}. Give the key by the environment or a file"
        )
    return url.rstrip("/")


def read_key(base_url: str, file: str | os.PathLike[str] | None = None) -> tuple[str, str]:
    """Read a server's key.

    Args:
        base_url: the server's address.
        file: a file with the key and nothing else; if not given, the key is read from the environment variable of the
            server, or from `OPENAI_API_KEY`.

    Returns:
        The key, empty if there is none, and its place in words, for messages.

    Raises:
        ModelAccessError: if the file cannot be read, or does not hold one word; if OpenAI's own server has no key.
    """
    if file is not None:
        try:
            words = Path(file).read_text("utf-8").split()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "is not UTF-8"
            raise ModelAccessError(f"{file}: the key cannot be read: {reason}") from error
        if len(words) != 1:
            raise ModelAccessError(f"{file}: should hold a key and nothing else. Received {len(words)} words")
        return words[0], f"the file {file}"
    own = KEY_VARIABLES.get(urlsplit(base_url).hostname or "", KEY_VARIABLE)
    variable = own if os.environ.get(own) else KEY_VARIABLE
    key = os.environ.get(variable, "").strip()
    if not key and base_url == OPENAI:
        raise ModelAccessError(
            f"{base_url} needs a key: the environment variable {variable} is not set. Set it, or name a file with "
            "--set models.key_file=FILE; a server of your own is named with --base-url"
        )
    return key, f"the environment variable {variable}"


def import_openai() -> Any:
    """Import `openai`.

    Raises:
        MissingDependencyError: if it is not installed.
    """
    try:
        import openai
    except ImportError as error:
        raise MissingDependencyError(
            '`openai` is not installed, run `pip install "drift-envs[llm]"`. Recorded replies need no server: --replay'
        ) from error
    return openai


def connect_client(base_url: str, key: str, seconds: float, retries: int) -> Any:
    """The client of one server.

    Args:
        base_url: the server's address.
        key: its key, empty if it needs none.
        seconds: the time to wait for an answer.
        retries: repeated requests after failures.

    Raises:
        MissingDependencyError: if `openai` is not installed.
    """
    openai = import_openai()
    return openai.OpenAI(
        api_key=key or NO_KEY,
        base_url=base_url,
        timeout=openai.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds)),
        max_retries=retries,
        http_client=make_http_client(openai, seconds),
    )
