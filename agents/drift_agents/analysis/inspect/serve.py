"""The inspection page from a local server, for runs whose file would be too large.

* `PageServer` - serves the page, and the steps of each cell on request
* `make_server` - one for a run's folder
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from drift_agents.analysis.inspect.page import gather, page_parts
from drift_agents.errors import ExperimentError
from drift_envs.command_line import HostRule

HOST = "127.0.0.1"
"""Requests from this machine alone are served."""


class PageServer(ThreadingHTTPServer):
    """Serves the page at `/` and the steps of a cell at `/chunk/N`; nothing else of the machine.

    Args:
        port: 0 for any that is free.
        page: the page.
        chunks: the files with the steps.
        hosts: decides which `Host` headers are answered.
    """

    daemon_threads = True

    def __init__(self, port: int, page: bytes, chunks: tuple[Path, ...], hosts: HostRule) -> None:
        self.page, self.chunks, self.hosts = page, chunks, hosts
        super().__init__((HOST, port), _Handler)

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://{HOST}:{self.server_address[1]}/"


def make_server(folder: Path, port: int = 0, allow_hosts: Iterable[str] = ()) -> PageServer:
    """A server for a run's folder; `serve_forever` runs it.

    Args:
        folder: the run's folder.
        port: 0 for any that is free.
        allow_hosts: names under which the server is addressed, beside `localhost`, this machine's name and IP
            addresses; requests to other names are refused.

    Raises:
        ExperimentError: if the folder holds no finished run, or the port cannot be used.
    """
    contents = gather(folder)
    contents.check_steps()
    page = "".join(page_parts(contents, served=True)).encode()
    try:
        return PageServer(port, page, contents.chunks, HostRule(allow_hosts))
    except OSError as error:
        raise ExperimentError(f"port {port}: cannot be used: {error.strerror}") from error


class _Handler(BaseHTTPRequestHandler):
    server: PageServer

    def do_GET(self) -> None:
        """Answer with the page, the steps of a cell, or nothing."""
        if not self.server.hosts.allows(self.headers.get("Host")):
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST, explain="See --allow-host.")
            return
        chunk = re.fullmatch(r"/chunk/(\d{1,9})", self.path)
        if self.path == "/":
            self._answer(self.server.page, "text/html; charset=utf-8")
        elif chunk is not None and int(chunk[1]) < len(self.server.chunks):
            self._answer(self.server.chunks[int(chunk[1])].read_bytes(), "application/octet-stream")
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def _answer(self, body: bytes, kind: str) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""
