"""The tools of the service desk as those of an MCP server, used by the package's own client over stdio and HTTP."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import gymnasium as gym
import httpx
import pytest
from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from pydantic import AnyUrl

import drift_envs  # noqa: F401 - registers the ids
from drift_envs.errors import ArgumentError
from drift_envs.integrations.mcp import TOKEN_VARIABLE
from drift_envs.integrations.mcp_tools import EVALUATOR_TOOLS, EVALUATOR_VARIABLE, DeskLifetime, make_tool_server
from tests.documents import read_code

ROOT = Path(__file__).resolve().parents[3]
TOKEN, EVALUATOR = "a-token-of-this-test-alone", "the-evaluators-token-of-this-test"
SHORT = (  # a drift of each sort, an episode each
    "version: 1\nname: short\nenv: DriftTools-v0\nclock: episode\ntasks: {pool: 4, order: shuffled}\nbase: {shop: 7}\n"
    "drifts:\n  - {name: hidden, at: 1, set: {units: cents}}\n"
    "  - {name: renamed, at: 2, set: {names: {find_customer: search_account}}}\n"
    "  - {name: written, at: 3, set: {policy: {return_days: 60}, page: {return_days: 60}}}\n"
)


@pytest.fixture
def schedule(tmp_path):
    path = tmp_path / "short.yaml"
    path.write_text(SHORT, encoding="utf-8")
    return path


def plans(schedule, episodes, env_id="DriftTools-v0"):
    """The calls of the oracle, an episode a list, from an instance with the server's seed."""
    env = gym.make(env_id, schedule=str(schedule), text=True)
    oracle, found = env.get_wrapper_attr("oracle"), []
    for tick in range(episodes):
        state, _ = env.reset(seed=0 if tick == 0 else None)
        calls, ended = [], False
        while not ended:
            calls.append(json.loads(oracle.action(state, tick)))
            state, _, ended, *_ = env.step(json.dumps(calls[-1]))
        found.append(calls)
    return found


def data(result):
    return json.loads(result.content[0].text)


class Heard:
    """The notifications that a client has got since it last asked."""

    def __init__(self):
        self._methods = []

    async def __call__(self, message):
        if isinstance(message, types.ServerNotification):
            uri = getattr(message.root.params, "uri", None)
            self._methods.append(message.root.method if uri is None else f"{message.root.method} {uri}")

    def take(self):
        taken, self._methods = self._methods, []
        return taken


async def meet(session, calls):
    """Meet a request; the last answer."""
    for call in calls:
        result = await session.call_tool(call["tool"], call["arguments"])
    return data(result)


def command(schedule, *more, env_id="DriftTools-v0"):
    return ["-m", "drift_envs", "mcp", env_id, "--tools", "--schedule", str(schedule), *more]


