"""Clients that others wrote: the TypeScript SDK, the command line of the inspector, the schemas of google-genai."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from google.genai import types as google_types
from google.genai._mcp_utils import mcp_to_gemini_tools
from mcp.types import Tool

from drift_envs.integrations.mcp import make_server
from drift_envs.integrations.mcp_tools import DeskLifetime
from drift_envs.schedule import shipped_schedules

HERE = Path(__file__).resolve().parent
LAKE = ["-m", "drift_envs", "mcp", "DriftFrozenLake-v0"]
DESK = ["-m", "drift_envs", "mcp", "DriftTools-v0", "--tools"]


@pytest.fixture(scope="session")
def node() -> Path:
    """The folder with the packages of Node, which are installed once."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    folder = Path(sys.prefix) / "mcp-clients"
    folder.mkdir(exist_ok=True)
    for name in ("package.json", "client.mjs"):
        shutil.copy(HERE / name, folder / name)
    if not (folder / "node_modules" / "sdk-oldest").exists():
        subprocess.run([npm, "install", "--no-audit", "--no-fund", "--silent"], cwd=folder, check=True, timeout=600)
    return folder


def call(node: Path, sdk: str, server: list[str], calls: list[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
    """The results of calls in one session."""
    command = ["node", "client.mjs", sdk, json.dumps(calls), sys.executable, *server]
    done = subprocess.run(command, cwd=node, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    results: list[dict[str, Any]] = json.loads(done.stdout)
    assert [result for result in results if "throws" in result] == []
    return results


def errors_of(results: list[dict[str, Any]]) -> list[str | None]:
    """The words of each result that is an error, `None` for the others."""
    return [result["content"][0]["text"] if result.get("isError") else None for result in results]


@pytest.mark.parametrize("sdk", ["sdk-oldest", "sdk-newest"])
def test_refused_actions_reach_the_typescript_sdk(node: Path, sdk: str) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        *[("observe", {}), ("act", {"action": "1"}), ("reset", {}), ("act", {"action": "1"}), ("act", {"action": 1})],
        *[("act", {"action": "jump"}), ("act", {"action": [2]}), ("act", {}), ("jump", {}), ("observe", {"more": 1})],
    ]
    results = call(node, sdk, LAKE, calls)
    words = ["no episode was begun", "no episode is going on", None, None, None]
    words += ["Received 'jump'", "`action`", "needs the argument `action`", "no tool 'jump'", None]
    for error, expected in zip(errors_of(results), words, strict=True):
        assert (error is None) == (expected is None), error
        assert expected is None or (error is not None and expected in error)
    assert [("structuredContent" in result) for result in results] == [word is None for word in words]
    assert results[3]["structuredContent"]["step"] == 1


@pytest.mark.parametrize("sdk", ["sdk-oldest", "sdk-newest"])
def test_refusals_of_the_desk_reach_the_typescript_sdk(node: Path, sdk: str) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        *[("finish", {}), ("next_request", {}), ("get_order", {"order_id": "O-1"}), ("get_order", {}), ("fly", {})],
        *[("find_customer", {"email": "no@example.org", "age": 3}), ("evaluator_log", {"token": "x"})],
        ("next_request", {}),
    ]
    codes = ["no_request", None, "invalid_value", "missing_argument", "unknown_tool", "unexpected_argument"]
    codes += ["unknown_tool", None]
    errors = errors_of(call(node, sdk, DESK, calls))
    assert [error and json.loads(error)["error"] for error in errors] == codes


def test_the_inspector_shows_tools_results_and_refusals(node: Path) -> None:
    def inspect(*arguments: str) -> dict[str, Any]:
        program = node / "node_modules" / ".bin" / "mcp-inspector"
        command = [str(program), "--cli", sys.executable, *LAKE, "--method", *arguments]
        done = subprocess.run(command, cwd=node, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        shown: dict[str, Any] = json.loads(done.stdout)
        return shown

    assert [tool["name"] for tool in inspect("tools/list")["tools"]] == ["reset", "act", "observe"]
    assert "structuredContent" in inspect("tools/call", "--tool-name", "reset")
    (error,) = errors_of([inspect("tools/call", "--tool-name", "act", "--tool-arg", "action=1")])
    assert error is not None
    assert "no episode is going on" in error


def all_tools() -> dict[str, list[Tool]]:
    """The tools of both servers, those of the desk in each of its schedules."""
    import anyio

    found = {"act": anyio.run(make_server("DriftFrozenLake-v0")._list_tools)}
    for name in shipped_schedules():
        if name.startswith("tools/"):
            life = DeskLifetime("DriftTools-v0", name, 0)
            found[name] = life.describe_tools()
            life.close()
    return found


def test_google_converts_all_schemas() -> None:
    """google-genai 3.6.1 refuses keywords that it does not know; older kits for agents take one type a schema."""
    tools = all_tools()
    assert len(tools) > 20
    for name, shown in tools.items():
        converted = mcp_to_gemini_tools(shown)
        declared = [one for tool in converted for one in tool.function_declarations or ()]
        assert [one.name for one in declared] == [tool.name for tool in shown], name
        for tool, one in zip(shown, declared, strict=True):
            properties = one.parameters.properties or {} if one.parameters else {}
            assert sorted(properties) == sorted(tool.inputSchema["properties"])
            assert all(isinstance(schema.type, google_types.Type) for schema in properties.values()), (name, tool.name)
            for schema in (tool.inputSchema, tool.outputSchema or {}):
                assert "additionalProperties" not in json.dumps(schema)
                assert all(isinstance(part["type"], str) for part in schema.get("properties", {}).values())
