"""What an agent's process finds out about its evaluator: nothing. Without the sandbox the same cheats succeed."""

from __future__ import annotations

import gc
import json
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from drift_agents.experiment.evaluation_wrapper import EvaluationWrapper
from drift_agents.experiment.loader import parse_experiment
from drift_agents.experiment.logs import read_rows
from drift_agents.experiment.pipe.process import AgentProcess
from drift_agents.experiment.runner import run_experiment

from tests.drift_agents.experiment.pipe import cheats
from tests.processes import wait_until

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(sys.platform != "linux", reason="the sandbox needs Linux"),
]

SCRIPT = Path(cheats.__file__)
NEEDS = {
    "argv_of_the_evaluator": {"files"},
    "environment_of_the_evaluator": {"files", "own_user"},
    "memory_of_the_evaluator": {"files", "own_user"},
    "tracing": {"files", "own_user", "namespaces"},
    "signals": {"files", "own_user", "namespaces"},
    "descriptors_of_the_evaluator": {"files", "own_user"},
    "files_of_the_run": {"files", "own_user"},
    "listing": {"files", "own_user"},
    "writing_to_the_run": {"files", "own_user"},
    "notes_for_the_next_cell": {"files"},
    "network": {"files", "namespaces"},
    "datagrams": {"namespaces"},
    "outliving_child": {"namespaces", "own_user"},
}
"""The layers that defend against a cheat; one of them is enough."""


class Evaluator:
    """A program with a secret in its environment, arguments, open files and run folder."""

    def __init__(self, folder: Path) -> None:
        self.secret, self.token = secrets.token_hex(16), secrets.token_hex(16)
        self.run = folder / "run"
        self.run.mkdir(mode=0o700)
        for name in ("run.json", "episodes.jsonl"):
            (self.run / name).write_text(self.secret)
        self.open = os.open(self.run / "run.json", os.O_RDONLY)
        os.set_inheritable(self.open, True)
        self.server = socket.create_server(("127.0.0.1", 0))
        self.datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.datagrams.bind(("127.0.0.1", self.port))
        sleep = [sys.executable, "-I", "-S", "-c", "import sys; print('ready', flush=True); sys.stdin.read()"]
        environment = {**os.environ, "SECRET": self.secret}
        self.other = subprocess.Popen(
            [*sleep, self.secret], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, close_fds=False
        )
        assert self.other.stdout is not None
        assert self.other.stdout.readline()

    @property
    def port(self) -> int:
        return int(self.server.getsockname()[1])

    def facts(self, pid: int) -> dict[str, Any]:
        """More than any agent knows."""
        where = {"run": str(self.run), "shared": str(self.run.parent), "files": [str(self.open)]}
        return {"pid": pid, "port": self.port, "secret": self.secret, "token": self.token, **where}

    def close(self) -> None:
        self.other.kill()
        self.other.communicate()
        self.server.close()
        self.datagrams.close()
        os.close(self.open)


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluator]:
    found = Evaluator(tmp_path_factory.mktemp("evaluator"))
    yield found
    found.close()


def public_python() -> str | None:
    """A Python that every user can run, so that the agent's process can have a user of its own."""
    return next((path for path in ("/usr/bin/python3", "/usr/local/bin/python3") if os.path.exists(path)), None)


@pytest.fixture(scope="module", params=[sys.executable, public_python()], ids=["this Python", "a public Python"])
def found(evaluator: Evaluator, request: pytest.FixtureRequest) -> tuple[dict[str, Any], AgentProcess]:
    """What each cheat finds in an agent's process, and the process, which is closed."""
    if request.param is None:
        pytest.skip("there is no Python that every user can run")
    os.environ["SECRET"] = evaluator.secret
    try:
        with AgentProcess([request.param, "cheats.py"], {"cheats.py": SCRIPT.read_text()}) as agent:
            # The process of the evaluator holds the secret too, and cannot be traced.
            agent.send(evaluator.facts(os.getpid()))
            messages = [agent.receive() for _ in cheats.CHEATS]
    finally:
        del os.environ["SECRET"]
    return {message["cheat"]: message["found"] for message in messages}, agent


@pytest.mark.parametrize("name", [cheat.__name__ for cheat in cheats.CHEATS])
def test_no_cheat_finds_the_secret(found: tuple[dict[str, Any], AgentProcess], evaluator: Evaluator, name: str) -> None:
    outcomes, agent = found
    layers = {layer for layer, holds in agent.isolation._asdict().items() if holds}
    if name in NEEDS and not layers & NEEDS[name]:
        pytest.skip(f"this system has none of {', '.join(sorted(NEEDS[name]))}")
    assert evaluator.secret not in json.dumps(outcomes[name])
    if name == "writing_to_the_run":
        assert (evaluator.run / "episodes.jsonl").read_text() == evaluator.secret
    if name == "environment":
        assert set(outcomes[name]) <= {"LC_CTYPE"}, "which Python sets itself"
    if name == "outliving_child":
        assert not has_process(evaluator.token), "it ended with the agent"