def test_drifts_are_announced_over_stdio_if_they_can_be_seen(schedule, tmp_path):
    log, calls, heard = tmp_path / "log.jsonl", plans(schedule, 4), Heard()
    environment = {**os.environ, EVALUATOR_VARIABLE: EVALUATOR}
    server = StdioServerParameters(command=sys.executable, args=command(schedule, "--log", str(log)), env=environment)

    async def client():
        async with stdio_client(server) as streams, ClientSession(*streams, message_handler=heard) as session:
            started = await session.initialize()
            assert started.capabilities.tools.listChanged
            assert started.capabilities.resources.subscribe
            tools = {tool.name: tool for tool in (await session.list_tools()).tools}
            assert {"next_request", "find_customer", "refund", "finish"} <= set(tools)
            assert not set(tools) & set(EVALUATOR_TOOLS)
            assert tools["refund"].inputSchema["required"] == ["payment_id", "amount"]
            assert tools["get_order"].annotations.readOnlyHint
            assert tools["refund"].annotations.destructiveHint
            early = await session.call_tool("find_customer", calls[0][0]["arguments"])
            assert (early.isError, data(early)["error"]) == (True, "no_request")
            for uri in ("desk://policy", "desk://request"):
                await session.subscribe_resource(AnyUrl(uri))
            scores, told = [], []
            for episode in range(4):
                heard.take()
                request = data(await session.call_tool("next_request", {}))
                told.append(set(heard.take()) - {"notifications/resources/updated desk://request"})
                read = await session.read_resource(AnyUrl("desk://request"))
                assert read.contents[0].text == request["request"]
                if episode == 2:
                    old = await session.call_tool("find_customer", calls[2][0]["arguments"])
                    assert (old.isError, data(old)["error"]) == (True, "unknown_tool")
                    assert "search_account" in {tool.name for tool in (await session.list_tools()).tools}
                scores.append((await meet(session, calls[episode]))["score"])
            assert scores == [1.0] * 4
            assert told == [
                set(),
                set(),
                {"notifications/tools/list_changed"},
                {"notifications/resources/updated desk://policy"},
            ]
            page = await session.read_resource(AnyUrl("desk://policy"))
            assert "until 60 days" in page.contents[0].text
            return await session.call_tool("evaluator_scores", {"token": EVALUATOR})

    scores = data(anyio.run(client))["sessions"]["0"]
    assert scores["score"] == 1.0
    assert {"score_source", "score_hidden", "score_renamed", "score_written"} <= set(scores)
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert [line["phase"] for line in lines] == ["source", "hidden", "renamed", "written"]


@asynccontextmanager
async def connected(address):
    """A session over HTTP, and its id."""
    async with (
        httpx.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=120) as http,
        streamable_http_client(address, http_client=http) as (read, write, get_session_id),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        yield session, get_session_id()


@asynccontextmanager
async def serving(schedule, *more):
    """A server over HTTP in a process of its own; yields how to open a session."""
    environment = {**os.environ, TOKEN_VARIABLE: TOKEN, EVALUATOR_VARIABLE: EVALUATOR}
    process = await anyio.open_process([sys.executable, *command(schedule, "--http", *more)], env=environment)
    try:
        printed = b""
        with anyio.fail_after(120):
            while b"Authorization" not in printed:
                printed += await process.stderr.receive()
        address = re.search(r"http://\S+", printed.decode()).group()
        assert EVALUATOR not in printed.decode()

        @asynccontextmanager
        async def opened():
            async with connected(address) as (session, _):
                yield session

        yield opened, address
    finally:
        process.terminate()
        await process.wait()


