"""What the MCP servers of this package have in common; needs the extra `mcp`.

* `LifetimeServer` - a server each of whose sessions is a lifetime, over stdio and streamable HTTP
* `make_result`, `describe` - the result of a tool, and its description
* `open_log` - the file of `log=`
"""

from __future__ import annotations

import itertools
import json
import logging
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from drift_envs.errors import ArgumentError, MissingDependencyError
from drift_envs.integrations.lifetime import TextLifetime
from drift_envs.integrations.loopback import LOOPBACK

try:
    import anyio
    from mcp import types
    from mcp.server.lowlevel import NotificationOptions, Server
    from mcp.server.stdio import stdio_server
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from mcp.server.transport_security import TransportSecuritySettings
    from starlette.applications import Starlette
    from starlette.routing import Route
except ImportError as error:
    raise MissingDependencyError('`mcp` is not installed, run `pip install "drift-envs[mcp]"`') from error


__all__ = ["LifetimeServer", "describe", "make_result", "open_log", "types"]


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

    def run_stdio(self) -> None:
        """Serve the client that started this process, until it closes the connection."""
        anyio.run(self._run_stdio)

    async def _run_stdio(self) -> None:
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


def open_log(log: str | os.PathLike[str] | None) -> Path | None:
    """The file of `log=`, which is created.

    Args:
        log: its path, or `None`.

    Raises:
        ArgumentError: it cannot be written.
    """
    if log is None:
        return None
    try:
        Path(log).open("a", encoding="utf-8").close()
    except OSError as error:
        raise ArgumentError(f"`log` should be a file that can be written: {error}") from error
    return Path(log)
