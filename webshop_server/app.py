"""The shop as a Flask application, and the web server, made so that slow and half-open connections cannot stop it.

Waitress stops accepting connections at its limit, 100 by default, for up to two minutes. Here, a new connection beyond
`MAX_CONNECTIONS` closes the one that has been idle longest, a request has to arrive within `REQUEST_SECONDS`, and idle
connections are closed after `IDLE_SECONDS`. While a thread answers a request, it alone writes to the connection.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from flask import Flask, Response, current_app, request
from waitress import create_server, wasyncore
from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser, ParsingError
from werkzeug.exceptions import HTTPException

from webshop_server.catalogue import Catalogue
from webshop_server.command_line import HostRule
from webshop_server.compat.goal import count_nouns, load_tagger
from webshop_server.compat.routes import original_routes
from webshop_server.errors import ArgumentError, SessionError, ShopError
from webshop_server.goals import BROWSE
from webshop_server.inventory import Inventory
from webshop_server.renderer import SECURITY_HEADERS, PhotoSource
from webshop_server.reward import NounRule, extract_nouns
from webshop_server.routes import admin_routes, respond_with, shop_routes
from webshop_server.sessions import SessionLog, SessionStore
from webshop_server.settings import Settings
from webshop_server.shared_sessions import SharedSessionStore
from webshop_server.shop import Shop

MAX_BODY = 64 * 1024
"""The maximum size of a request body, in bytes."""

MAX_URL = 16 * 1024
"""The maximum length of a URL, in characters."""

STYLE_SECONDS = 3600
"""How long a browser may cache the style sheet, in seconds; otherwise it requests it with every page."""

MAX_CONNECTIONS = 1000
"""The maximum number of open connections; fewer where the system allows a process fewer files."""

REQUEST_SECONDS = 10.0
"""The maximum time in which a request arrives, in seconds from its first byte."""

IDLE_SECONDS = 30
"""A connection without a request is closed after this time, in seconds."""

_RESERVED_FILES = 64
"""Files that a process needs besides its connections."""


@dataclass(frozen=True)
class Config:
    """The configuration of an application.

    Args:
        catalogue: a catalogue file, or an inventory; by default the generated catalogue.
        settings: the initial settings.
        goal_kind: `synthetic`, `human` or `color_class`; a catalogue without any instruction is browsed without a goal.
        seed: seeds price limits and the goals of new sessions.
        admin_token: the token for `/admin`, at least 8 characters; without one `/admin` does not exist.
        state: the SQLite file of sessions and orders; without one they are kept in memory.
        log_dir: the directory of session logs; without one nothing is logged.
        max_sessions: the maximum number of sessions.
        max_client_sessions: the maximum number of sessions of one client address.
        idle_seconds: sessions that are idle for longer are deleted.
        image_dir: a directory of photos, named by asin or as in the addresses of the catalogue; others are drawn.
        remote_images: hosts from which browsers may load the photos of an imported catalogue; by default none, and
            pages load nothing from other hosts.
        allow_hosts: names of hosts under which the shop is addressed, beside `localhost`, this machine's name and all
            IP addresses; requests to other names are refused.
        compat: serve pages with the original's elements and ids, for clients of the original: any name starts a
            session, a `GET` request buys, and nouns are counted as the original counts them.
        spacy_model: a model of spaCy that selects the nouns in this mode; without one a rule does.
    """

    catalogue: str | os.PathLike[str] | Inventory | None = None
    settings: Settings = field(default_factory=Settings)
    goal_kind: str = "synthetic"
    seed: int = 0
    admin_token: str | None = field(default=None, repr=False)
    state: str | os.PathLike[str] | None = None
    log_dir: str | os.PathLike[str] | None = None
    max_sessions: int = 10_000
    max_client_sessions: int = 1000
    idle_seconds: float = 3600.0
    image_dir: str | os.PathLike[str] | None = None
    remote_images: tuple[str, ...] = ()
    allow_hosts: tuple[str, ...] = ()
    compat: bool = False
    spacy_model: str | None = None


def create_app(config: Config | None = None) -> Flask:
    """Create the application.

    Raises:
        CatalogueError: the catalogue cannot be used.
        ArgumentError: a value of the configuration breaks its rule.
        StateFileError: the file of sessions cannot be used.

    Example:
        >>> from webshop_server.inventory import Inventory
        >>> client = create_app(Config(Inventory.default(products=100))).test_client()
        >>> "Instruction:" in client.get("/fixed_7").text
        True
    """
    config = config or Config()
    if config.admin_token is not None and len(config.admin_token) < 8:
        raise ArgumentError("`admin_token` should have at least 8 characters")
    inventory = _inventory(config)
    has_goals = any(len(table.numbers) for table in inventory.index.goals)
    shop = Shop(
        inventory, config.settings, goal_kind=config.goal_kind if has_goals else BROWSE, nouns=_noun_rule(config)
    )
    len(shop.goals)  # a catalogue without goals of this kind is refused here, not at the first request
    app = Flask("webshop_server")
    app.config.update(
        MAX_CONTENT_LENGTH=MAX_BODY,
        MAX_FORM_MEMORY_SIZE=MAX_BODY,
        SEND_FILE_MAX_AGE_DEFAULT=STYLE_SECONDS,
        WEBSHOP_ADMIN_TOKEN=config.admin_token,
        WEBSHOP_TEMPLATE="original.html" if config.compat else "page.html",
    )
    app.extensions["webshop_photos"] = PhotoSource(config.image_dir, config.remote_images)
    app.json.ensure_ascii = False  # type: ignore[attr-defined]
    limits: dict[str, Any] = {
        "limit": config.max_sessions,
        "client_limit": config.max_client_sessions,
        "idle_seconds": config.idle_seconds,
        "seed": config.seed,
    }
    app.extensions["webshop"] = (
        SessionStore(shop, **limits) if config.state is None else SharedSessionStore(shop, config.state, **limits)
    )
    app.extensions["webshop_hosts"] = HostRule(config.allow_hosts)
    app.extensions["webshop_log"] = SessionLog(config.log_dir) if config.log_dir is not None else None
    if config.admin_token is not None:
        app.register_blueprint(admin_routes)
    app.register_blueprint(original_routes if config.compat else shop_routes)
    app.register_error_handler(ArgumentError, lambda error: respond_with(404, "This page does not exist", error))
    app.register_error_handler(SessionError, lambda error: respond_with(404, "This session is over", error))
    app.register_error_handler(ShopError, _show_failure)
    app.register_error_handler(HTTPException, _show_http_error)
    app.before_request(_check_host)
    app.before_request(_check_url)
    app.before_request(_check_origin)
    app.after_request(_add_security_headers)
    return app


def _noun_rule(config: Config) -> NounRule:
    if not config.compat:
        return extract_nouns
    return load_tagger(config.spacy_model) if config.spacy_model is not None else count_nouns


def _inventory(config: Config) -> Inventory:
    if isinstance(config.catalogue, Inventory):
        return config.catalogue
    if config.catalogue is None:
        return Inventory.open(Inventory.default().catalogue.path, config.seed)
    return Inventory(Catalogue(config.catalogue), config.seed)


def _check_host() -> Response | None:
    """Refuse requests to a name that is not the shop's, as pages of other sites send them after DNS rebinding."""
    rule: HostRule = current_app.extensions["webshop_hosts"]
    if rule.allows(request.headers.get("Host")):
        return None
    return respond_with(421, "This request is refused", "The shop is not known under this name; see `--allow-host`.")


