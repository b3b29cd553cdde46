"""The MCP server, played by the package's own client over stdio and HTTP."""

from __future__ import annotations

import doctest
import json
import os
import re
import socket
import subprocess
import sys
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path

import anyio
import httpx
import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from drift_envs.errors import ArgumentError, StateError
from drift_envs.integrations.lifetime import TextLifetime
from drift_envs.integrations.mcp import TOKEN_VARIABLE, make_server, serve_stdio
from tests.documents import read_code

ROOT = Path(__file__).resolve().parents[3]
TOKEN = "a-token-of-this-test-alone"
SHOWN = ["observation", "task", "actions", "score", "reward", "ended", "episode", "step"]
PATCHED = (  # a drift after each of two episodes, so that a lifetime passes through three phases
    "version: 1\nname: short\nenv: DriftFrozenLake-v0\nclock: episode\nbase: {map: [SFF, FHF, FFG]}\n"
    "drifts:\n  - {name: first, at: 2, set: {map: [SHF, FFF, FFG]}}\n"
    "  - {name: second, at: 4, set: {map: [SFF, HFF, FFG]}}\n"
)


def data(result):
    assert not result.isError, result
    return json.loads(result.content[0].text)


def refusal(result):
    assert result.isError, result
    return result.content[0].text


@pytest.fixture
def schedule(tmp_path):
    path = tmp_path / "short.yaml"
    path.write_text(PATCHED, encoding="utf-8")
    return path


async def play(session, actions, episodes):
    """Episodes of fixed actions; the score of each."""
    scores = []
    for _ in range(episodes):
        result = data(await session.call_tool("reset", {}))
        for action in actions:
            result = data(await session.call_tool("act", {"action": action}))
            if result["ended"]:
                break
        scores.append(result["score"])
    return scores


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_session_over_stdio_is_a_lifetime(schedule, tmp_path):
    log = tmp_path / "log.jsonl"

    async def client():
        command = ["-m", "drift_envs", "mcp", "DriftFrozenLake-v0", "--schedule", str(schedule), "--log", str(log)]
        async with (
            stdio_client(StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ))) as streams,
            ClientSession(*streams) as session,
        ):
            started = await session.initialize()
            assert started.serverInfo.version == version("drift-envs")
            tools = {tool.name: tool for tool in (await session.list_tools()).tools}
            assert sorted(tools) == ["act", "observe", "reset"]
            assert list(tools["act"].inputSchema["properties"]) == ["action"]
            assert [tools[name].annotations.readOnlyHint for name in ("act", "observe", "reset")] == [
                False,
                True,
                False,
            ]
            assert all(tool.outputSchema["required"] == sorted(SHOWN, key=SHOWN.index) for tool in tools.values())
            assert tools["reset"].inputSchema["properties"] == {}  # neither a seed nor the clock is the agent's
            assert "call `reset`" in refusal(await session.call_tool("observe", {}))
            scores = await play(session, ["2", 2, "1", 1.0], 3)  # right, right, down, down
            last = data(await session.call_tool("observe", {}))
            assert last["ended"]
            assert data(await session.call_tool("observe", {})) == last
            assert "no episode" in refusal(await session.call_tool("act", {"action": "2"}))
            return scores

    assert anyio.run(client) == [1.0, 1.0, 0.0]  # a hole opens on the way
    assert [(line["phase"], line["score"], line["ended"]) for line in lines(log)] == [
        ("source", 1.0, "terminated"),
        ("source", 1.0, "terminated"),
        ("first", 0.0, "terminated"),
    ]


@asynccontextmanager
async def served(arguments):
    """A server over HTTP in a process of its own; its address."""
    command = [sys.executable, "-m", "drift_envs", "mcp", *arguments, "--http"]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, TOKEN_VARIABLE: TOKEN}, cwd=ROOT
    )
    try:
        address = re.fullmatch(r"serving (http://127\.0\.0\.1:\d+/mcp)\n", process.stderr.readline())[1]
        assert TOKEN not in process.stderr.readline()
        yield address
    finally:
        process.terminate()
        _, told = process.communicate(timeout=20)
    assert told == ""  # quiet when a client leaves, and at the end


@asynccontextmanager
async def connected(address, token=TOKEN):
    async with (
        httpx.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=30) as web,
        streamable_http_client(address, http_client=web) as (reads, writes, _),
        ClientSession(reads, writes) as session,
    ):
        await session.initialize()
        yield session


def test_sessions_over_http_are_lifetimes_of_their_own(schedule, tmp_path):
    log = tmp_path / "log.jsonl"

    async def client():
        async with served(["DriftFrozenLake-v0", "--schedule", str(schedule), "--log", str(log)]) as address:
            async with connected(address) as first:
                assert await play(first, "2211", 3) == [1.0, 1.0, 0.0]
                async with connected(address) as second:  # begins at the schedule's first tick
                    assert await play(second, "2211", 2) == [1.0, 1.0]
                assert await play(first, "1122", 1) == [1.0]  # and the first one has stayed where it was
            for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": TOKEN}):
                answer = httpx.post(address, json={}, headers=headers)
                assert answer.status_code == 401, headers
                assert "Authorization" in answer.text
            other = {"Authorization": f"Bearer {TOKEN}", "Host": "evil.example"}
            assert httpx.post(address, json={}, headers=other).status_code in (403, 421)  # rebinding of a name

    anyio.run(client)
    assert [(line["session"], line["episode"]) for line in lines(log)] == [
        (0, 0),
        (0, 1),
        (0, 2),
        (1, 0),
        (1, 1),
        (0, 3),
    ]


