"""AdaMEM's memory of trajectories, keyed by step."""
