"""Gymnasium environments whose world drifts on a schedule."""

from drift_envs._version import __version__

__all__ = ["__version__"]
