"""Conventions of the command lines of all programs: exit statuses, errors in one line, plain help, served hosts.

The shop's program has the same conventions and imports no other package, so that they are defined there.

* `Debug` - the option `--debug`, for an application of one command; those of several commands add it themselves
"""

from __future__ import annotations

from typing import Annotated

import typer

from webshop_server.command_line import (
    DEBUG,
    DEBUG_HELP,
    FAILED,
    WRONG_USAGE,
    AllowHost,
    HostRule,
    Json,
    Verbosity,
    make_app,
    make_console,
    plain_text,
    print_json,
    refuse,
    run_app,
    verbosity_of,
)

__all__ = [
    "FAILED",
    "WRONG_USAGE",
    "AllowHost",
    "Debug",
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

Debug = Annotated[bool, typer.Option(DEBUG, help=DEBUG_HELP)]
"""The option `--debug`; `run_app` reads it, the command itself has no use for the value."""
