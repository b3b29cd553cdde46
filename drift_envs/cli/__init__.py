"""The command `drift-envs`.

* `main` - runs a command and returns its exit status
"""

from drift_envs.cli.app import main

__all__ = ["main"]
