"""The exit statuses of the commands of this folder.

* `status_of` - the exit status of an error that a user can cause
"""

from __future__ import annotations

from drift_envs.errors import ArgumentError, DriftEnvsError
from webshop_server.command_line import FAILED, WRONG_USAGE


def status_of(error: Exception) -> int | None:
    """The exit status of an error that a user can cause, otherwise `None`."""
    if isinstance(error, ArgumentError):
        return WRONG_USAGE
    return FAILED if isinstance(error, DriftEnvsError) else None
