"""A foreign command with limits of time, output and disk space; whatever it started ends with it.

Descendants that leave the process group are found by their parents. Where the kernel has `PR_SET_CHILD_SUBREAPER`
(Linux), orphans become children of this process, so that none is lost.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess  # nosec B404
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple

from drift_agents.errors import ExperimentError
from drift_agents.experiment.coder.files import measure_size
from drift_agents.interruption import interruptible, is_interrupted, uninterrupted

_SET_SUBREAPER, _GET_SUBREAPER = 36, 37  # prctl(2)
_GRACE, _SHORT_GRACE = 2.0, 0.3
"""Seconds from SIGTERM to SIGKILL; the shorter one after Ctrl-C."""
_LOOK = 0.25  # seconds between two measurements of the folders' size
_LONGEST_END = 10.0
_CHUNK = 65536  # what a pipe holds
_CUT = b"\n[cut here]\n"


class CommandEnd(NamedTuple):
    """How a command ended.

    Args:
        status: its exit status, negative for a signal.
        stopped: why it was ended, in words; empty if it ended by itself.
        seconds: how long it ran.
        left: the number of processes that it left running, which were ended.
    """

    status: int
    stopped: str
    seconds: float
    left: int

    @property
    def words(self) -> str:
        """How it ended, in words; empty if by itself, with status 0 and nothing left running."""
        if self.stopped:
            return self.stopped
        status = f"exit status {self.status}" if self.status else ""
        left = f"left {self.left} process{'es' if self.left > 1 else ''} behind" if self.left else ""
        return ", ".join(filter(None, (status, left)))


def run_command(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    output: IO[bytes],
    time_limit: float,
    *,
    watched: Sequence[Path] = (),
    most_bytes: int = 2**30,
    most_output: int = 2**20,
    secrets: Collection[str] = (),
) -> CommandEnd:
    """Run a command, and end whatever it leaves running. Its standard input is empty.

    Args:
        command: the program and its arguments; no shell reads them.
        folder: where it runs.
        environment: all of its environment variables.
        output: where standard output and standard error go.
        time_limit: seconds until it is ended.
        watched: folders whose size is watched.
        most_bytes: in these folders together; a file counts as at least a block.
        most_output: bytes of output that are kept; the rest is dropped.
        secrets: texts that are replaced by `***` in the output.

    Raises:
        ExperimentError: if the command cannot be started, or a process cannot be ended.
    """
    before = frozenset(_list_descendants())
    stopped, start = "", time.monotonic()
    with uninterrupted(), _adopting_orphans():
        try:
            process = subprocess.Popen(  # nosec B603
                command, cwd=folder, env=dict(environment), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise ExperimentError(f"{command[0]}: cannot be started: {reason}") from error
        with process.stdout as pipe:  # type: ignore[union-attr]
            sink = _Output(pipe.fileno(), output, most_output, [text.encode() for text in secrets if text])
            try:
                with interruptible():
                    stopped = _watch(process, sink, time_limit, watched, most_bytes)
            finally:
                left = _end_all(before, process)
                for _ in range(16):  # what is left in the pipe, be it as large as can be
                    sink.take()
        return CommandEnd(process.wait(), stopped, time.monotonic() - start, left)


class _Output:
    """Writes what comes from a pipe to a file, up to a bound, without secrets."""

    def __init__(self, pipe: int, file: IO[bytes], most: int, secrets: Sequence[bytes]) -> None:
        os.set_blocking(pipe, False)
        self.pipe, self._file, self._left, self._secrets = pipe, file, most, secrets
        self._held = b""
        self._overlap = max((len(secret) for secret in secrets), default=1) - 1

    def take(self) -> bool:
        """Read a part; whether more can come."""
        try:
            chunk = os.read(self.pipe, _CHUNK)
        except BlockingIOError:
            return True
        data = self._held + chunk
        for secret in self._secrets:
            data = data.replace(secret, b"***")
        ready = max(len(data) - self._overlap, 0) if chunk else len(data)  # a secret may come in two parts
        data, self._held = data[:ready], data[ready:]
        if data and self._left > 0:
            self._file.write(data[: self._left] + (_CUT if len(data) > self._left else b""))
            self._file.flush()
            self._left -= len(data)
        return bool(chunk)


def _watch(
    process: subprocess.Popen[bytes], sink: _Output, time_limit: float, watched: Sequence[Path], most_bytes: int
) -> str:
    """Take the output until the process ends; returns why it should be ended before, if it should."""
    start, is_open = time.monotonic(), True
    look = start + _LOOK
    while process.poll() is None:
        if not is_open:
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.05)
        elif select.select([sink.pipe], [], [], 0.05)[0]:
            is_open = sink.take()
        now = time.monotonic()
        if now - start > time_limit:
            return f"did not end within {time_limit:g} s"
        if now >= look:
            if measure_size(watched, most_bytes) > most_bytes:
                return f"wrote more than {most_bytes:,} bytes"
            look = time.monotonic() + max(_LOOK, 4 * (time.monotonic() - now))
    return ""


@contextmanager
def _adopting_orphans() -> Iterator[None]:
    """Become the parent of descendants whose parent ends, where the kernel can do that."""
    prctl = getattr(ctypes.CDLL(None), "prctl", lambda *_: None)
    before = ctypes.c_int(0)
    prctl(_GET_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    prctl(_SET_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        prctl(_SET_SUBREAPER, before.value, 0, 0, 0)


def _end_all(before: Collection[int], process: subprocess.Popen[bytes]) -> int:
    """End all descendants but those that were there before; returns how many ran beside the command itself."""
    begin, stopped = time.monotonic(), set[int]()
    found = _find_running(before, process)
    left = len(found - {process.pid})
    _send(found, signal.SIGTERM)
    while found:
        waited = time.monotonic() - begin
        if waited > _LONGEST_END:
            raise ExperimentError(f"process {min(found)}: was started by the agent and cannot be ended")
        if waited < (_SHORT_GRACE if is_interrupted() else _GRACE):
            time.sleep(0.01)
        else:  # a stopped process starts no other one
            _send(found, signal.SIGSTOP if found - stopped else signal.SIGKILL)
            stopped |= found
        found = _find_running(before, process)
    return left


def _send(pids: Collection[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _find_running(before: Collection[int], process: subprocess.Popen[bytes]) -> set[int]:
    """The descendants that still run; children that have ended are collected, but for the command."""
    found = _list_descendants(before)
    for pid, state in found.items():
        if state in "ZX" and pid != process.pid:
            with suppress(ChildProcessError):  # it is the child of another one
                os.waitpid(pid, os.WNOHANG)
    return {pid for pid, state in found.items() if state not in "ZX"}


def _list_descendants(before: Collection[int] = ()) -> dict[int, str]:
    """The descendants of this process with their states.

    Without those that were there before and what they have started since: that is nothing of the agent's.
    """
    children: dict[int, dict[int, str]] = {}
    for pid, parent, state in _list_processes():
        if pid not in before:
            children.setdefault(parent, {})[pid] = state
    found, todo = dict[int, str](), [os.getpid()]
    for parent in todo:
        found |= children.get(parent, {})
        todo += children.get(parent, {})
    return found


def _list_processes() -> Iterator[tuple[int, int, str]]:
    """Number, parent and state of every process."""
    if os.path.exists("/proc/self/stat"):
        for name in filter(str.isdigit, os.listdir("/proc")):
            with suppress(OSError):
                state, parent = Path("/proc", name, "stat").read_bytes().rpartition(b")")[2].split(None, 2)[:2]
                yield int(name), int(parent), state.decode()
    else:
        listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,state="], capture_output=True, text=True, check=True)  # nosec B603 B607
        for line in listed.stdout.splitlines():
            fields = line.split(None, 2)
            yield int(fields[0]), int(fields[1]), fields[2][0]
