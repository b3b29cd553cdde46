"""Tools of `DriftTools-v0`, `DriftTau2-v0` and `DriftRepository-v0` as those of an MCP server; needs the extra `mcp`.

A client gets what any agent gets. A drift of a schema sends `notifications/tools/list_changed`, one of the policy page
`notifications/resources/updated`; what drifts without either is not announced. The evaluator's tools are listed to no
client, and answer as if they were not there unless the token is right.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from drift_envs.checks import check_choice
from drift_envs.errors import ArgumentError, StateError, needs_extra
from drift_envs.integrations.lifetime import OWN, TextLifetime, lifetime_scores, open_log
from drift_envs.integrations.mcp import LifetimeServer, describe, make_result, types
from drift_envs.knobs import thaw
from drift_envs.schedule import Schedule
from drift_envs.wrappers.drift import Source

with needs_extra("mcp", "mcp"):
    import anyio
    from mcp.server.lowlevel.helper_types import ReadResourceContents
    from pydantic import AnyUrl

EVALUATOR_VARIABLE = "DRIFT_ENVS_MCP_EVALUATOR"
"""The environment variable with the evaluator's token; without it one is drawn and printed at each start."""

NEXT_REQUEST = "next_request"
REQUEST_URI, POLICY_URI = "desk://request", "desk://policy"
EVALUATOR_TOOLS = ("evaluator_log", "evaluator_phase", "evaluator_scores")
OWN_TOOLS = (NEXT_REQUEST, *EVALUATOR_TOOLS)
"""The tools that are not the desk's; no drift may give their names to others."""

_INSTRUCTIONS = (
    "Call `next_request` for the request of the next customer, read the policy in the resource "
    f"{POLICY_URI}, use the tools, and end with the last ones of the list: finish, or hand over to a person. "
    "What is in the database then counts. Requests follow each other in one lifetime; what was true for earlier ones "
    "may no longer be true."
)
INSTRUCTIONS = {
    "DriftTools-v0": "The service desk of a shop. Records have to be looked up before they can be named. "
    + _INSTRUCTIONS,
    "DriftTau2-v0": f"The desk of an airline or a shop. {_INSTRUCTIONS}",
    "DriftRepository-v0": "The repository of a small project. Call `next_request` for the next issue, read how to "
    f"contribute in the resource {POLICY_URI}, write files, and submit them; what continuous integration refuses can "
    "be changed and submitted again. Issues follow each other in one lifetime; what was true for earlier ones may no "
    "longer be true.",
}
"""By id, what the server tells a client; other ids have no tools."""


