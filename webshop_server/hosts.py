"""The names under which a server is addressed.

* `HostRule` - decides which `Host` headers a server answers
* `is_host_name` - whether a text is the name of a host

A page of another site can let its own name resolve to this machine (DNS rebinding); its requests are then of the same
origin for a browser, and only the `Host` header tells them apart. An address cannot be rebound, so every IP address
is answered. It is part of the package that all others may import, and imports the standard library alone.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable

_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*\.?", re.ASCII)
_PORT = re.compile(r":\d{1,5}\Z", re.ASCII)


def is_host_name(text: str) -> bool:
    """Whether a text is the name of a host, without scheme and port.

    Example:
        >>> is_host_name("shop.example.org"), is_host_name("shop.example.org:3000")
        (True, False)
    """
    return len(text) <= 253 and _NAME.fullmatch(text.lower()) is not None


class HostRule:
    """The `Host` headers that a server answers: IP addresses, `localhost`, this machine's name, and others given.

    Args:
        names: further names of hosts.

    Example:
        >>> rule = HostRule(["shop.example.org"])
        >>> [rule.allows(host) for host in ("127.0.0.1:3000", "[::1]", "localhost", "Shop.example.org:80", None)]
        [True, True, True, True, True]
        >>> rule.allows("evil.example.org")
        False
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        own = ("localhost", socket.gethostname(), *names)
        self._names = frozenset(name.lower().rstrip(".") for name in own)

    def allows(self, host: str | None) -> bool:
        """Whether a request with this header is answered.

        Args:
            host: the header `Host`; `None` where a request has none, which no browser sends.
        """
        if host is None:
            return True
        name = _PORT.sub("", host.lower()).rstrip(".")
        return name in self._names or _is_address(name.removeprefix("[").removesuffix("]"))


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
