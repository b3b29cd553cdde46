"""Processes and threads that tests start: waiting for them, and finding those that they start in turn.

* `wait_until` - waits for a condition with a bound
* `children_of`, `is_alive`, `command_of` - what `/proc` has of a process
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any


def wait_until(condition: Callable[[], Any], seconds: float = 60) -> bool:
    """Whether a condition holds at last; `False` if it did not within so many seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def children_of(pid: int) -> list[int]:
    """The processes that a process has started, and those that they have, but for what ends meanwhile."""
    found = []
    with suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{pid}/task").glob("*"):
            with suppress(FileNotFoundError, ProcessLookupError):
                for child in map(int, (task / "children").read_text().split()):
                    found += [child, *children_of(child)]
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