class DeskLifetime(TextLifetime):
    """A lifetime at the service desk, one session of a client.

    Args:
        env_id: a key of `INSTRUCTIONS`.
        schedule: what drifts.
        seed: of the instance.
        on_episode: called at the end of every request, as that of `TextLifetime`.

    Raises:
        ArgumentError: the schedule gives a tool the name of one of `OWN_TOOLS`.
        ScheduleError: the schedule cannot be used.
    """

    def __init__(
        self, env_id: str, schedule: Source, seed: int, on_episode: Callable[[dict[str, Any]], None] | None = None
    ) -> None:
        super().__init__(env_id, schedule, seed, on_episode)
        _check_names(self._env.get_wrapper_attr("schedule"))
        self._env.reset(seed=seed)  # the tools and the page of the first tick; the first request rewinds again
        self.subscribed: set[str] = set()
        """The resources whose updates the client has asked for."""

    @property
    def is_open(self) -> bool:
        """Whether a request is being met."""
        return self._going

    @property
    def _desk(self) -> Any:
        return self._env.unwrapped

    def describe_tools(self) -> list[types.Tool]:
        """The tools of the desk with their schemas, and the one that gets the next request."""
        output = {"request": {"type": "string"}, "number": {"type": "integer"}}
        about = "Get the request of the next customer. One that is open is given up."
        own = describe(NEXT_REQUEST, about, {}, output)
        return [own, *(_describe(tool, effect) for tool, effect in self._desk.list_tools())]

    @property
    def page(self) -> str:
        """The policy page."""
        page: str = self._desk.policy_page
        return page

    @property
    def request(self) -> str:
        """The present request in words."""
        return self._desk.request if self.is_open else f"No request is open. Call `{NEXT_REQUEST}`."

    def begin_request(self) -> dict[str, Any]:
        """Begin the next request; its number, counted from 0, and its words."""
        result = self.reset()
        return {"request": self.request, "number": result["episode"]}

    def use_tool(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Use a tool of the desk.

        Returns:
            The tool's answer; at the end of the request, also `request_ended` and the `score`.

        Raises:
            StateError: no request is open.
        """
        if not self.is_open:
            raise StateError(f"no request is open; call `{NEXT_REQUEST}`")
        result = self.act(json.dumps({"tool": name, "arguments": arguments}))
        answer: dict[str, Any] = dict(self._desk.episode.answer)
        if result["ended"]:
            answer |= {"request_ended": True, "score": result["score"]}
        return answer

    def truth(self) -> dict[str, Any]:
        """Phase, tick and knobs that differ from their defaults. For evaluators."""
        if not self._result:
            return {"phase": None}
        state = self._env.get_wrapper_attr("drift_state")
        defaults = self._desk.knobs.defaults()
        knobs = {name: value for name, value in state.knobs.items() if value != defaults.get(name, value)}
        return {"phase": state.phase, "tick": state.tick, "episode": self._episode, "step": self._step, "knobs": knobs}


class ToolServer(LifetimeServer):
    """A server whose tools are those of a service desk.

    Args:
        env_id: a key of `INSTRUCTIONS`.
        schedule: what drifts.
        seed: of every session's instance.
        log: a file to which a line of JSON is appended for every request, or `None`.
        token: the evaluator's token.
    """

    def __init__(self, env_id: str, schedule: Source, seed: int, log: Path | None, token: str) -> None:
        super().__init__(f"drift-envs {env_id}", INSTRUCTIONS[env_id], log, tools_change=True)
        self._env_id, self._schedule, self._seed, self._token = env_id, schedule, seed, token
        self._lines: list[dict[str, Any]] = []
        self._server.list_resources()(self._list_resources)
        self._server.read_resource()(self._read_resource)
        self._server.subscribe_resource()(self._subscribe)
        self._server.unsubscribe_resource()(self._unsubscribe)

    def _begin(self, on_episode: Callable[[dict[str, Any]], None]) -> DeskLifetime:
        return DeskLifetime(self._env_id, self._schedule, self._seed, on_episode)

    def _note(self, line: dict[str, Any]) -> None:
        self._lines.append(line)
        super()._note(line)

    @property
    def _life(self) -> DeskLifetime:
        life: DeskLifetime = super()._life
        return life

    async def _list_tools(self) -> list[types.Tool]:
        return self._life.describe_tools()

    async def _call_tool(self, request: types.CallToolRequest) -> types.ServerResult:
        name, arguments, life = request.params.name, request.params.arguments or {}, self._life
        if name in EVALUATOR_TOOLS and self._is_evaluator(arguments):
            return make_result(self._evaluate(name), is_error=False)
        tools, page = life.describe_tools(), life.page
        try:
            answer = life.begin_request() if name == NEXT_REQUEST else life.use_tool(name, arguments)
        except StateError as error:
            answer = {"error": "no_request", "message": str(error)}
        await self._announce(tools != life.describe_tools(), page != life.page, name == NEXT_REQUEST)
        return make_result(answer, is_error="error" in answer)

    async def _announce(self, tools: bool, page: bool, request: bool) -> None:
        """Tell the client what it can read anew; a client that has gone is told nothing."""
        session = self._server.request_context.session
        with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            if tools:
                await session.send_tool_list_changed()
            for uri, is_new in ((POLICY_URI, page), (REQUEST_URI, request)):
                if is_new and uri in self._life.subscribed:
                    await session.send_resource_updated(AnyUrl(uri))

    async def _list_resources(self) -> list[types.Resource]:
        described = ((REQUEST_URI, "The present request."), (POLICY_URI, "The policy page."))
        return [
            types.Resource(uri=AnyUrl(uri), name=uri.rpartition("/")[2], description=about, mimeType="text/plain")
            for uri, about in described
        ]

    async def _read_resource(self, uri: AnyUrl) -> list[ReadResourceContents]:
        texts = {REQUEST_URI: self._life.request, POLICY_URI: self._life.page}
        if str(uri) not in texts:
            raise ArgumentError(f"`uri` should be one of {', '.join(texts)}. Received {str(uri)[:200]!r}")
        return [ReadResourceContents(texts[str(uri)], "text/plain")]

    async def _subscribe(self, uri: AnyUrl) -> None:
        if str(uri) not in (REQUEST_URI, POLICY_URI):
            raise ArgumentError(f"`uri` should be one of {REQUEST_URI}, {POLICY_URI}. Received {str(uri)[:200]!r}")
        self._life.subscribed.add(str(uri))

    async def _unsubscribe(self, uri: AnyUrl) -> None:
        self._life.subscribed.discard(str(uri))

    def _is_evaluator(self, arguments: dict[str, Any]) -> bool:
        given = arguments.get("token")
        return isinstance(given, str) and secrets.compare_digest(given.encode(), self._token.encode())

    def _evaluate(self, name: str) -> dict[str, Any]:
        if name == "evaluator_log":
            return {"episodes": self._lines}
        if name == "evaluator_phase":
            return {"sessions": {str(session): life.truth() for session, life in self._lives.items()}}
        sessions = sorted({line["session"] for line in self._lines})
        return {
            "sessions": {
                str(session): lifetime_scores([line for line in self._lines if line["session"] == session])
                for session in sessions
            }
        }


def _check_names(schedule: Schedule | None) -> None:
    """Refuse new names of tools that are those of the server's own."""
    drifts = () if schedule is None else schedule.drifts
    layers = [{} if schedule is None else schedule.base.get("names", {})]
    layers += [names for drift in drifts for names in (drift.set.get("names", {}), *drift.choice.get("names", ()))]
    for tool, name in (pair for names in layers for pair in names.items()):
        if name in OWN_TOOLS:
            raise ArgumentError(f"`names` should give {tool!r} none of {', '.join(OWN_TOOLS)}. Received {name!r}")


def _describe(tool: Mapping[str, Any], effect: str) -> types.Tool:
    return types.Tool(
        name=tool["name"],
        description=tool["description"],
        inputSchema=thaw(tool["inputSchema"]),
        annotations=types.ToolAnnotations(
            readOnlyHint=effect == "read", destructiveHint=effect == "write", openWorldHint=False
        ),
    )


def make_tool_server(
    env_id: str = "DriftTools-v0", schedule: Source = OWN, seed: int = 0, log: str | os.PathLike[str] | None = None
) -> ToolServer:
    """Make an MCP server whose tools are those of a service desk.

    Each session of the server is a lifetime of its own that starts at the schedule's first tick.

    Args:
        env_id: a key of `INSTRUCTIONS`, the ids that have tools.
        schedule: what drifts; by default that of the id; `None` for nothing.
        seed: of every session's instance.
        log: a file to which a line of JSON is appended for every request: `session`, and what `on_episode` of
            `TextLifetime` gets.

    Raises:
        ArgumentError: an argument breaks a rule, the log cannot be written, or the evaluator's token is shorter than
            16 characters.
        ScheduleError: the schedule cannot be used.
    """
    check_choice("env_id", env_id, tuple(INSTRUCTIONS))
    DeskLifetime(env_id, schedule, seed).close()  # mistakes are told now, not to the first client
    path = open_log(log)
    token = os.environ.get(EVALUATOR_VARIABLE)
    if token is None:
        token = secrets.token_urlsafe(24)
        print(f"the evaluator's token: {token}", file=sys.stderr, flush=True)
    if len(token) < 16:
        raise ArgumentError(f"`{EVALUATOR_VARIABLE}` should have 16 characters or more. Received {len(token)}")
    return ToolServer(env_id, schedule, seed, path, token)
