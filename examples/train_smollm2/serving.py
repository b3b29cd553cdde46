"""Serves the model by the chat-completions protocol, as much of it as the policy `llm` needs.

* `serve` - at a loopback address
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

from examples.train_smollm2.chats import Chat
from examples.train_smollm2.tuned import MOST, Tuned

HOST = "127.0.0.1"


@contextmanager
def serve(tuned: Tuned, port: int = 0) -> Iterator[str]:
    """Serve a model, greedily and one request at a time, until the context ends.

    Args:
        tuned: the model.
        port: the port; 0 for a free one.

    Yields:
        The address, for `--base-url`.
    """

    class Handler(BaseHTTPRequestHandler):
        """Answers a request of two messages."""

        def do_POST(self) -> None:
            """Answer it."""
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            system, user = (message["content"] for message in request["messages"])
            answer = tuned.answer(Chat(system, user, ()), request.get("max_tokens", MOST))
            message = {"role": "assistant", "content": answer.text}
            choice = {"index": 0, "message": message, "finish_reason": answer.finish}
            used = answer.usage
            usage = {"prompt_tokens": used.tokens_in, "completion_tokens": used.tokens_out}
            usage["total_tokens"] = sum(usage.values())
            reply = {"id": "", "object": "chat.completion", "created": 0, "model": request["model"]}
            body = json.dumps({**reply, "choices": [choice], "usage": usage}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Print nothing."""

    server = HTTPServer((HOST, port), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://{HOST}:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
