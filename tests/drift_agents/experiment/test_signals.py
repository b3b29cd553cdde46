"""A run in a terminal that is told to stop, at any moment: by Ctrl-C, or by a signal to its process."""

from __future__ import annotations

import fcntl
import os
import pty
import random
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.processes import children_of, is_alive, wait_until

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(sys.platform != "linux", reason="processes are listed in /proc"),
]

SIGNALS = (signal.SIGINT, signal.SIGTERM)
LIMIT = 2.0
"""Seconds from a signal to the end of the last process."""

MEMORY = """
import time
from drift_agents.memory.vanilla import VanillaMemory

class Slow(VanillaMemory):
    name = "slow"

    def retrieve(self, *arguments, **options):
        time.sleep(0.005)  # lengthens the run, so that signals come while cells are played
        return super().retrieve(*arguments, **options)

class Endless(Slow):
    def retrieve(self, *arguments, **options):
        while True:
            pass
"""


@pytest.fixture
def silent_server() -> Iterator[str]:
    """The address of a server of models that never answers."""
    is_over = threading.Event()

    class Silent(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            is_over.wait(60)

    with ThreadingHTTPServer(("127.0.0.1", 0), Silent) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        is_over.set()
        server.shutdown()


def check_stopped_run(folder: Path, options: list[str], moment: float, number: int) -> None:
    """Start a run in a terminal, stop it after so many seconds, and check what is left."""
    out = folder / "run"
    (folder / "slow.py").write_text(MEMORY)
    command = [
        "run",
        "glove-quick",
        "--schedules",
        "frozen_lake/explicit",
        "--verifier",
        "none",
        "--set",
        "references=[]",
    ]
    command += ["--seeds", "4", "--rounds", "20", "--out", str(out), *options]
    start = "import sys; from drift_agents.cli.app import main; print('begun', flush=True); sys.exit(main())"
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-c", start, *command])
    printed, status = b"", None
    workers: list[int] = []
    os.set_blocking(terminal, False)

    def has_ended() -> bool:
        nonlocal printed, status
        with suppress(OSError):  # the terminal is closed with the last process
            printed += os.read(terminal, 65_536)
        ended, code = os.waitpid(pid, os.WNOHANG) if status is None else (0, 0)
        status = os.waitstatus_to_exitcode(code) if ended else status
        return status is not None

    try:
        assert wait_until(lambda: has_ended() or b"begun" in printed, 120), printed.decode()
        is_stopped = not wait_until(has_ended, moment)
        if is_stopped:
            workers = children_of(pid)
            if number == signal.SIGINT:
                os.write(terminal, b"\x03")
            else:
                os.kill(pid, number)
            assert wait_until(has_ended, LIMIT), printed.decode()
    finally:
        if status is None:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        os.close(terminal)
    assert b"Traceback" not in printed, printed.decode()
    if not is_stopped:
        assert status == 0  # the run was done before
        return
    assert status in (0, 130, -signal.SIGTERM), printed.decode()
    assert not any(map(is_alive, workers))
    if status == 130 and (out / "run.json").exists():
        assert b"What is done is kept; continue with: drift-agents run" in printed
    if out.exists():
        assert not (out / "held-by.json").exists()
        descriptor = os.open(out, os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # no process holds it
        os.close(descriptor)
        for cell in out.glob("cells/*"):
            assert cell.suffix == ".jsonl"
            assert b'{"sha256": ' in cell.read_bytes().splitlines()[-1]


WAYS = {"one": ["--jobs", "1"], "two": ["--jobs", "2"], "models": ["--jobs", "2"], "endless": ["--jobs", "2"]}


@pytest.mark.parametrize(
    ("way", "moment", "number"),
    [
        pytest.param(way, moment, number, marks=[] if index < 3 else pytest.mark.slow, id=f"{way}-{moment}-{number}")
        for index, (way, moment, number) in enumerate(
            [
                ("two", 2.0, signal.SIGINT),
                ("models", 2.0, signal.SIGTERM),
                ("endless", 2.0, signal.SIGINT),
                *(
                    (
                        draw.choice(list(WAYS)),
                        round(draw.uniform(0, 12), 2),
                        draw.choice([signal.SIGINT, signal.SIGTERM]),
                    )
                    for draw in [random.Random(49)]
                    for _ in range(50)
                ),
            ]
        )
    ],
)
def test_a_signal_ends_a_run(way: str, moment: float, number: int, tmp_path: Path, silent_server: str) -> None:
    options = list(WAYS[way])
    if way == "models":
        options += ["--policy", "llm", "--model", "m", "--base-url", silent_server, "--memory", "vanilla"]
    else:
        options += ["--memory", f"{tmp_path}/slow.py:{'Endless' if way == 'endless' else 'Slow'}"]
    check_stopped_run(tmp_path, options, moment, number)
