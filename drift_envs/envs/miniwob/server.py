"""The task pages behind HTTP on this machine, each with the drifting layer in front of its scripts.

* `TaskServer` - a server on a free port
* `find_pages` - the folder of the pages in the installed package
"""

from __future__ import annotations

import sys
import threading
import weakref
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from drift_envs.errors import MissingDependencyError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_KINDS = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "png": "image/png",
    "gif": "image/gif",
    "svg": "image/svg+xml",
}
_LAYER = '<script src="/layer/layer.js"></script><link rel="stylesheet" href="/layer/layer.css">'
_THEMES = '<link rel="stylesheet" href="/layer/themes.css">'
_PATIENCE = 5.0
"""Seconds to wait for the server's thread when it ends."""


def find_pages() -> Traversable:
    """The folder of the pages in the installed package.

    Raises:
        MissingDependencyError: the package is not installed.
    """
    try:
        return resources.files("miniwob") / "html"
    except ModuleNotFoundError as error:
        raise MissingDependencyError('`miniwob` is not installed, run `pip install "drift-envs[miniwob]"`') from error


class TaskServer:
    """A server on a free port of this machine.

    It ends when this object is garbage collected, at the latest when the program ends.

    Raises:
        MissingDependencyError: the package with the pages is not installed.
    """

    def __init__(self) -> None:
        folders = {
            "layer": resources.files("drift_envs.envs.miniwob") / "static",
            "": find_pages(),
            "themes": resources.files("webshop_server") / "static",
        }
        server = _Server(("127.0.0.1", 0), partial(_Handler, folders))
        server.daemon_threads = True
        self.base_url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        self._end = weakref.finalize(self, _end, server, thread)

    def close(self) -> None:
        """End the server and its thread."""
        self._end()


def _end(server: ThreadingHTTPServer, thread: threading.Thread) -> None:
    server.shutdown()
    server.server_close()
    thread.join(_PATIENCE)


class _Server(ThreadingHTTPServer):
    """A server whose browser may close a connection at any time."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report errors other than a closed connection."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """Sends files of the folders; task pages with the layer."""

    protocol_version = "HTTP/1.1"

    def __init__(self, folders: dict[str, Traversable], *rest: Any) -> None:
        self._folders = folders
        super().__init__(*rest)

    def do_GET(self) -> None:
        """Send a file."""
        parts = [part for part in unquote(urlsplit(self.path).path).split("/") if part not in ("", ".", "..")]
        content = None if "\\" in self.path else self._read(parts)
        kind = _KINDS.get(parts[-1].rpartition(".")[2]) if parts else None
        if content is None or kind is None:
            self.send_error(404)
            return
        if kind.startswith("text/html"):
            # the layer comes before all scripts of the page, the themes after all of its styles
            content = content.replace(b"<head>", b"<head>" + _LAYER.encode(), 1)
            content = content.replace(b"</head>", _THEMES.encode() + b"</head>", 1)
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "max-age=86400")
        self.end_headers()
        self.wfile.write(content)

    def _read(self, parts: list[str]) -> bytes | None:
        """The content of a file, `None` if there is none."""
        if parts[:2] == ["layer", "themes.css"]:
            found = self._folders["themes"] / "themes.css"
        elif parts[:1] == ["layer"]:
            found = self._folders["layer"].joinpath(*parts[1:])
        else:
            found = self._folders[""].joinpath(*parts)
        return found.read_bytes() if found.is_file() else None

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""
