"""Conventions of command lines: exit statuses, errors in one line, plain help, and the hosts that servers answer.

The other programs take them from `drift_envs.utils.command_line`; `drift_agents.cli.root` from here, since importing
`drift_envs` imports Gymnasium. This file imports nothing but Typer, so that `--help` stays fast.
"""

from __future__ import annotations

import codecs
import errno
import io
import ipaddress
import json
import os
import re
import socket
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from functools import partial
from typing import IO, TYPE_CHECKING, Annotated, Any, TextIO

import typer
from typer.core import TyperGroup, TyperOption

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "AllowHost",
    "HostRule",
    "Json",
    "Verbosity",
    "make_app",
    "make_console",
    "plain_text",
    "print_json",
    "refuse",
    "run_app",
    "verbosity_of",
]


DONE, FAILED, WRONG_USAGE, INTERRUPTED = 0, 1, 2, 130

# Typer has no public name for the base of its usage errors: in some versions it is click's, in others its own copy.
_USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[2]
NARROWEST = 20
"""Columns; a smaller value of `COLUMNS` counts as none, since tables of no width print nothing."""

DEBUG, DEBUG_HELP = "--debug", "Show the traceback of an error."


_VERBOSITY = "webshop_server.verbosity"
"""The key of the context's `meta`."""


class Verbosity(IntEnum):
    """How much a command writes to standard error beside its errors."""

    QUIET = -1
    NORMAL = 0
    VERBOSE = 1


def verbosity_of(context: typer.Context) -> Verbosity:
    """What `--quiet` and `--verbose` of the running command say; the last one counts."""
    return Verbosity(context.meta.get(_VERBOSITY, Verbosity.NORMAL))


def _set_quiet(context: typer.Context, _: Any, is_given: bool) -> None:
    if is_given:
        context.meta[_VERBOSITY] = Verbosity.QUIET


def _set_verbose(context: typer.Context, _: Any, is_given: bool) -> None:
    if is_given:
        context.meta[_VERBOSITY] = Verbosity.VERBOSE
        begun = time.perf_counter()

        def print_duration() -> None:
            print(f"{context.command_path}: {time.perf_counter() - begun:.1f} s", file=sys.stderr)

        context.call_on_close(print_duration)


class _Group(TyperGroup):
    """Commands that all have the options `--debug`, `--quiet` and `--verbose`."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for command in self.commands.values():
            if not isinstance(command, TyperGroup):
                if not any(DEBUG in parameter.opts for parameter in command.params):
                    command.params.append(_make_flag([DEBUG], DEBUG_HELP))
                command.params += [
                    _make_flag(["-q", "--quiet"], "Print results and errors only.", _set_quiet),
                    _make_flag(
                        ["-v", "--verbose"], "Print the duration too, and of a run each finished cell.", _set_verbose
                    ),
                ]


def _make_flag(names: list[str], text: str, callback: Callable[..., None] | None = None) -> TyperOption:
    return TyperOption(param_decls=names, is_flag=True, expose_value=False, callback=callback, help=text)


def make_app(
    description: str, example: str, completion: bool = True, version: Callable[[], str] | None = None
) -> typer.Typer:
    """Make a Typer application without commands.

    Args:
        description: first lines of its help.
        example: a command line, shown under the help.
        completion: whether to add `--install-completion` and `--show-completion`; shells complete by the name of a
            program, which `python -m package` has not.
        version: what `--version` prints; without it there is no such option.
    """
    app = typer.Typer(
        cls=_Group,
        help=description,
        epilog=f"Example: {example}",
        add_completion=completion,
        rich_markup_mode=None,  # importing rich's formatter would double the time of `--help`
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    if version is not None:

        def print_version(is_given: bool) -> None:
            if is_given:
                print(version())
                raise typer.Exit

        @app.callback()
        def _options(
            is_version: bool = typer.Option(
                False, "-V", "--version", callback=print_version, is_eager=True, help="Print the version."
            ),
        ) -> None:
            pass

    return app


_BIDIRECTIONAL = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
_SHOWN = {
    code: f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
    for code in (*range(9), *range(11, 32), *range(127, 160), *_BIDIRECTIONAL)
}


def plain_text(text: str) -> str:
    r"""A text whose control characters, all but tab and newline, are written as Python writes them.

    Names and texts of files that others made could otherwise move the cursor, hide lines, or set a terminal's title.

    Example:
        >>> plain_text("a \x1b[31mred\x1b[0m name")
        'a \\x1b[31mred\\x1b[0m name'
    """
    return text.translate(_SHOWN)


_NEAREST = str.maketrans("─│…→←×▁▂▃▄▅▆▇█", "-|~><x.:-=+*#@")


def _write_nearest(error: UnicodeError) -> tuple[str, int]:
    r"""What a terminal without Unicode gets in place of characters that it has not: one like it, or its number.

    Example:
        >>> "force ▂▅█, Ø".encode("ascii", "nearest").decode()
        'force :+@, \\xd8'
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    nearest = error.object[error.start : error.end].translate(_NEAREST)
    return nearest.encode("ascii", "backslashreplace").decode(), error.end


