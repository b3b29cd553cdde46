"""Environments as tools of an MCP server (Model Context Protocol); needs the extra `mcp`.

* `make_server` - an MCP server with the tools `reset`, `act` and `observe`; each of its sessions is a lifetime
* `serve_stdio`, `serve_http` - run it for a client that starts this process, and on a loopback address

What a client gets is what any agent gets: no phase, tick or knob. A file written with `log=` has them, for evaluators.
"""

from __future__ import annotations

import itertools
import json
import os
import secrets
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Literal, Protocol

from drift_envs.errors import ArgumentError, MissingDependencyError, StateError
from drift_envs.integrations.lifetime import OWN, TextLifetime
from drift_envs.integrations.loopback import LOOPBACK, HostRule, guard, listen, refuse
from drift_envs.wrappers.drift import Source

try:
    import uvicorn
    from mcp.server.fastmcp import Context, FastMCP
    from mcp.server.fastmcp.exceptions import ToolError
except ImportError as error:
    raise MissingDependencyError('`mcp` is not installed, run `pip install "drift-envs[mcp]"`') from error

TOKEN_VARIABLE = "DRIFT_ENVS_MCP_TOKEN"
"""The environment variable with the token of `serve_http`; without it one is drawn at each start."""

INSTRUCTIONS = (
    "An environment of text episodes. Call `reset` to begin an episode, `act` with one of its admissible actions until "
    "the episode has ended, then `reset` for the next one. `observe` shows the present state again and takes no time. "
    "Episodes follow each other in one lifetime; what was true in earlier episodes may no longer be true."
)


class McpServer(Protocol):
    """A server that can be run: `FastMCP`, or `drift_envs.integrations.mcp_tools.ToolServer`."""

    def run(self, transport: Literal["stdio"] = "stdio") -> None:
        """Serve the client that started this process."""

    def streamable_http_app(self) -> Any:
        """The ASGI application that serves streamable HTTP."""


def make_server(
    env_id: str, schedule: Source = OWN, seed: int = 0, log: str | os.PathLike[str] | None = None
) -> FastMCP[TextLifetime]:
    """Make an MCP server with the tools `reset`, `act` and `observe`.

    Each session of the server is a lifetime of its own that starts at the schedule's first tick.

    Args:
        env_id: one of the ids of this package.
        schedule: what drifts; by default that of the id; `None` for nothing.
        seed: of every session's instance.
        log: a file to which a line of JSON is appended for every episode: `session`, and what `on_episode` of
            `TextLifetime` gets.

    Raises:
        ArgumentError: an argument breaks a rule, or the log cannot be written.
        ScheduleError: the schedule cannot be used.
    """
    TextLifetime(env_id, schedule, seed).close()  # mistakes are told now, not to the first client
    if log is not None:
        try:
            Path(log).open("a", encoding="utf-8").close()
        except OSError as error:
            raise ArgumentError(f"`log` should be a file that can be written: {error}") from error
    sessions = itertools.count()

    @asynccontextmanager
    async def live(_: FastMCP[TextLifetime]) -> AsyncIterator[TextLifetime]:
        session = next(sessions)

        def write(line: dict[str, Any]) -> None:
            if log is not None:
                with Path(log).open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps({"session": session, **line}) + "\n")

        life = TextLifetime(env_id, schedule, seed, write)
        try:
            yield life
        finally:
            life.close()

    lifespan: Callable[[FastMCP[TextLifetime]], AbstractAsyncContextManager[TextLifetime]] = live
    server: FastMCP[TextLifetime] = FastMCP(
        f"drift-envs {env_id}", instructions=INSTRUCTIONS, lifespan=lifespan, log_level="WARNING", host=LOOPBACK
    )

    def reset(context: Context[Any, TextLifetime, Any]) -> dict[str, Any]:
        """Begin the next episode."""
        return _life(context).reset()

    def act(action: str, context: Context[Any, TextLifetime, Any]) -> dict[str, Any]:
        """Take an action of the present episode, given as text."""
        try:
            return _life(context).act(action)
        except (ArgumentError, StateError) as error:
            raise ToolError(str(error)) from error

    def observe(context: Context[Any, TextLifetime, Any]) -> dict[str, Any]:
        """Show the present state again; this takes no time."""
        try:
            return _life(context).observe()
        except StateError as error:
            raise ToolError(str(error)) from error

    for tool in (reset, act, observe):
        server.add_tool(tool)
    return server


def _life(context: Context[Any, TextLifetime, Any]) -> TextLifetime:
    life: TextLifetime = context.request_context.lifespan_context
    return life


def serve_stdio(server: McpServer) -> None:
    """Serve the client that started this process, over standard input and output, until it closes them.

    Args:
        server: what `make_server` or `make_tool_server` returned.
    """
    server.run("stdio")


def serve_http(server: McpServer, port: int = 0) -> None:
    """Serve clients on a loopback address over streamable HTTP, until the process is interrupted.

    Every request needs the header `Authorization: Bearer TOKEN`, with the token of the environment variable
    `DRIFT_ENVS_MCP_TOKEN`; if there is none, a token is drawn. Address and token are printed on standard error.

    Args:
        server: what `make_server` or `make_tool_server` returned.
        port: 0 takes a free one.

    Raises:
        ArgumentError: the port cannot be used, or the token is shorter than 16 characters.
    """
    given = os.environ.get(TOKEN_VARIABLE)
    if given is not None and len(given) < 16:
        raise ArgumentError(f"`{TOKEN_VARIABLE}` should have 16 characters or more. Received {len(given)}")
    token = given or secrets.token_urlsafe(24)
    app = _require_token(guard(server.streamable_http_app(), HostRule()), token)
    with listen(port) as listener:
        print(f"serving http://{LOOPBACK}:{listener.getsockname()[1]}/mcp", file=sys.stderr)
        # a token that the user has given is not repeated on the screen
        shown = token if given is None else f"(of {TOKEN_VARIABLE})"
        print(f"Authorization: Bearer {shown}", file=sys.stderr, flush=True)
        uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=2)).run([listener])


def _require_token(app: Any, token: str) -> Any:
    """An ASGI application that refuses requests without the token."""
    expected = f"Bearer {token}".encode()

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            received = dict(scope["headers"]).get(b"authorization", b"")
            if not secrets.compare_digest(received, expected):
                reason = "the header `Authorization: Bearer TOKEN` is missing or wrong"
                await refuse(scope, receive, send, 401, reason)
                return
        await app(scope, receive, send)

    return guarded
