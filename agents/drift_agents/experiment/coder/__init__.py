"""Coding agents in a repository that changes: `drift-agents check-coder`."""
