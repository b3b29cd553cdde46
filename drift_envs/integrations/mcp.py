"""Environments as tools of an MCP server (Model Context Protocol); needs the extra `mcp`.

What a client gets is what any agent gets: no phase, tick or knob. A file written with `log=` has them, for evaluators.
"""

from __future__ import annotations

import itertools
import json
import logging
import os
import secrets
import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from drift_envs.errors import ArgumentError, StateError, needs_extra
from drift_envs.integrations.lifetime import OWN, TextLifetime, open_log
from drift_envs.integrations.loopback import LOOPBACK, HostRule, guard, listen, refuse
from drift_envs.wrappers.drift import Source

TOKEN_VARIABLE = "DRIFT_ENVS_MCP_TOKEN"  # nosec B105  # a name
"""The environment variable with the token of `serve_http`; without it one is drawn at each start."""

INSTRUCTIONS = (
    "An environment of text episodes. Call `reset` to begin an episode, `act` with one of its admissible actions until "
    "the episode has ended, then `reset` for the next one. `observe` shows the present state again and takes no time. "
    "Episodes follow each other in one lifetime; what was true in earlier episodes may no longer be true."
)

_TEXT, _NUMBER = {"type": "string"}, {"type": "number"}

_SHOWN = {
    "observation": _TEXT | {"description": "the state"},
    "task": _TEXT | {"description": "what is to be done in this episode"},
    "actions": {"type": "array", "items": _TEXT, "description": "the admissible actions"},
    "score": _NUMBER | {"description": "of this episode so far"},
    "reward": _NUMBER | {"description": "of the last action"},
    "ended": {"type": "boolean", "description": "whether the episode is over"},
    "episode": {"type": "integer", "description": "its number, from 0"},
    "step": {"type": "integer", "description": "the actions taken in this episode"},
    "error": _TEXT | {"description": "why the environment has refused the last action; absent if it has not"},
    "tools": {
        "type": "array",
        "items": {"type": "object"},
        "description": "the tools of a service desk, each with its JSON Schema; absent elsewhere",
    },
}
"""The result of every tool, as JSON Schema."""

_OPTIONAL = ("error", "tools")

_ACTION = _TEXT | {"description": "one of `actions`, or another action of the environment, as text"}


with needs_extra("mcp", "mcp"):
    import anyio
    from mcp import types as types  # handed on to the server of tools
    from mcp.server.lowlevel import NotificationOptions, Server
    from mcp.server.stdio import stdio_server
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from mcp.server.transport_security import TransportSecuritySettings
    from starlette.applications import Starlette
    from starlette.routing import Route


class _Server(Server[Any, Any]):  # type: ignore[misc, unused-ignore]
    """A server that says that its resources can be subscribed to, and whether its tools change."""

    def __init__(self, name: str, tools_change: bool, **arguments: Any) -> None:
        super().__init__(name, **arguments)
        self._tools_change = tools_change

    def get_capabilities(self, *_: Any) -> types.ServerCapabilities:
        found = super().get_capabilities(NotificationOptions(tools_changed=self._tools_change), {})
        if found.resources is not None:
            found.resources.subscribe = True
        return found


