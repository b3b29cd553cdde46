"""The program between an evaluator and an agent: it gives up its rights, then becomes the agent's program.

It is run by its path, without `site` and without the package: `python -I -S sandbox.py PLAN`, where PLAN is JSON with

* `command` - the agent's program and its arguments
* `home` - the agent's working folder, the only place that it may change
* `read` - folders and files that it may read beside those of the system
* `user` - its user and group id, `null` to keep the present one
* `status`, `leash` - file descriptors: to state the isolation, and to be told of the evaluator's end

Three layers, each where the system has it: a user id of its own; namespaces for processes, network and System V
objects (`unshare(2)`); and Landlock (`landlock(7)`), which restricts files, TCP connections and signals without any
privilege. One line on `status` says which of them hold.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

SYSTEM = ("/bin", "/etc", "/lib", "/lib32", "/lib64", "/opt", "/sbin", "/usr")
"""What every program may read."""
DEVICES = ("/dev/full", "/dev/null", "/dev/random", "/dev/urandom", "/dev/zero")

MOST_FILE = 2**28
"""The most bytes of a file that an agent writes."""
MOST_PROCESSES = 256
"""The most processes and threads of an agent with a user id of its own."""

_PDEATHSIG, _DROP_CAPABILITY, _NO_NEW_PRIVS = 1, 24, 38  # of `prctl`
_NEW_USER, _NEW_IPC, _NEW_PID, _NEW_NET = 0x10000000, 0x08000000, 0x20000000, 0x40000000  # of `unshare`
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # system calls, equal on all architectures

_EXECUTE, _WRITE, _READ, _LIST, _TRUNCATE = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 14
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}  # version -> how many rights there are; 16 from 5 on
_TCP = 0b11  # bind and connect, from version 4 on
_SCOPES = 0b11  # abstract sockets and signals, from version 6 on

_libc = ctypes.CDLL(None, use_errno=True)


def main(plan: dict[str, Any]) -> int:
    """Start the agent, wait for its end or the evaluator's, and kill what is left of it.

    Args:
        plan: see the module.

    Returns:
        The exit status.
    """
    # The evaluator may be killed before it can close the leash.
    _libc.prctl(_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    flags = _NEW_IPC | _NEW_PID | _NEW_NET | (_NEW_USER if os.geteuid() else 0)
    has_namespaces = _libc.unshare(flags) == 0
    agent = os.fork()
    if agent == 0:
        _become(plan, has_namespaces)
    os.close(plan["status"])
    poll = select.poll()
    poll.register(plan["leash"], select.POLLIN)
    poll.register(os.pidfd_open(agent), select.POLLIN)
    poll.poll()
    os.kill(agent, signal.SIGKILL)  # the end of a namespace's first process ends all others in it
    _, status = os.waitpid(agent, 0)
    if not has_namespaces:
        _kill_rest(agent, plan["user"])
    return os.waitstatus_to_exitcode(status)


def _kill_rest(group: int, user: int | None) -> None:
    """Kill the processes that an agent left behind: its group's, and all of its user id if it has its own."""
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
    if user is not None and (killer := os.fork()) == 0:
        os.setresuid(user, user, user)
        try:
            os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)
    elif user is not None:
        os.waitpid(killer, 0)


def _become(plan: dict[str, Any], has_namespaces: bool) -> None:
    """Give up rights and execute the agent's program; does not return."""
    try:
        for end in (plan["status"], plan["leash"]):
            os.set_inheritable(end, False)
        os.setsid()
        os.chdir(plan["home"])
        for kind, most in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, MOST_FILE)):
            resource.setrlimit(kind, (most, most))
        user = plan["user"]
        for capability in range(64):  # what a superuser's program could get back
            _libc.prctl(_DROP_CAPABILITY, capability, 0, 0, 0)
        if user is not None:
            resource.setrlimit(resource.RLIMIT_NPROC, (MOST_PROCESSES, MOST_PROCESSES))
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
        # A change of user clears it.
        _libc.prctl(_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        _libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0)
        has_files = restrict_files(plan["home"], (*SYSTEM, *plan["read"]))
        isolation = {"own_user": user is not None, "namespaces": has_namespaces, "files": has_files}
        _state(plan, isolation)
        os.execve(plan["command"][0], plan["command"], {})
    except OSError as error:
        _state(plan, {"error": f"{error.filename or plan['command'][0]}: {error.strerror}"})
    finally:
        os._exit(127)


def _state(plan: dict[str, Any], what: dict[str, Any]) -> None:
    os.write(plan["status"], json.dumps(what).encode() + b"\n")


class _Ruleset(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scopes", ctypes.c_uint64)]


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = [("rights", ctypes.c_uint64), ("folder", ctypes.c_int32)]


def restrict_files(home: str, read: Iterable[str]) -> bool:
    """Restrict this process and its children by Landlock.

    Args:
        home: the folder that they may change.
        read: folders and files that they may read and execute; those that do not exist are passed over.

    Returns:
        Whether the system has Landlock.
    """
    version = _libc.syscall(_CREATE_RULESET, None, 0, 1)
    if version < 1:
        return False
    rights = (1 << _FILE_RIGHTS.get(version, 16)) - 1
    rules = _Ruleset(rights, _TCP if version >= 4 else 0, _SCOPES if version >= 6 else 0)
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = _libc.syscall(_CREATE_RULESET, ctypes.byref(rules), size, 0)
    if ruleset < 0:
        return False
    for path in read:
        _allow(ruleset, path, _EXECUTE | _READ | _LIST)
    for path in DEVICES:
        _allow(ruleset, path, _READ | _WRITE)
    _allow(ruleset, home, rights)
    is_restricted: bool = _libc.syscall(_RESTRICT_SELF, ruleset, 0) == 0
    os.close(ruleset)
    return is_restricted


def _allow(ruleset: int, path: str, rights: int) -> None:
    """Allow rights beneath a path."""
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    if not os.path.isdir(path):
        rights &= _EXECUTE | _READ | _WRITE | _TRUNCATE
    _libc.syscall(_ADD_RULE, ruleset, 1, ctypes.byref(_Beneath(rights, place)), 0)
    os.close(place)


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
