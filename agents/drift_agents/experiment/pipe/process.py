"""An agent's process and the pipe to it.

* `AgentProcess` - starts a program with as few rights as the system allows, and exchanges lines with it
* `Code` - what the program may import
* `Isolation` - which of the layers of `drift_agents.experiment.pipe.sandbox` hold
* `measure_isolation` - those that hold here
* `make_untraceable` - this process cannot be dumped or traced any more
"""

from __future__ import annotations

import ctypes
import json
import os
import pwd
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

from drift_agents.errors import AgentProcessError
from drift_agents.experiment.pipe import sandbox

MOST_BYTES = 2**18
"""The most bytes of a line, its end included."""
ANSWER_SECONDS = 60.0
"""How long an agent may take for a message."""
START_SECONDS = 300.0
"""How long it may take until it is ready."""

_BLOCK = 2**16
_FIRST_USER, _USERS = 61184, 4336  # the range that systemd keeps for services with users of their own
_QUOTED = 300  # characters of what an agent wrote to standard error
_SET_DUMPABLE = 4  # of Linux's `prctl`
_numbers = count()


class Isolation(NamedTuple):
    """What holds of an agent's process.

    Args:
        own_user: a user id of its own.
        namespaces: it sees no other process and no network, and what it starts ends with it.
        files: it reads its own files and the system's, and changes its working folder alone.
    """

    own_user: bool = False
    namespaces: bool = False
    files: bool = False


class Code(NamedTuple):
    """What an agent may import beside what is installed.

    Args:
        modules: names of top-level modules, wherever this Python finds them.
        files: texts by name.
    """

    modules: tuple[str, ...] = ()
    files: Mapping[str, str] = MappingProxyType({})