codecs.register_error("nearest", _write_nearest)


class PlainOutput:
    """An output stream that writes no control characters; Rich's consoles write their own colours to the stream below.

    Args:
        stream: the stream.
    """

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream

    def write(self, text: str) -> int:
        """Write a text."""
        return self.rich_proxied_file.write(plain_text(text))

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts."""
        self.rich_proxied_file.writelines(map(plain_text, lines))

    def __getattr__(self, name: str) -> Any:
        """What else the stream has."""
        return getattr(self.rich_proxied_file, name)


def make_console(**options: Any) -> Console:
    """A console of Rich, in whose texts control characters are written as Python writes them.

    Args:
        options: of `rich.console.Console`.
    """
    from rich.console import Console

    class PlainConsole(Console):
        @property
        def file(self) -> IO[str]:
            """The stream, that of a progress bar included, which writes through what it has found there."""
            found: Any = super().file
            return found.rich_proxied_file if isinstance(found, PlainOutput) else found

        @file.setter
        def file(self, stream: IO[str]) -> None:
            self._file = stream

        def render(self, *arguments: Any, **more: Any) -> Any:
            for segment in super().render(*arguments, **more):
                yield segment if segment.control else segment._replace(text=plain_text(segment.text))

    return PlainConsole(**options)


def refuse(option: str, rule: str, value: object) -> typer.BadParameter:
    """The usage error of an option.

    Example:
        >>> print(refuse("--port", "should stand with `--serve`", 80).format_message())
        Invalid value for --port: should stand with `--serve`. Received 80
    """
    return typer.BadParameter(f"{rule}. Received {value!r}", param_hint=option)


def run_app(
    app: typer.Typer,
    program: str,
    arguments: Sequence[str] | None,
    status_of: Callable[[Exception], int | None],
    words_of: Callable[[Exception], str] = str,
) -> int:
    """Run a command.

    Args:
        app: the application.
        program: its name in messages.
        arguments: the words after the program's name; by default those of this process. Commands find them in
            `typer.Context.obj`.
        status_of: the exit status of an error that a user can cause; `None` for any other error, which is raised.
        words_of: what is printed of such an error.

    Returns:
        The exit status: 0, 1 (the work failed), 2 (wrong usage) or 130 (interrupted).
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) < NARROWEST:
        del os.environ["COLUMNS"]
    raw = sys.stdout, sys.stderr
    files = [(stream, stream.errors) for stream in raw if isinstance(stream, io.TextIOWrapper)]
    for stream, _ in files:
        stream.reconfigure(errors="nearest")
    sys.stdout, sys.stderr = (None if one is None else PlainOutput(one) for one in raw)  # type: ignore[assignment]
    try:
        return _run(app, program, words, status_of, words_of)
    finally:
        sys.stdout = raw[0] if isinstance(sys.stdout, PlainOutput) else sys.stdout
        sys.stderr = raw[1]
        for stream, errors in files:
            if not stream.closed:
                stream.reconfigure(errors=errors)