class LifetimeServer(ABC):
    """A server each of whose sessions is a lifetime of its own, which starts at the schedule's first tick.

    Args:
        name: what clients show.
        instructions: what clients tell their model.
        log: a file to which a line of JSON is appended for every episode, or `None`.
        tools_change: whether clients are notified of new tools.
    """

    def __init__(self, name: str, instructions: str, log: Path | None, tools_change: bool = False) -> None:
        self._log = log
        self._numbers = itertools.count()
        self._lives: dict[int, Any] = {}
        """The lifetimes of the open sessions, by number."""
        self._server = _Server(
            name, tools_change, version=version("drift-envs"), instructions=instructions, lifespan=self._live
        )
        self._server.list_tools()(self._list_tools)
        self._server.request_handlers[types.CallToolRequest] = self._call_tool

    @abstractmethod
    def _begin(self, on_episode: Callable[[dict[str, Any]], None]) -> TextLifetime:
        """The lifetime of a new session."""

    @abstractmethod
    async def _list_tools(self) -> list[types.Tool]:
        """The tools on offer."""

    @abstractmethod
    async def _call_tool(self, request: types.CallToolRequest) -> types.ServerResult:
        """Answer a call."""

    def _note(self, line: dict[str, Any]) -> None:
        """An episode has ended."""
        if self._log is not None:
            with self._log.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(line) + "\n")

    @asynccontextmanager
    async def _live(self, _: Any) -> AsyncIterator[TextLifetime]:
        session = next(self._numbers)
        life = self._lives[session] = self._begin(lambda line: self._note({"session": session, **line}))
        try:
            yield life
        finally:
            life.close()
            del self._lives[session]

    @property
    def _life(self) -> Any:
        return self._server.request_context.lifespan_context

    async def run_stdio(self) -> None:
        """Serve the client that started this process, until it closes the connection."""
        # copies, since the package closes what it is given, and this process flushes its output at the end
        with (
            open(os.dup(sys.stdin.fileno()), encoding="utf-8", errors="replace") as source,
            open(os.dup(sys.stdout.fileno()), "w", encoding="utf-8") as target,
        ):
            async with stdio_server(anyio.wrap_file(source), anyio.wrap_file(target)) as (read, write):
                await self._server.run(read, write, self._server.create_initialization_options())

    def streamable_http_app(self) -> Starlette:
        """The ASGI application that serves streamable HTTP on a loopback address, at `/mcp`."""
        hosts = [f"{host}:*" for host in (LOOPBACK, "localhost")]
        security = TransportSecuritySettings(
            enable_dns_rebinding_protection=True,
            allowed_hosts=hosts,
            allowed_origins=[f"http://{host}" for host in hosts],
        )
        logging.getLogger("mcp.server.streamable_http").addFilter(_is_fault)
        manager = StreamableHTTPSessionManager(app=self._server, security_settings=security)

        @asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncIterator[None]:
            async with manager.run():
                yield

        return Starlette(routes=[Route("/mcp", endpoint=_Endpoint(manager))], lifespan=lifespan)


def _is_fault(record: logging.LogRecord) -> bool:
    """Whether a record is about anything but a client that has left, or has sent no JSON, which are no errors here."""
    raised = record.exc_info[1] if record.exc_info else None
    client = (anyio.ClosedResourceError, anyio.BrokenResourceError, UnicodeDecodeError, RecursionError)
    return not isinstance(raised, client)


