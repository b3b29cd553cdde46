"""The command `drift-envs`."""

from drift_envs.cli.app import main

__all__ = ["main"]
