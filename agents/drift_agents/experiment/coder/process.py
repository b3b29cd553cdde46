"""A foreign command with limits of time, output and disk space; whatever it started ends with it.

Descendants that leave the process group are found by their parents. Where the kernel has `PR_SET_CHILD_SUBREAPER`
(Linux), orphans become children of this process, so that none is lost.
"""

from __future__ import annotations

import ctypes
import os
import selectors
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
_CHUNK = 65536
_CUT = b"\n[cut here]\n"


class CommandLimits(NamedTuple):
    """What a command may use.

    Args:
        seconds: until it is ended.
        most_bytes: in the watched folders together; a file counts as at least a block.
        most_output: bytes of its output that are kept.
    """

    seconds: float
    most_bytes: int
    most_output: int = 2**20


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


def run_command(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    output: IO[bytes],
    limits: CommandLimits,
    *,
    watched: Sequence[Path] = (),
    secrets: Collection[str] = (),
) -> CommandEnd:
    """Run a command, and end whatever it leaves running. Its standard input is empty.

    Args:
        command: the program and its arguments; no shell reads them.
        folder: where it runs.
        environment: all of its environment variables.
        output: where standard output and standard error go, up to a bound; the rest is dropped.
        limits: what it may use.
        watched: folders whose size is watched.
        secrets: texts that are replaced by `***` in the output.

    Raises:
        ExperimentError: if the command cannot be started, or a process cannot be ended.
    """
    before = frozenset(_list_descendants())
    sink = _Output(output, limits.most_output, [text.encode() for text in secrets if text])
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
        pipe = process.stdout.fileno()  # type: ignore[union-attr]
        os.set_blocking(pipe, False)
        try:
            with interruptible():
                stopped = _watch(process, pipe, sink, start, limits, watched)
        finally:
            left = _end_all(before, process)
            sink.take(pipe)
            sink.close()
            process.stdout.close()  # type: ignore[union-attr]
        return CommandEnd(process.wait(), stopped, time.monotonic() - start, left)


def _watch(
    process: subprocess.Popen[bytes],
    pipe: int,
    sink: _Output,
    start: float,
    limits: CommandLimits,
    watched: Sequence[Path],
) -> str:
    """Read the output until the process ends; returns why it should be ended before, if it should."""
    look = start + _LOOK
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while process.poll() is None:
            if not selector.get_map():
                with suppress(subprocess.TimeoutExpired):
                    process.wait(0.05)
            elif selector.select(0.05) and not sink.take(pipe):
                selector.unregister(pipe)
            now = time.monotonic()
            if now - start > limits.seconds:
                return f"did not end within {limits.seconds:g} s"
            if now >= look:
                if measure_size(watched, limits.most_bytes) > limits.most_bytes:
                    return f"wrote more than {limits.most_bytes:,} bytes"
                look = time.monotonic() + max(_LOOK, 4 * (time.monotonic() - now))
    return ""


class _Output:
    """Writes output up to a bound, without secrets."""

    def __init__(self, file: IO[bytes], most: int, secrets: Sequence[bytes]) -> None:
        self._file, self._left, self._secrets = file, most, secrets
        self._held = b""
        self._overlap = max((len(secret) for secret in secrets), default=1) - 1

    def take(self, pipe: int) -> bool:
        """Read what is there; whether more can come."""
        for _ in range(16):  # a program that never stops printing does not keep its limits from being looked at
            try:
                chunk = os.read(pipe, _CHUNK)
            except BlockingIOError:
                return True
            if not chunk:
                return False
            self._held += chunk
            for secret in self._secrets:
                self._held = self._held.replace(secret, b"***")
            ready = max(len(self._held) - self._overlap, 0)  # a secret may be torn between two chunks
            self._write(self._held[:ready])
            self._held = self._held[ready:]
        return True

    def close(self) -> None:
        """Write what was held back."""
        self._write(self._held)
        self._held = b""

    def _write(self, data: bytes) -> None:
        if self._left > 0 and data:
            self._file.write(data[: self._left] + (_CUT if len(data) > self._left else b""))
            self._file.flush()
            self._left -= len(data)


@contextmanager
def _adopting_orphans() -> Iterator[None]:
    """Become the parent of descendants whose parent ends, where the kernel can do that."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    before = ctypes.c_int(0)
    if prctl is not None:
        prctl(_GET_SUBREAPER, ctypes.byref(before), 0, 0, 0)
        prctl(_SET_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        if prctl is not None:
            prctl(_SET_SUBREAPER, before.value, 0, 0, 0)


def _end_all(before: Collection[int], process: subprocess.Popen[bytes]) -> int:
    """End all descendants but those that were there before; returns how many ran beside the command itself."""

    def find() -> set[int]:
        """Those that still run; children that have ended are collected."""
        found = set()
        for pid, has_ended in _list_descendants(before).items():
            if not has_ended:
                found.add(pid)
            elif pid != process.pid:
                with suppress(ChildProcessError):  # it is the child of another one
                    os.waitpid(pid, os.WNOHANG)
        return found

    found = find()
    left = len(found - {process.pid})
    _send(found, signal.SIGTERM)
    begin = time.monotonic()
    while found and time.monotonic() - begin < (_SHORT_GRACE if is_interrupted() else _GRACE):
        time.sleep(0.01)
        found = find()
    while found:
        stopped: set[int] = set()
        while new := found - stopped:  # a stopped process starts no other one
            _send(new, signal.SIGSTOP)
            stopped |= new
            found = find()
        _send(found, signal.SIGKILL)
        time.sleep(0.01)
        found = find()
        if found and time.monotonic() - begin > _LONGEST_END:
            raise ExperimentError(f"process {min(found)}: was started by the agent and cannot be ended")
    return left


def _send(pids: Collection[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _list_descendants(before: Collection[int] = ()) -> dict[int, bool]:
    """The descendants of this process, and whether each has ended and is not yet collected.

    Without those that were there before and what they have started since: that is nothing of the agent's.
    """
    children: dict[int, list[int]] = {}
    ended = {}
    for pid, parent, state in _list_processes():
        children.setdefault(parent, []).append(pid)
        ended[pid] = state in "ZX"
    found: dict[int, bool] = {}
    todo = [os.getpid()]
    while todo:
        for pid in children.get(todo.pop(), []):
            if pid not in before:
                found[pid] = ended[pid]
                todo.append(pid)
    return found


def _list_processes() -> Iterator[tuple[int, int, str]]:
    """Number, parent and state of every process."""
    if Path("/proc/self/stat").exists():
        for name in os.listdir("/proc"):
            if name.isdigit():
                with suppress(OSError):
                    stat = Path("/proc", name, "stat").read_bytes().rpartition(b")")[2].split()
                    yield int(name), int(stat[1]), stat[0].decode()
        return
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,state="], capture_output=True, text=True, check=True)  # nosec B603 B607
    for line in listed.stdout.splitlines():
        pid, parent, state = line.split(None, 2)
        yield int(pid), int(parent), state[0]