def test_the_shop_is_used_through_texts():
    life = TextLifetime("DriftWebShop-v0")
    shown = life.reset()
    assert shown["actions"] == ["search[<query>]"] or shown["actions"][0].startswith("search")
    wrong = life.act("click[no such button]")
    assert wrong["error"]
    assert (wrong["observation"], wrong["score"]) == (shown["observation"], 0.0)
    assert life.act("search[mug]")["observation"] != shown["observation"]
    life.close()


@pytest.mark.parametrize("env_id", ["DriftTools-v0", "DriftFacts-v0", "DriftWebShop-v0", "DriftRepository-v0"])
def test_every_key_of_a_result_is_in_the_output_schema(env_id):
    async def client():
        command = ["-m", "drift_envs", "mcp", env_id]
        async with (
            stdio_client(StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ))) as streams,
            ClientSession(*streams) as session,
        ):
            await session.initialize()
            tools = {tool.name: tool for tool in (await session.list_tools()).tools}
            shown = data(await session.call_tool("reset", {}))
            for name, given in (("act", {"action": shown["actions"][-1]}), ("act", {"action": "no such action"})):
                result = await session.call_tool(name, given)
                if not result.isError:
                    assert tools[name].outputSchema["properties"].keys() >= result.structuredContent.keys()
            assert tools["reset"].outputSchema["properties"].keys() >= shown.keys()
            return shown

    shown = anyio.run(client)
    assert ("tools" in shown) == (env_id in ("DriftTools-v0", "DriftRepository-v0"))


def test_nothing_that_is_shown_names_the_drift(schedule):
    ended = []
    life = TextLifetime("DriftFrozenLake-v0", schedule=schedule, on_episode=ended.append)
    shown = []
    for _ in range(5):
        shown.append(life.reset())
        for action in "2211":
            shown.append(life.act(action))
            if shown[-1]["ended"]:
                break
    assert all(list(result) == SHOWN for result in shown)
    assert not any(word in json.dumps(shown) for word in ("phase", "first", "second", "tick", "FHF"))
    assert [line["phase"] for line in ended] == ["source", "source", "first", "first", "second"]


def test_an_abandoned_episode_is_counted(schedule):
    ended = []
    life = TextLifetime("DriftFrozenLake-v0", schedule=schedule, on_episode=ended.append)
    life.reset()
    life.act("2")
    life.reset()
    life.close()
    life.close()
    assert [(line["episode"], line["steps"], line["ended"]) for line in ended] == [
        (0, 1, "abandoned"),
        (1, 0, "abandoned"),
    ]


@pytest.mark.parametrize(
    ("env_id", "wrong", "right"),
    [
        ("DriftFrozenLake-v0", ("4", "-1", "right", "1.5", "nan", "", "1e400", 4, 1.5, 10**400), 3),
        ("DriftMountainCarContinuous-v0", ("1.5", "left", "nan", "-inf", 1.5), -0.5),
    ],
)
def test_a_wrong_action_changes_nothing(env_id, wrong, right):
    life = TextLifetime(env_id)
    with pytest.raises(StateError, match="call `reset`"):
        life.act(right)
    before = life.reset()
    for action in wrong:
        with pytest.raises(ArgumentError, match="`action` should be a number from"):
            life.act(action)
    for action in (True, None, [1]):
        with pytest.raises(ArgumentError, match="`action` should be a text, a number or a mapping"):
            life.act(action)
    assert life.observe() == before
    assert life.act(right)["step"] == 1


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["NoSuch-v0"], 2, "there is no id 'NoSuch-v0'"),
        (["DriftFrozenLake-v0", "--schedule", "nowhere"], 2, "nowhere"),
        (["DriftFrozenLake-v0", "--port", "1"], 2, "--http"),
        (["DriftFrozenLake-v0", "--log", "/dev/null/log"], 1, "`--log` should be a file that can be written"),
    ],
)
def test_mistakes_are_told_before_a_client_comes(arguments, status, message):
    done = subprocess.run(
        [sys.executable, "-m", "drift_envs", "mcp", *arguments],
        capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == status
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_port_that_is_taken_and_a_short_token_are_refused():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        command = [sys.executable, "-m", "drift_envs", "mcp", "DriftFrozenLake-v0", "--http"]
        port = str(taken.getsockname()[1])
        done = subprocess.run([*command, "--port", port], capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, "`port` should be free" in done.stderr) == (1, True)
    short = {**os.environ, TOKEN_VARIABLE: "short"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=short)
    assert (done.returncode, "16 characters" in done.stderr) == (1, True)
    assert "short" not in done.stderr.replace("shorter", "")


def test_the_code_of_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _ = read_code("docs/mcp.md")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "cur_pos" in done.stdout


def test_the_examples_of_the_module_run():
    from drift_envs.integrations import mcp as module

    assert doctest.testmod(module).failed == 0


def test_a_closed_standard_input_is_refused(monkeypatch):
    server = make_server("DriftFrozenLake-v0")
    monkeypatch.setattr(sys, "stdin", None)  # as Python sets it when the descriptor is closed
    with pytest.raises(ArgumentError, match="standard input and output should be open"):
        serve_stdio(server)


def test_a_schedule_file_names_its_environment(tmp_path):
    path = tmp_path / "cliff.yaml"
    drift = "drifts: [{at: 1, set: {reward_scale: 2.0}}]"
    path.write_text(f"version: 1\nenv: CliffWalking-v1\n{drift}\n", encoding="utf-8")

    async def client():
        command = ["-m", "drift_envs", "mcp", str(path)]
        async with (
            stdio_client(StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ))) as streams,
            ClientSession(*streams) as session,
        ):
            await session.initialize()
            rewards = []
            for _ in range(2):
                first = data(await session.call_tool("reset", {}))
                rewards.append(data(await session.call_tool("act", {"action": first["actions"][0]}))["reward"])
            return rewards

    assert anyio.run(client) == [-1.0, -2.0]
