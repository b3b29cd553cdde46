"""The pipe to an agent's process: bounded in time and size, whatever comes through it."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest
from drift_agents.errors import AgentProcessError
from drift_agents.experiment.pipe.process import AgentProcess, Code

pytestmark = pytest.mark.integration

QUICK = (sys.executable, "-I", "-S", "-c")


def start(program: str, seconds: float = 60.0) -> AgentProcess:
    return AgentProcess([*QUICK, program], seconds=seconds)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("raise SystemExit('no more\\033[31m ideas')", r"ended with status 1: no more\x1b[31m ideas"),
        ("import os; os.kill(os.getpid(), 9)", "ended with status"),
        ("print('x' * 10**6)", "a line should have at most 262,144 bytes"),
        ("print('{')", "a line should be JSON"),
        ("print('[' * 100000)", "a line should be JSON"),
        ("print('NaN')", "NaN is not JSON"),
        ("print('[1]')", "a message should be a JSON object. Received [1]"),
        ("import os; os.write(1, b'\\xff\\n')", "a line should be JSON"),
    ],
)
def test_what_is_no_message_is_refused(program: str, message: str) -> None:
    with start(program) as agent, pytest.raises(AgentProcessError, match=re.escape(message)) as refused:
        agent.receive()
    assert "\n" not in str(refused.value)


def test_an_agent_that_does_not_answer_is_ended() -> None:
    agent = start("input(); import time; time.sleep(600)", seconds=1.0)
    agent.send({})
    with pytest.raises(AgentProcessError, match="should answer in 1 seconds"):
        agent.receive()
    with pytest.raises(ValueError, match="negative"):
        agent.receive()


def test_an_agent_that_does_not_read_is_ended() -> None:
    agent = start("import time; time.sleep(600)", seconds=1.0)
    with pytest.raises(AgentProcessError, match="should answer in 1 seconds"):
        agent.send({"x": "x" * 10**6})


def test_long_messages_and_several_at_once_arrive_whole() -> None:
    program = 'import sys; line = sys.stdin.readline(); print(len(line) and \'{"a": 1}\\n{"b": "\u00e9"}\')'
    with start(program) as agent:
        agent.send({"x": "é" * 10**6})
        assert [agent.receive(), agent.receive()] == [{"a": 1}, {"b": "é"}]


def test_the_working_folder_holds_the_files_and_is_deleted(tmp_path: Path) -> None:
    program = "import json, os; print(json.dumps({'cwd': os.getcwd(), 'names': os.listdir('.')}))"
    with AgentProcess([*QUICK, program], {"a.txt": "x"}, Code(("json",), {"b.txt": "y"})) as agent:
        told = agent.receive()
        assert told["names"] == ["a.txt"]
        assert sorted(os.listdir(Path(told["cwd"]).parent / "code")) == ["b.txt", "json"]
    assert not Path(told["cwd"]).exists()


@pytest.mark.parametrize("program", ["no-such-program-anywhere", ""])
def test_a_program_that_does_not_exist_is_refused(program: str) -> None:
    with pytest.raises(AgentProcessError, match="`command` should begin with a program"):
        AgentProcess([program])


def test_a_program_that_cannot_be_executed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "program"
    path.write_text("no program")
    path.chmod(0o755)
    with pytest.raises(AgentProcessError, match="cannot be started"):
        AgentProcess([str(path)])


def test_standard_error_is_for_the_last_words_alone() -> None:
    program = "import sys, json; print('debug', file=sys.stderr); print(json.dumps({'n': 1}))"
    with start(program) as agent:
        assert agent.receive() == json.loads('{"n": 1}')
        with pytest.raises(AgentProcessError, match="ended with status 0: debug"):
            agent.receive()
