"""Calls functions of a submission and reports what they return; a program that runs alone, by `python -I -S`.

It reads the folder, the folder of the package, its name and the calls from standard input, and writes raw values to
standard output. It knows no expected value. Before it loads anything of the submission it sets limits, and a hook
that refuses everything a rule for charges has no use for: processes, sockets, foreign code, and files outside the
folder and Python's own library.
"""

from __future__ import annotations

import json
import os
import resource
import sys

TYPE_CHECKING = False  # `typing` would take a tenth of the time of the checks
if TYPE_CHECKING:
    from typing import Any

MEMORY = 512 * 2**20
FILE_BYTES = 2**20
SECONDS = 5
MOST_CHARACTERS = 200

_REFUSED = ("os.", "subprocess.", "socket.", "ctypes.", "shutil.", "pty.", "signal.", "syslog.", "mmap.", "sqlite3.")
_ALLOWED = frozenset({"os.listdir", "os.scandir", "os.walk", "os.fwalk", "os.mkdir", "os.rename", "os.remove"})


def set_limits(seconds: int) -> None:
    """Limit time, memory, and the size of files."""
    limits = (
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_FSIZE, FILE_BYTES),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_CORE, 0),
    )
    for limit, value in limits:
        resource.setrlimit(limit, (value, value))


def close_doors(folder: str) -> None:
    """Refuse processes, sockets, foreign code, and files outside the folder; nothing can take this back."""
    inside = os.path.realpath(folder) + os.sep
    library = tuple({os.path.realpath(path) + os.sep for path in (os.path.dirname(os.__file__), sys.base_prefix)})
    writes = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    realpath, fspath, is_path = os.path.realpath, os.fspath, (str, bytes, os.PathLike)
    string, number, permission, decode, separator = str, int, PermissionError, os.fsdecode, os.sep

    def place(path: Any) -> str:
        return string(decode(realpath(fspath(path)))) + separator

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if isinstance(path, number):
                return
            where = place(path)
            if where.startswith(inside) or (not (flags or 0) & writes and where.startswith(library)):
                return
            raise permission(f"{path!r} lies outside the project")
        if event in _ALLOWED:
            if event in ("os.mkdir", "os.rename", "os.remove"):
                for path in arguments:
                    if isinstance(path, is_path) and not place(path).startswith(inside):
                        raise permission(f"{path!r} lies outside the project")
            return
        if event.startswith(_REFUSED):
            raise permission(f"{event} is not available in the checks")

    sys.addaudithook(hook)


def run_script(folder: str, script: str) -> None:
    """Run a script of the project, which prints."""
    import contextlib
    import runpy
    import unittest  # noqa: F401 - loaded before the doors close

    os.dup2(1, 2)
    os.chdir(folder)
    sys.dont_write_bytecode = True
    sys.path.insert(0, folder)
    sys.stderr = sys.stdout
    set_limits(SECONDS)
    close_doors(folder)
    with contextlib.suppress(SystemExit):
        runpy.run_path(script, run_name="__main__")


def main() -> None:
    """Call what standard input names, and report."""
    plan = json.loads(sys.stdin.read())
    if "script" in plan:
        run_script(plan["folder"], plan["script"])
        return
    report = os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    os.chdir(plan["folder"])
    sys.dont_write_bytecode = True
    sys.path.insert(0, os.path.join(plan["folder"], plan["home"]))
    import decimal
    import importlib

    original = decimal.Decimal
    make = {"decimal": original, "integer": int, "text": str}
    write, dumps, bounded, kind_of = os.write, json.dumps, repr, type
    plain = original.__str__
    is_instance, base, length, spread, modules = isinstance, BaseException, len, tuple, sys.modules
    set_limits(SECONDS)
    close_doors(plan["folder"])

    def shown(value: Any) -> dict[str, Any]:
        kind = kind_of(value)
        if kind in (int, float, original) or (kind.__module__ == "fractions" and "fractions" in modules):
            exact = original(bounded(value)) if kind is float else value  # 12.34 is meant to be 12.34
            text = plain(value) if kind is original else bounded(value)
            return {"number": spread(exact.as_integer_ratio()), "text": text[:MOST_CHARACTERS]}
        return {"other": kind.__name__[:MOST_CHARACTERS]}

    def failed(error: BaseException) -> dict[str, Any]:
        text = f"{kind_of(error).__name__}: {error}"
        return {"raised": [one.__name__ for one in kind_of(error).__mro__], "text": text[:MOST_CHARACTERS]}

    def look_up(target: list[str]) -> Any:
        if target[0] == "find":
            found = package.find(target[1])
        else:
            found = getattr(importlib.import_module(target[1]), target[2])
        if not callable(found):
            raise LookupError(f"{target[-1]} is no function")
        return found

    results = []
    try:
        package = importlib.import_module(plan["package"])
        errors = importlib.import_module(f"{plan['package']}.errors")
        accepted = {name: getattr(errors, name) for name in plan["errors"]}
    except base as error:
        results = [failed(error)]
        plan["calls"] = []
    for target, arguments in plan["calls"]:
        try:
            function = look_up(target)
        except base as error:
            results.append({"absent": failed(error)["text"]})
            continue
        if arguments is None:
            results.append({"present": True})
            continue
        try:
            before = length(package.entries())
            value = function(*[make[kind](text) for kind, text in arguments])
            entered = [[str(name)[:MOST_CHARACTERS], shown(one)] for name, one in spread(package.entries())[before:]]
            results.append({**shown(value), "entered": entered[:8]})
        except base as error:
            names = [name for name, one in accepted.items() if is_instance(error, one)]
            results.append({**failed(error), "accepted": names})
    text = dumps(results).encode()
    while text:
        text = text[write(report, text) :]


if __name__ == "__main__":
    main()