def has_process(token: str) -> bool:
    """Whether a process has this word in its arguments; waits a while for its end."""
    for _ in range(100):
        if not any(token in read(path) for path in Path("/proc").glob("[0-9]*/cmdline")):
            return False
        time.sleep(0.05)
    return True


def read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:  # it has ended
        return ""


def test_without_the_sandbox_the_cheats_succeed(evaluator: Evaluator) -> None:
    """So that the test above is one: the same program as an ordinary child."""
    environment = {**os.environ, "SECRET": evaluator.secret}
    with subprocess.Popen(
        [sys.executable, str(SCRIPT)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        close_fds=False,
    ) as agent:
        assert agent.stdin is not None
        assert agent.stdout is not None
        agent.stdin.write(json.dumps(evaluator.facts(evaluator.other.pid)) + "\n")
        agent.stdin.flush()
        outcomes = [json.loads(agent.stdout.readline()) for _ in cheats.CHEATS]
        agent.kill()
    lines = evaluator.run / "episodes.jsonl"
    assert "forged" in lines.read_text()
    lines.write_text(evaluator.secret)
    for path in (evaluator.run.parent / evaluator.token, Path("/dev/shm") / evaluator.token):
        path.unlink(missing_ok=True)
    failed = {one["cheat"] for one in outcomes if evaluator.secret not in json.dumps(one["found"])}
    assert failed <= {"outliving_child", "tracing", "memory_of_the_evaluator"}, "the last two are root's, or Yama's"

    def children() -> list[Path]:
        return [path for path in Path("/proc").glob("[0-9]*/cmdline") if evaluator.token in read(path)]

    assert wait_until(children), "one that was started last may not have its own command yet"
    (child,) = children()
    os.kill(int(child.parent.name), 9)


def test_an_agent_in_the_evaluators_process_would_find_it() -> None:
    """The garbage collector and the frames: what a process of its own takes away."""
    env = EvaluationWrapper(gym.make("DriftFrozenLake-v0", text=True))
    gc.collect()
    assert "EvaluationWrapper" in cheats.garbage_collector({})
    assert any("EvaluationWrapper" in one for one in cheats.frames({}))
    env.close()


SPY = """\
import gc, json, sys
heard = []
def receive():
    line = sys.stdin.readline()
    if not line: sys.exit()
    heard.append(line)
    return json.loads(line)
def send(message):
    print(json.dumps(message), flush=True)
receive()
send({"type": "ready"})
while True:
    actions = receive()["info"]["actions"]
    over = False
    while not over:
        send({"type": "step", "action": actions[len(heard) % len(actions)]})
        result = receive()
        over = result["terminated"] or result["truncated"]
    objects = [type(one).__module__ for one in gc.get_objects()]
    assert not [name for name in objects if name.startswith(("drift", "gymnasium"))]
    send({"type": "end"})
"""


def test_no_message_holds_seed_schedule_or_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that an agent hears in a cell, word for word."""
    heard: list[str] = []
    send = AgentProcess.send

    def record(self: AgentProcess, message: Any) -> None:
        heard.append(json.dumps(message))
        send(self, message)

    monkeypatch.setattr(AgentProcess, "send", record)
    command = [sys.executable, "-I", "-S", "agent.py"]
    policy = {"spy": {"command": command, "files": {"agent.py": SPY}}}
    seed = 2**52 + 987654321
    experiment = parse_experiment(
        {
            "name": "watched",
            "schedules": "frozen_lake/explicit:jittered",
            "agents": {"memory": "none", "policy": policy},
            "seeds": {"first": seed, "count": 1},
            "episodes": 3,
            "isolated": True,
        }
    )
    lines = run_experiment(experiment, tmp_path / "run-of-the-evaluator")
    (row, *_) = read_rows(lines)
    assert row["policy"] == "spy"
    said = "".join(heard)
    for secret in (str(seed), "jittered", "explicit", row["schedule_hash"], "run-of-the-evaluator", str(os.getpid())):
        assert secret not in said, secret
    assert {key for one in heard for key in json.loads(one)} == {
        *("type", "protocol", "environment", "seed"),
        *("observation", "info", "reward", "terminated", "truncated"),
    }
    assert {key for one in heard for key in json.loads(one).get("info", {})} == {"task", "actions", "score"}
