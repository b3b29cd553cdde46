"""Environments as tools of an MCP server (Model Context Protocol); needs the extra `mcp`.

* `make_server` - an MCP server with the tools `reset`, `act` and `observe`; each of its sessions is a lifetime
* `serve_stdio`, `serve_http` - run it for a client that starts this process, and on a loopback address

What a client gets is what any agent gets: no phase, tick or knob. A file written with `log=` has them, for evaluators.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from drift_envs.errors import ArgumentError, StateError
from drift_envs.integrations.lifetime import OWN, TextLifetime
from drift_envs.integrations.loopback import LOOPBACK, HostRule, guard, listen, refuse
from drift_envs.integrations.mcp_server import LifetimeServer, describe, make_result, open_log, types
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
}
"""The result of every tool, as JSON Schema."""

_ACTION = _TEXT | {"description": "one of `actions`, or another action of the environment, as text"}

_TOOLS = {
    name: describe(name, about, properties, _SHOWN, [key for key in _SHOWN if key != "error"], reads)
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
    server.run_stdio()


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
