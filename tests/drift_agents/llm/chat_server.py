"""An HTTP server with the chat-completions protocol whose replies and failures a test prescribes."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

SCHEMA = {
    "title": "action",
    "type": "object",
    "properties": {"action": {"type": "string", "enum": ["0", "1"]}},
    "required": ["action"],
    "additionalProperties": False,
}
"""The form of an answer that chooses one of two actions."""


class Response(NamedTuple):
    """What the server sends: a body (JSON, or raw bytes), and how it misbehaves."""

    body: Any
    status: int = 200
    headers: Mapping[str, str] = {}
    cut: int | None = None
    """Send so many bytes of what was announced and close the line."""
    hang: bool = False
    """Never answer: hold the line until the server ends."""


Answer = Callable[[dict[str, Any]], Response]


def said(text: str | None, finish: str = "stop", tokens: tuple[int, int] | None = (100, 5), **more: Any) -> Response:
    """A proper reply."""
    usage = None if tokens is None else {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": 0}
    message = {"role": "assistant", "content": text, **more}
    return Response(
        {
            "id": "x",
            "object": "chat.completion",
            "created": 0,
            "model": "any",
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            **({} if usage is None else {"usage": usage}),
        }
    )


def refused(status: int, message: str, code: str | None = None, **headers: str) -> Response:
    """An error as such servers send it."""
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response({"error": {"message": message, "type": "error", "code": code}}, status, headers)


class _BusyServer(ThreadingHTTPServer):
    """A server that many clients can connect to at a time."""

    request_queue_size = 128


class ChatServer:
    """The server: `answer` gives the response to each request, `requests` keeps them."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.models, self.owner = ["tiny"], "any"
        self.over = threading.Event()
        self.most_at_once = 0
        self._now = 0
        self._lock = threading.Lock()
        self._http = _BusyServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None: ...

            def do_GET(self) -> None:
                models = [{"id": name, "object": "model", "owned_by": server.owner} for name in server.models]
                self.reply(Response({"object": "list", "data": models}))

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["content-length"])))
                with server._lock:
                    server.requests.append(request)
                    server.keys.append(self.headers["authorization"])
                    server._now += 1
                    server.most_at_once = max(server.most_at_once, server._now)
                response = server.answer(request)
                with server._lock:  # before the answer leaves, so that who reads it next is not counted with this one
                    server._now -= 1
                self.reply(response)

            def reply(self, response: Response) -> None:
                if response.hang:
                    server.over.wait()
                    self.close_connection = True
                    return
                body = response.body if isinstance(response.body, bytes) else json.dumps(response.body).encode()
                self.send_response(response.status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                for name, value in response.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                with suppress(BrokenPipeError, ConnectionResetError):  # the client has ended the request
                    self.wfile.write(body[: response.cut])
                self.close_connection = response.cut is not None

        return Handler


@contextmanager
def serve(answer: Answer) -> Iterator[ChatServer]:
    """A running server."""
    server = ChatServer(answer)
    thread = threading.Thread(target=server._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server._http.shutdown()
        server._http.server_close()
        thread.join(timeout=10)