def test_two_clients_over_http_do_not_touch_each_other_and_an_evaluator_sees_both(schedule):
    calls = plans(schedule, 3)

    async def client():
        async with serving(schedule) as (opened, address), opened() as first, opened() as second:
            for session in (first, second):
                assert "request" in data(await session.call_tool("next_request", {}))
            half = calls[0][: len(calls[0]) // 2]
            for call in half:
                await first.call_tool(call["tool"], call["arguments"])
            assert (await meet(second, calls[0]))["score"] == 1.0
            await second.call_tool("next_request", {})
            assert (await meet(second, calls[1]))["score"] == 1.0
            assert (await meet(first, calls[0][len(half) :]))["score"] == 1.0
            for arguments in ({}, {"token": "wrong"}, {"token": 5}):
                shown = data(await first.call_tool("evaluator_phase", arguments))
                assert shown == data(await first.call_tool("no_such_tool", arguments))
            async with opened() as evaluator:
                phases = data(await evaluator.call_tool("evaluator_phase", {"token": EVALUATOR}))["sessions"]
                assert [phases[key]["phase"] for key in "012"] == ["source", "hidden", None]
                assert phases["1"]["knobs"]["units"] == "cents"
                episodes = data(await evaluator.call_tool("evaluator_log", {"token": EVALUATOR}))["episodes"]
                assert [(one["session"], one["score"]) for one in episodes] == [(1, 1.0), (1, 1.0), (0, 1.0)]
            assert httpx.post(address, json={}).status_code == 401
            other = {"Authorization": f"Bearer {TOKEN}", "Host": "evil.example"}
            assert httpx.post(address, json={}, headers=other).status_code in (403, 421)

    anyio.run(client)


def make_wrong_calls():
    """Calls that the desk refuses, each with the code of its answer."""
    deep = "x"
    for _ in range(60):
        deep = [deep]
    return (
        ("no_such_tool", {}, "unknown_tool"),
        ("find_customer", {}, "missing_argument"),
        ("find_customer", {"email": "x" * 60_000}, "invalid_call"),
        ("find_customer", {"email": deep}, "invalid_value"),
        ("find_customer", {"email": "'; DROP TABLE customers; --"}, "not_found"),
        ("get_order", {"order_id": "O-2000"}, "not_looked_up"),
        ("refund", {"payment_id": "P-4000", "amount": "5"}, "invalid_value"),
    )


async def check_bad_calls(session, calls, wrong):
    """Bad calls are answered, and the request that is open can still be met."""
    await session.call_tool("next_request", {})
    for name, arguments, code in wrong:
        result = await session.call_tool(name, arguments)
        assert (result.isError, data(result)["error"]) == (True, code)
    assert (await meet(session, calls))["score"] == 1.0
    over = await session.call_tool("finish", {})
    assert data(over)["error"] == "no_request"


def test_bad_calls_are_answered_over_stdio(schedule):
    wrong = (*make_wrong_calls(), ("find_customer", {"email": "x" * 1_000_000}, "invalid_call"))
    calls = plans(schedule, 1)[0]

    async def client():
        server = StdioServerParameters(command=sys.executable, args=command(schedule), env=dict(os.environ))
        async with stdio_client(server) as streams, ClientSession(*streams) as session:
            await session.initialize()
            await check_bad_calls(session, calls, wrong)

    anyio.run(client)


def test_bad_calls_are_answered_over_http_and_large_ones_refused(schedule):
    calls = plans(schedule, 1)[0]

    async def client():
        async with serving(schedule) as (_, address), connected(address) as (session, number):
            large = {"name": "find_customer", "arguments": {"email": "x" * 1_000_000}}
            message = {"jsonrpc": "2.0", "id": 1000, "method": "tools/call", "params": large}
            headers = {
                "Authorization": f"Bearer {TOKEN}",
                "Accept": "application/json, text/event-stream",
                "Mcp-Session-Id": number,
            }
            async with httpx.AsyncClient(headers=headers, timeout=120) as http:
                for _ in range(20):  # each over a connection of its own: a reset would show in some
                    assert (await http.post(address, json=message)).status_code == 413
                deep = json.dumps(message).replace(json.dumps("x" * 1_000_000), "[" * 20_000 + "]" * 20_000)
                for body in (b"\xff\xfe{", b"hello", deep.encode()):
                    assert (await http.post(address, content=body)).status_code in (400, 500)
            assert (await httpx.AsyncClient(timeout=120).post(address, json=message)).status_code == 401
            await check_bad_calls(session, calls, make_wrong_calls())

    anyio.run(client)


def test_issues_of_a_repository_are_met_over_stdio(tmp_path):
    path, heard = tmp_path / "issues.yaml", Heard()
    path.write_text(
        "version: 1\nname: issues\nenv: DriftRepository-v0\nclock: episode\ntasks: {pool: 6, order: fixed}\n"
        "base: {project: 7}\ndrifts:\n  - {name: hidden, at: 1, set: {rounding: 1}}\n"
        "  - {name: written, at: 2, set: {fragment: 1}}\n",
        encoding="utf-8",
    )
    calls = plans(path, 3, "DriftRepository-v0")
    server = StdioServerParameters(command=sys.executable, args=command(path, env_id="DriftRepository-v0"))

    async def client():
        async with stdio_client(server) as streams, ClientSession(*streams, message_handler=heard) as session:
            await session.initialize()
            tools = {tool.name: tool for tool in (await session.list_tools()).tools}
            assert set(tools) == {
                *("next_request", "list_files", "read_file", "search", "write_file", "run_checks", "submit")
            }
            assert tools["read_file"].annotations.readOnlyHint
            assert tools["write_file"].inputSchema["required"] == ["path"]
            early = await session.call_tool("submit", {})
            assert (early.isError, data(early)["error"]) == (True, "no_request")
            await session.subscribe_resource(AnyUrl("desk://policy"))
            scores, told = [], []
            for episode in range(3):
                heard.take()
                issue = data(await session.call_tool("next_request", {}))
                told.append("notifications/resources/updated desk://policy" in heard.take())
                assert issue["number"] == episode
                page = (await session.read_resource(AnyUrl("desk://policy"))).contents[0].text
                read = data(await session.call_tool("read_file", {"path": "CONTRIBUTING.md"}))
                assert read == {"path": "CONTRIBUTING.md", "text": page}
                missing = await session.call_tool("read_file", {"path": "nowhere.py"})
                assert (missing.isError, data(missing)["error"]) == (True, "not_found")
                if episode == 1:
                    refused = await session.call_tool("submit", {})
                    assert (refused.isError, data(refused)["accepted"]) == (False, False)
                    assert data(refused)["log"].startswith("checks failed")
                scores.append((await meet(session, calls[episode]))["score"])
            assert scores == [1.0, pytest.approx(2 / 3), 1.0]
            assert told == [False, False, True]

    anyio.run(client)


@pytest.mark.parametrize("name", ["next_request", "evaluator_log"])
@pytest.mark.parametrize("what", [{"set": {"names": None}}, {"choice": {"names": [{}, None]}}], ids=["set", "choice"])
def test_no_drift_may_take_the_name_of_a_tool_of_the_server(name, what):
    names = {"refund": name}
    drift = json.loads(json.dumps({"name": "taken", "at": 1, **what}).replace("null", json.dumps(names)))
    schedule = {"version": 1, "name": "taken", "env": "DriftTools-v0", "clock": "episode", "drifts": [drift]}
    with pytest.raises(ArgumentError, match=f"`names` should give 'refund' none of .* Received '{name}'"):
        make_tool_server(schedule=schedule)


def test_tools_and_page_are_those_of_the_schedule_before_the_first_request():
    base = {"shop": 7, "names": {"find_customer": "lookup"}, "page": {"return_days": 10}}
    schedule = {"version": 1, "name": "renamed", "env": "DriftTools-v0", "clock": "episode", "base": base}
    life = DeskLifetime("DriftTools-v0", schedule, 0)
    before = life.describe_tools(), life.page
    assert "lookup" in {tool.name for tool in before[0]}
    assert "until 10 days" in before[1]
    life.begin_request()
    assert (life.describe_tools(), life.page) == before


def test_mistakes_are_told_before_a_client_comes(monkeypatch):
    monkeypatch.setenv(EVALUATOR_VARIABLE, "short")
    with pytest.raises(ArgumentError, match="16 characters"):
        make_tool_server()
    with pytest.raises(ArgumentError, match="`env_id` should be one of DriftTools-v0, DriftTau2-v0"):
        make_tool_server("DriftFrozenLake-v0")
    done = subprocess.run(
        [sys.executable, "-m", "drift_envs", "mcp", "DriftFrozenLake-v0", "--tools"],
        capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode, "--tools" in done.stderr, "Traceback" in done.stderr) == (2, True, False)


@pytest.mark.parametrize("arguments", [["DriftTools-v0", "--tools"], ["DriftFrozenLake-v0"]], ids=["tools", "act"])
def test_a_client_that_goes_ends_the_process_in_order(arguments):
    done = subprocess.run(
        [sys.executable, "-m", "drift_envs", "mcp", *arguments],
        capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "")
    assert "Traceback" not in done.stderr


def test_the_code_of_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, code = read_code("docs/mcp.md")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    assert "find_customer" in done.stdout
