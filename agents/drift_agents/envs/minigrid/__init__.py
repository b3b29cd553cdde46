"""The planner for Minigrid's worlds."""
