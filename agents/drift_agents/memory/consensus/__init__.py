"""EDV's consensus memory: shared and private item banks."""