def _run(
    app: typer.Typer,
    program: str,
    words: list[str],
    status_of: Callable[[Exception], int | None],
    words_of: Callable[[Exception], str],
) -> int:
    """Run a command whose output is plain text."""
    try:
        with warnings.catch_warnings():
            if DEBUG not in words:
                warnings.showwarning = partial(_show_warning, program, set())
            status = app(words, prog_name=program, standalone_mode=False, obj=words)
        sys.stdout.flush()
    except (typer.Abort, KeyboardInterrupt) as error:  # older versions of Typer report an interruption as `Abort`
        # Click takes every `EOFError` for the end of the input that a prompt reads; no command here has a prompt.
        if isinstance(error.__cause__, EOFError):
            if DEBUG in words:
                traceback.print_exc()
            print(f"{program}: a file or a connection ended too early: {error.__cause__}", file=sys.stderr)
            return FAILED
        status = INTERRUPTED
    except _USAGE_ERROR as error:
        context = getattr(error, "ctx", None)
        path = context.command_path if context is not None else program
        message = error.format_message()  # type: ignore[attr-defined]
        message = message.replace("a valid int range", "a whole number").replace("a valid float range", "a number")
        print(f"{path}: {message} (try `{path} --help`)", file=sys.stderr)
        return WRONG_USAGE
    except (BrokenPipeError, SystemExit) as error:
        # The reader of the output has closed it (`| head`), which is no failure. Typer turns that into `SystemExit`.
        if not isinstance(error, BrokenPipeError) and not isinstance(error.__context__, BrokenPipeError):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)
        return DONE
    except Exception as error:
        status = status_of(error)
        if status is None and (reason := _describe_output(error)):
            print(f"{program}: standard output cannot be written: {reason}", file=sys.stderr)
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115  # flushed when the interpreter ends
            return FAILED
        if status is None:
            raise
        if DEBUG in words:
            traceback.print_exc()
        else:
            print(f"{program}: {words_of(error)}", file=sys.stderr)
        return status
    if status == INTERRUPTED:
        print(f"{program}: interrupted", file=sys.stderr)
    return int(status or DONE)


_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def _show_warning(program: str, printed: set[str], message: Warning | str, *_: Any) -> None:
    """Print a warning once, in one line, without colours and the line of code that has found the reason for it.

    Environments of other packages warn anew whenever they are made, and Gymnasium colours what they say.
    """
    text = _COLOURS.sub("", str(message))
    if text not in printed:
        printed.add(text)
        print(f"{program}: warning: {text}", file=sys.stderr)


def _describe_output(error: Exception) -> str:
    """Why standard output cannot be written, if that is the error; else empty."""
    if sys.stdout is None or sys.stdout.closed:
        return "it is closed"
    if isinstance(error, OSError) and error.filename is None and error.errno in (errno.ENOSPC, errno.EBADF, errno.EIO):
        return str(error.strerror)
    return ""


Json = Annotated[bool, typer.Option("--json", help="Print one JSON document, with the field `version`.")]


def print_json(content: Mapping[str, Any]) -> None:
    """Print a JSON document, which begins with its `version`; numbers that are not finite become `null`.

    Args:
        content: the other fields; a change of their names or meanings needs a new version.

    Example:
        >>> print_json({"loss": float("nan")})
        {
          "version": 1,
          "loss": null
        }
    """
    print(json.dumps(_without_nan({"version": 1, **content}), indent=2, ensure_ascii=False, allow_nan=False))


def _without_nan(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and not -float("inf") < value < float("inf") else value


def _check_hosts(names: list[str] | None) -> list[str]:
    for name in names or ():
        if not is_host_name(name):
            raise refuse("--allow-host", "should be the name of a host, without scheme and port", name)
    return names or []


AllowHost = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-host",
        metavar="HOST",
        callback=_check_hosts,
        help="Answer requests to this name too (default: IP addresses, localhost and this machine's name).",
    ),
]
"""The option `--allow-host`, which may be repeated; see `HostRule`."""


_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*\.?", re.ASCII)
_PORT = re.compile(r":\d{1,5}\Z", re.ASCII)


class HostRule:
    """The `Host` headers that a server answers: IP addresses, `localhost`, this machine's name, and others given.

    A page of another site can let its own name resolve to this machine (DNS rebinding); its requests are then of the
    same origin for a browser, and only the `Host` header tells them apart. An address cannot be rebound, so every IP
    address is answered.

    Args:
        names: further names of hosts.

    Example:
        >>> rule = HostRule(["shop.example.org"])
        >>> [rule.allows(host) for host in ("127.0.0.1:3000", "[::1]", "localhost", "Shop.example.org:80", None)]
        [True, True, True, True, True]
        >>> rule.allows("evil.example.org")
        False
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        own = ("localhost", socket.gethostname(), *names)
        self._names = frozenset(name.lower().rstrip(".") for name in own)

    def allows(self, host: str | None) -> bool:
        """Whether a request with this header is answered.

        Args:
            host: the header `Host`; `None` where a request has none, which no browser sends.
        """
        if host is None:
            return True
        name = _PORT.sub("", host.lower()).rstrip(".")
        return name in self._names or _is_address(name.removeprefix("[").removesuffix("]"))


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def is_host_name(text: str) -> bool:
    """Whether a text is the name of a host, without scheme and port.

    Example:
        >>> is_host_name("shop.example.org"), is_host_name("shop.example.org:3000")
        (True, False)
    """
    return len(text) <= 253 and _NAME.fullmatch(text.lower()) is not None
