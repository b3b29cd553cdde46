"""How the commands of this folder run and end.

* `run` - runs a command and returns its exit status
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec

import typer

from drift_envs.errors import ArgumentError, DriftEnvsError, MissingDependencyError
from drift_envs.utils.command_line import FAILED, WRONG_USAGE, run_app

PACKAGES = ("gymnax", "jax", "optax", "pandas", "pyarrow")
"""What every command needs."""


def run(app: typer.Typer, program: str, arguments: Sequence[str] | None) -> int:
    """Run a command.

    Args:
        app: the application.
        program: its name in messages.
        arguments: the words after the program's name; by default those of this process.

    Returns:
        The exit status: 0, 1 (the work failed), 2 (wrong usage) or 130 (interrupted).
    """
    missing = [name for name in PACKAGES if find_spec(name) is None]
    words = sys.argv[1:] if arguments is None else arguments
    if missing and "--help" not in words:
        print(f"{program}: {MissingDependencyError.of(missing, ['baselines'])}", file=sys.stderr)
        return FAILED
    return run_app(app, program, words, _status_of)


def _status_of(error: Exception) -> int | None:
    """The exit status of an error that a user can cause, otherwise `None`."""
    if isinstance(error, ArgumentError):
        return WRONG_USAGE
    return FAILED if isinstance(error, (DriftEnvsError, OSError)) else None
