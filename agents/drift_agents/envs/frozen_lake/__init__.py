"""The lake's planner: a parsed grid, beliefs and a plan."""
