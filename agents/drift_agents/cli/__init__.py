"""The command `drift-agents`."""
