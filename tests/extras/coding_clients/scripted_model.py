"""A language model that follows a script, behind OpenAI's chat completions at a local address.

It answers the first message of a conversation with one call of the tool `bash`: it runs a reference coding agent with
the files that the message names. So a real client is driven through a whole run of `check-coder` without a model.

    python scripted_model.py "python -s .../coders/verify.py"      # prints its address
"""

from __future__ import annotations

import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class ScriptedModel(ThreadingHTTPServer):
    """Serves the script.

    Args:
        program: the beginning of the command that the model runs.
    """

    daemon_threads = True

    def __init__(self, program: str) -> None:
        self.program = program
        self.requests: list[dict[str, Any]] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        """The base address for clients."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def reply(self, request: dict[str, Any]) -> dict[str, Any]:
        """The message that answers a request."""
        self.requests.append(request)
        asked = json.dumps(request["messages"])
        files = re.findall(r"[\w/.-]+/episode/(?:task|log)\.md", asked)
        has_acted = any(message["role"] == "tool" for message in request["messages"])
        if not request.get("tools") or has_acted or len(files) < 2:
            return {"role": "assistant", "content": "Done."}
        arguments = {"command": f"{self.program} {files[0]} {files[1]}", "description": "Solve the issue"}
        function = {"name": "bash", "arguments": json.dumps(arguments)}
        return {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"index": 0, "id": "call-1", "type": "function", "function": function}],
        }


class _Handler(BaseHTTPRequestHandler):
    server: ScriptedModel

    def do_POST(self) -> None:
        """Answer a request, at once or as a stream."""
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        message = self.server.reply(request)
        reason = "tool_calls" if message.get("tool_calls") else "stop"
        about = {"id": "scripted", "created": 0, "model": request["model"]}
        usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
        if request.get("stream"):
            about["object"] = "chat.completion.chunk"
            chunks: list[dict[str, Any]] = [
                {**about, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
                {**about, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage},
            ]
            text = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
        else:
            about["object"] = "chat.completion"
            choice = {"index": 0, "message": message, "finish_reason": reason}
            text = json.dumps({**about, "choices": [choice], "usage": usage})
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream" if request.get("stream") else "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


if __name__ == "__main__":
    with ScriptedModel(sys.argv[1]) as server:
        print(server.url, flush=True)
        server.serve_forever()