def make_untraceable() -> None:
    """Forbid that this process is dumped, traced, or read by others of its user (`PR_SET_DUMPABLE` of Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_SET_DUMPABLE, 0, 0, 0, 0)


def measure_isolation() -> Isolation:
    """What holds here of a process that runs this Python with this package.

    Raises:
        AgentProcessError: if it cannot be started.
    """
    with AgentProcess([sys.executable, "-c", ""], code=Code((__name__.partition(".")[0],))) as process:
        return process.isolation


class AgentProcess:
    """A program with an empty environment, a working folder of its own, and a pipe to this process.

    Messages are JSON objects, one a line, in UTF-8. The working folder holds the given files; it is deleted, and all
    processes of the program are killed, when it is closed.

    Args:
        command: the program and its arguments.
        files: the texts of the files in its working folder, by name.
        code: texts of files, and modules of this Python, in the folder `../code`, which it may read.
        seconds: how long it may take for a message.

    Raises:
        AgentProcessError: if it cannot be started.

    Example:
        >>> with AgentProcess([sys.executable, "-c", "print(input())"]) as agent:
        ...     agent.send({"type": "start"})
        ...     agent.receive()
        {'type': 'start'}
    """

    def __init__(
        self,
        command: Sequence[str],
        files: Mapping[str, str] | None = None,
        code: Code | None = None,
        seconds: float = ANSWER_SECONDS,
    ) -> None:
        make_untraceable()
        self._seconds = seconds
        self._unread = b""
        program = shutil.which(command[0])
        if program is None:
            raise AgentProcessError(f"`command` should begin with a program. Received {command[0]!r}")
        self._held = ExitStack()
        try:
            self._start([program, *command[1:]], files or {}, Code() if code is None else code)
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise AgentProcessError(f"{program}: cannot be started: {error.strerror}") from error
            raise

    def _start(self, command: Sequence[str], files: Mapping[str, str], code: Code) -> None:
        hold = self._held.enter_context
        scratch = Path(hold(TemporaryDirectory(prefix="drift-agent-", ignore_cleanup_errors=True)))
        scratch.chmod(0o711)
        home = _write_folder(scratch / "home", files)
        shared = _write_folder(scratch / "code", code.files)
        read = [sys.prefix, sys.base_prefix, str(shared), *_link_modules(code.modules, shared)]
        self._errors = hold((scratch / "errors").open("w+b"))
        if sys.platform != "linux":
            self.isolation = Isolation()
            self._process = hold(self._open(command, home))
            self._held.callback(self._process.kill)
            return
        needed = (command[0], *(read if code.modules else ()))
        user = _unused_user() if os.geteuid() == 0 and all(map(_is_public, needed)) else None
        if user is not None:
            for path in (home, *home.iterdir()):
                os.chown(path, user, user)
        leash, end = os.pipe()  # the sandbox kills the agent when `end` is closed, also by this process's end
        status, states = os.pipe()
        plan = {"command": command, "home": str(home), "read": read, "user": user, "status": states, "leash": leash}
        sandboxed = [sys.executable, "-I", "-S", sandbox.__file__, json.dumps(plan)]
        with os.fdopen(status, "rb") as stated:
            try:
                self._process = hold(self._open(sandboxed, home, (states, leash)))
            finally:
                self._held.callback(os.close, end)
                os.close(states)
                os.close(leash)
            lines = [json.loads(line) for line in stated]  # ends when the agent's program is executed
        if not lines or "error" in lines[-1]:
            self._fail(f"cannot be started: {lines[-1]['error']}" if lines else f"failed{self._last_words()}")
        self.isolation = Isolation(**lines[0])

    def _open(self, command: Sequence[str], home: Path, pass_fds: tuple[int, ...] = ()) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            bufsize=0,
            cwd=home,
            env={},
            pass_fds=pass_fds,
            start_new_session=True,  # Ctrl-C is for the evaluator
        )
        if process.stdin is not None and process.stdout is not None:
            self._input, self._output = process.stdin.fileno(), process.stdout.fileno()
        for end in (self._input, self._output):
            os.set_blocking(end, False)
        return process

    def __enter__(self) -> AgentProcess:
        """The process itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message.

        Raises:
            AgentProcessError: if the agent has ended, or does not read in time.
        """
        left = memoryview(json.dumps(message, ensure_ascii=False, allow_nan=False).encode() + b"\n")
        stop = time.monotonic() + self._seconds
        while left:
            try:
                left = left[os.write(self._input, left) :]
            except BlockingIOError:
                self._wait(self._input, select.POLLOUT, stop, self._seconds)
            except BrokenPipeError:
                self._fail_ended()

    def receive(self, seconds: float | None = None) -> dict[str, Any]:
        """The next message of the agent.

        Args:
            seconds: how long it may take for this one.

        Raises:
            AgentProcessError: if it has ended, does not answer in time, or the line is too long or no JSON object.
        """
        seconds = self._seconds if seconds is None else seconds
        stop = time.monotonic() + seconds
        while b"\n" not in self._unread:
            if len(self._unread) >= MOST_BYTES:
                self._fail(f"a line should have at most {MOST_BYTES:,} bytes")
            self._wait(self._output, select.POLLIN, stop, seconds)
            block = os.read(self._output, _BLOCK)
            if not block:
                self._fail_ended()
            self._unread += block
        line, _, self._unread = self._unread.partition(b"\n")
        try:
            message = json.loads(line, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            self._fail(f"a line should be JSON: {error}. Received {_quote(line)}")
        if not isinstance(message, dict):
            self._fail(f"a message should be a JSON object. Received {_quote(line)}")
        return message

    def _wait(self, end: int, event: int, stop: float, seconds: float) -> None:
        poll = select.poll()
        poll.register(end, event)
        if not poll.poll(max(0.0, stop - time.monotonic()) * 1000):
            self._fail(f"should answer in {seconds:g} seconds")

    def _fail_ended(self) -> NoReturn:
        try:
            status = self._process.wait(self._seconds)
        except subprocess.TimeoutExpired:
            self._fail("closed its pipe")
        self._fail(f"ended with status {status}{self._last_words()}")

    def _fail(self, text: str) -> NoReturn:
        self.close()
        raise AgentProcessError(f"the agent's process {text}")

    def _last_words(self) -> str:
        """The last line on standard error, as the end of a message."""
        try:
            size = self._errors.seek(0, os.SEEK_END)
            self._errors.seek(max(0, size - _BLOCK))
            lines = self._errors.read().strip().splitlines()
        except ValueError:  # closed
            return ""
        return f": {_quote(lines[-1])}" if lines else ""

    def close(self) -> None:
        """End the process and all that it started, and delete its working folder."""
        self._held.close()
        self._input = self._output = -1  # so that no later file of this number is taken for the pipe


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _quote(line: bytes) -> str:
    """The beginning of what an agent wrote, on one line and without control characters."""
    return ascii(line[:_QUOTED].decode("utf-8", "replace"))[1:-1]


def _unused_user() -> int:
    """A user id that no user of this system has."""
    while True:
        user = _FIRST_USER + (64 * os.getpid() + next(_numbers)) % _USERS
        try:
            pwd.getpwuid(user)
        except KeyError:
            return user


def _is_public(path: str) -> bool:
    """Whether every user can reach and read a path, by the modes of its folders."""
    found = Path(path).resolve()
    return found.stat().st_mode & 0o005 == 0o005 and all(folder.stat().st_mode & 0o001 for folder in found.parents)


def _write_folder(folder: Path, files: Mapping[str, str]) -> Path:
    folder.mkdir(mode=0o755)
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    return folder


def _link_modules(modules: Sequence[str], folder: Path) -> list[str]:
    """Link modules into a folder; what the links lead to."""
    found = []
    for name in modules:
        spec = find_spec(name)
        if spec is not None and spec.origin is not None:
            origin = Path(spec.origin)
            source = origin.parent if spec.submodule_search_locations else origin
            (folder / source.name).symlink_to(source.resolve())
            found.append(str(source.resolve()))
    return found
