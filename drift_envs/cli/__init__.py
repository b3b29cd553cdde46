"""The command `drift-envs`.

* `main` - runs a command and returns its exit status
* `build_parser` - the commands and their options
"""

from drift_envs.cli.app import build_parser, main

__all__ = ["build_parser", "main"]
