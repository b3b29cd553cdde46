"""Sockets of servers that this machine alone can reach.

* `LOOPBACK` - the address
* `listen` - a listening socket at a port of it
"""

from __future__ import annotations

import socket

from drift_envs.checks import check_integer
from drift_envs.errors import ArgumentError

LOOPBACK = "127.0.0.1"


def listen(port: int = 0) -> socket.socket:
    """Open a listening socket at the loopback address; the caller closes it.

    Args:
        port: 0 takes a free one.

    Raises:
        ArgumentError: the port cannot be used.

    Example:
        >>> with listen() as listener:
        ...     host, port = listener.getsockname()
        >>> host, port > 0
        ('127.0.0.1', True)
    """
    check_integer("port", port, 0, 65535)
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise ArgumentError(f"`port` should be free. Received {port}: {error}") from error
    return listener