def _check_url() -> Response | None:
    query = request.query_string
    if len(request.path) + 1 + len(query) > MAX_URL:
        return respond_with(414, "This URL is too long", f"A URL has at most {MAX_URL} characters.")
    try:
        query.decode()
    except UnicodeDecodeError:
        return respond_with(400, "This URL cannot be read", "The part after `?` is not UTF-8.")
    return None


def _check_origin() -> Response | None:
    """Refuse changes that a page of another site sends; programs other than browsers send no origin."""
    origin = request.headers.get("Origin")
    if request.method in ("GET", "HEAD", "OPTIONS") or origin is None:
        return None
    if origin.lower().partition("://")[2] == request.host.lower():  # a proxy may have changed the scheme
        return None
    return respond_with(403, "This request is refused", "It was sent by a page of another site.")


def _add_security_headers(response: Response) -> Response:
    if current_app.config["WEBSHOP_TEMPLATE"] == "original.html":
        # Choosing an option opens a page, by a script of the server's own.
        policy = f"script-src 'self'; {SECURITY_HEADERS['Content-Security-Policy']}"
        response.headers["Content-Security-Policy"] = policy
    hosts = current_app.extensions["webshop_photos"].hosts
    if hosts:
        policy = response.headers.get("Content-Security-Policy", SECURITY_HEADERS["Content-Security-Policy"])
        sources = " ".join(("img-src 'self'", *(f"https://{host}" for host in hosts)))
        response.headers["Content-Security-Policy"] = policy.replace("img-src 'self'", sources)
    for name, value in SECURITY_HEADERS.items():
        response.headers.setdefault(name, value)
    return response


def _show_failure(error: Exception) -> Response:
    current_app.logger.error(str(error))
    return respond_with(503, "The shop cannot answer", "Its files cannot be used. Please try again later.")


def _show_http_error(error: HTTPException) -> Response:
    if error.response is not None:
        return error.response  # type: ignore[return-value]
    return respond_with(error.code or 500, error.name, error.description or "")


class _Parser(HTTPRequestParser):  # type: ignore[misc]  # waitress has no types
    """Refuses requests whose length is said twice: a proxy before the shop could read another one (RFC 9112, 6.1)."""

    def parse_header(self, header_plus: bytes) -> None:
        """Parse the first line and the headers.

        Raises:
            ParsingError: if a header is invalid, or two of them say how long the body is.
        """
        super().parse_header(header_plus)
        # Waitress removes the header of a chunked request; in HTTP/1.0 there is none.
        length, old = "CONTENT_LENGTH" in self.headers, "TRANSFER_ENCODING" in self.headers
        if old or (length and self.chunked):
            raise ParsingError("Transfer-Encoding should stand without Content-Length, in HTTP/1.1")


class _Channel(HTTPChannel):  # type: ignore[misc]  # waitress has no types
    """A connection that is closed if it is slow, or idle while others wait."""

    parser_class = _Parser
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
