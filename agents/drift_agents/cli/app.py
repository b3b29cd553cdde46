"""The command line `drift-agents`: all groups of commands; the work of each is imported when the command runs."""

from __future__ import annotations

from drift_agents.cli import check_coder, check_memory, playing, reading  # noqa: F401, importing them adds their commands
from drift_agents.cli.root import app, main

__all__ = ["app", "main"]
