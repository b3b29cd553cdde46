"""The web server, made so that slow and half-open connections cannot stop it.

* `make_server` - a waitress server for an application on a listening socket
* `stop` - ends a server that runs in another thread
* `serve` - runs servers in one or several processes

Waitress stops accepting connections at its limit, 100 by default, for up to two minutes. Here, a new
connection beyond `MAX_CONNECTIONS` closes the one that has been idle longest, a request has to arrive within
`REQUEST_SECONDS`, and idle connections are closed after `IDLE_SECONDS`. While a thread answers a request, it alone
writes to the connection.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import time
from typing import Any

from flask import Flask
from waitress import create_server, wasyncore
from waitress.channel import HTTPChannel

from webshop_server.errors import ShopError

MAX_CONNECTIONS = 1000
"""The maximum number of open connections; fewer where the system allows a process fewer files."""

REQUEST_SECONDS = 10.0
"""The maximum time in which a request arrives, in seconds from its first byte."""

IDLE_SECONDS = 30
"""A connection without a request is closed after this time, in seconds."""

_RESERVED_FILES = 64
"""Files that a process needs besides its connections."""


class _Channel(HTTPChannel):  # type: ignore[misc]  # waitress has no types
    """A connection that is closed if it is slow, or idle while others wait."""

    _begun: float | None = None

    def __init__(self, server: Any, sock: socket.socket, addr: Any, adj: Any, map: Any = None) -> None:
        channels = server.active_channels
        if len(channels) >= server.max_connections:
            idle = [channel for channel in channels.values() if not channel.requests and not channel.will_close]
            if idle:
                min(idle, key=lambda channel: float(channel.last_activity)).will_close = True
        super().__init__(server, sock, addr, adj, map=map)

    def received(self, data: bytes) -> bool:
        """Parse received data; the connection is closed if its request is incomplete for too long."""
        result = bool(super().received(data))
        if self.request is None:
            self._begun = None
        elif self._begun is None:
            self._begun = time.monotonic()
        elif time.monotonic() - self._begun > REQUEST_SECONDS:
            self.will_close = True
        return result

    def writable(self) -> bool:
        """Whether the main thread should write: not while the thread of a request does so itself.

        Waitress returns `True` then, so that its main thread polls without a pause and takes the processor from the
        threads. Above the watermark a thread waits for the main thread.
        """
        if self.requests and not (self.will_close or self.close_when_flushed):
            return bool(self.total_outbufs_len >= self.adj.outbuf_high_watermark)
        return bool(super().writable())


def make_server(app: Flask, listener: socket.socket, *, threads: int = 8, sockets: dict[int, Any] | None = None) -> Any:
    """Make a server; its method `run` serves until `close`.

    Args:
        app: the application.
        listener: a bound socket.
        threads: the number of requests that are answered at the same time.
        sockets: receives the open sockets by file number, for a server that another thread closes.
    """
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)  # it warns of every request that has to wait
    most = _max_connections()
    server = create_server(
        app,
        map=sockets,
        sockets=[listener],
        threads=threads,
        connection_limit=most + _RESERVED_FILES,  # never reached: connections beyond `most` replace idle ones
        channel_timeout=IDLE_SECONDS,
        cleanup_interval=5,
        asyncore_use_poll=True,  # `select` fails above 1,024 files
        backlog=MAX_CONNECTIONS,
        max_request_body_size=app.config["MAX_CONTENT_LENGTH"] + 1,  # refused at this size, before it is stored
    )
    server.max_connections = most
    server.channel_class = _Channel
    return server


def stop(server: Any, sockets: dict[int, Any]) -> None:
    """End a server that runs in another thread, after its running requests; `run` returns when no socket is left.

    Args:
        server: from `make_server`.
        sockets: its open sockets by file number.
    """
    server.task_dispatcher.shutdown()  # first the running requests: their end wakes the server's thread
    # Sockets belong to the server's thread: it closes them itself. With the lock it does not do so, and close the pipe
    # of the trigger with them, before the trigger is pulled.
    with server.trigger.lock:
        server.trigger.thunks.append(lambda: wasyncore.close_all(sockets))
        server.trigger.pull_trigger()


def serve(app: Flask, listener: socket.socket, *, threads: int = 8, processes: int = 1) -> None:
    """Serve until the process is interrupted or terminated.

    Args:
        app: the application; for several processes, its sessions should be in a file.
        listener: a bound socket.
        threads: the number of requests that each process answers at the same time.
        processes: the number of processes; they end with this one, also if it is killed.

    Raises:
        ShopError: one of several processes has ended.
    """
    if processes == 1:
        server = make_server(app, listener, threads=threads)
        try:
            server.run()
        finally:
            server.close()
        return
    app.extensions["webshop"].close()  # connections to a database cannot be shared with a forked process
    ended, alive = os.pipe()
    children = [_fork(app, listener, threads, ended, alive) for _ in range(processes)]
    try:
        child, status = os.wait()
        children.remove(child)
        raise ShopError(f"server process {child} ended with status {os.waitstatus_to_exitcode(status)}")
    finally:
        os.close(alive)  # which ends the processes
        for child in children:
            os.waitpid(child, 0)


def _fork(app: Flask, listener: socket.socket, threads: int, ended: int, alive: int) -> int:
    """Return the number of a new process that serves until the write end of a pipe is closed."""
    child = os.fork()
    if child:
        return child
    os.close(alive)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the parent too

    def end() -> None:
        os.read(ended, 1)  # returns when no process has the write end any more, also if the parent was killed
        os._exit(0)

    threading.Thread(target=end, daemon=True).start()
    status = 1
    try:
        make_server(app, listener, threads=threads).run()
    finally:
        os._exit(status)


def _max_connections() -> int:
    try:
        import resource  # not on Windows
    except ImportError:
        return MAX_CONNECTIONS // 2
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if files == resource.RLIM_INFINITY:
        return MAX_CONNECTIONS
    return max(_RESERVED_FILES, min(MAX_CONNECTIONS, files // 2 - _RESERVED_FILES))