class _Endpoint:
    """The session manager as an ASGI application."""

    def __init__(self, manager: StreamableHTTPSessionManager) -> None:
        self._manager = manager

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle a request."""
        await self._manager.handle_request(scope, receive, send)


def make_result(answer: dict[str, Any], is_error: bool = False) -> types.ServerResult:
    """The result of a tool, as text, and as data if it is no error: clients check data against the tool's schema.

    Args:
        answer: plain data.
        is_error: whether the tool has refused the call.
    """
    text = types.TextContent(type="text", text=json.dumps(answer))
    data = None if is_error else json.loads(text.text)
    return types.ServerResult(types.CallToolResult(content=[text], structuredContent=data, isError=is_error))


def describe(
    name: str,
    description: str,
    properties: dict[str, Any],
    output: dict[str, Any] | None = None,
    required: Sequence[str] | None = None,
    reads: bool = False,
) -> types.Tool:
    """Describe a tool of the connection itself; nothing that it does leaves the simulation.

    Args:
        name: its name.
        description: what it does.
        properties: its arguments, each with a JSON Schema; all are required.
        output: the JSON Schemas of the keys of its result.
        required: the keys of its result that are always there; by default all.
        reads: whether it changes nothing.
    """
    shown = None
    if output is not None:
        keys = output if required is None else required
        shown = {"type": "object", "properties": output, "required": list(keys)}
    return types.Tool(
        name=name,
        description=description,
        inputSchema={"type": "object", "properties": properties, "required": list(properties)},
        outputSchema=shown,
        annotations=types.ToolAnnotations(
            readOnlyHint=reads, destructiveHint=False, idempotentHint=reads, openWorldHint=False
        ),
    )


_TOOLS = {
    name: describe(name, about, properties, _SHOWN, [key for key in _SHOWN if key not in _OPTIONAL], reads)
    for name, about, properties, reads in (
        ("reset", "Begin the next episode.", {}, False),
        ("act", "Take an action of the present episode.", {"action": _ACTION}, False),
        ("observe", "Show the present state again; this takes no time.", {}, True),
    )
}


class ActServer(LifetimeServer):
    """A server with the tools `reset`, `act` and `observe`.

    Args:
        env_id: one of the ids of this package, or with a schedule of any environment of Gymnasium.
        schedule: what drifts.
        seed: of every session's instance.
        log: a file to which a line of JSON is appended for every episode, or `None`.
    """

    def __init__(self, env_id: str, schedule: Source, seed: int, log: Path | None) -> None:
        super().__init__(f"drift-envs {env_id}", INSTRUCTIONS, log)
        self._env_id, self._schedule, self._seed = env_id, schedule, seed

    def _begin(self, on_episode: Callable[[dict[str, Any]], None]) -> TextLifetime:
        return TextLifetime(self._env_id, self._schedule, self._seed, on_episode)

    async def _list_tools(self) -> list[types.Tool]:
        return list(_TOOLS.values())

    async def _call_tool(self, request: types.CallToolRequest) -> types.ServerResult:
        name, arguments, life = request.params.name, request.params.arguments or {}, self._life
        try:
            if name == "act":
                if "action" not in arguments:
                    raise ArgumentError("`act` needs the argument `action`")
                return make_result(life.act(arguments["action"]))
            if name not in _TOOLS:
                raise ArgumentError(f"there is no tool {name[:80]!r}; there are {', '.join(_TOOLS)}")
            return make_result(life.reset() if name == "reset" else life.observe())
        except (ArgumentError, StateError) as error:
            return make_result({"error": str(error)}, is_error=True)


def make_server(
    env_id: str, schedule: Source = OWN, seed: int = 0, log: str | os.PathLike[str] | None = None
) -> ActServer:
    """Make an MCP server with the tools `reset`, `act` and `observe`.

    Each session of the server is a lifetime of its own that starts at the schedule's first tick.

    Args:
        env_id: one of the ids of this package, or with a schedule of any environment of Gymnasium.
        schedule: what drifts; by default that of the id; `None` for nothing.
        seed: of every session's instance.
        log: a file to which a line of JSON is appended for every episode: `session`, and what `on_episode` of
            `TextLifetime` gets.

    Raises:
        ArgumentError: an argument breaks a rule, or the log cannot be written.
        ScheduleError: the schedule cannot be used.
    """
    TextLifetime(env_id, schedule, seed).close()  # mistakes are told now, not to the first client
    return ActServer(env_id, schedule, seed, open_log(log))


def serve_stdio(server: LifetimeServer) -> None:
    """Serve the client that started this process, over standard input and output, until it closes them.

    Args:
        server: what `make_server` or `make_tool_server` returned.

    Raises:
        ArgumentError: standard input or output is closed.
    """
    if sys.stdin is None or sys.stdout is None:
        raise ArgumentError("standard input and output should be open: the client talks over them")
    anyio.run(server.run_stdio)


def serve_http(server: LifetimeServer, port: int = 0) -> None:
    """Serve clients on a loopback address over streamable HTTP, until the process is interrupted.

    Every request needs the header `Authorization: Bearer TOKEN`, with the token of the environment variable
    `DRIFT_ENVS_MCP_TOKEN`; if there is none, a token is drawn. Address and token are printed on standard error.

    Args:
        server: what `make_server` or `make_tool_server` returned.
        port: 0 takes a free one.

    Raises:
        ArgumentError: the port cannot be used, or the token is shorter than 16 characters.
    """
    import uvicorn

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
