"""Conventions of the command lines of all programs: exit statuses, errors in one line, plain help, served hosts.

The shop's program has the same conventions and imports no other package, so that they are defined there.

* `Debug` - the option `--debug`, for an application of one command; those of several commands add it themselves
* `Json`, `print_json` - the option `--json` of a command, and its output
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from webshop_server.command_line import (
    DEBUG,
    DEBUG_HELP,
    FAILED,
    WRONG_USAGE,
    AllowHost,
    HostRule,
    Verbosity,
    make_app,
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
    "print_json",
    "refuse",
    "run_app",
    "verbosity_of",
]

Debug = Annotated[bool, typer.Option(DEBUG, help=DEBUG_HELP)]
"""The option `--debug`; `run_app` reads it, the command itself has no use for the value."""

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
