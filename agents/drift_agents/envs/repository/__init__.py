"""What stands beside `DriftRepository-v0`: `coders`, reference coding agents that work in a folder."""
