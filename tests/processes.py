"""Processes and threads that tests start: waiting for them, and finding those that they start in turn.

* `wait_until` - waits for a condition with a bound
* `serving` - the shop's server, in a process of its own
* `children_of`, `is_alive`, `command_of` - what `/proc` has of a process
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any


def wait_until(condition: Callable[[], Any], seconds: float = 60) -> bool:
    """Whether a condition holds at last; `False` if it did not within so many seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)  # between two looks; the bound is above
    return True


@contextmanager
def serving(catalogue: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Serve a catalogue for at most two minutes; the process, and the address."""
    command = [sys.executable, "-m", "webshop_server", "serve", "--port", "0", "--catalogue", str(catalogue), *options]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, **pipes, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    guard = threading.Timer(120, process.kill)
    guard.start()
    try:
        line = process.stdout.readline()
        found = re.fullmatch(r"(http://127\.0\.0\.1:\d+)/\n", line)
        assert found, line + process.stderr.read()
        yield process, found[1]
    finally:
        guard.cancel()
        process.kill()
        process.communicate(timeout=30)


def children_of(pid: int, but: Collection[int] = ()) -> list[int]:
    """The processes that a process has started, and those that they have, but for what ends meanwhile.

    Without some of them and what those have started: a browser of another test starts processes at any time.
    """
    found = []
    with suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{pid}/task").glob("*"):
            with suppress(FileNotFoundError, ProcessLookupError):
                for child in map(int, (task / "children").read_text().split()):
                    if child not in but:
                        found += [child, *children_of(child, but)]
    return found


def is_alive(pid: int) -> bool:
    """Whether the process runs; one that has ended and is not yet collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def command_of(pid: int) -> str:
    """The command of a process, empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except (FileNotFoundError, ProcessLookupError):
        return ""
