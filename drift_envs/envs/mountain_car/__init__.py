"""Gymnasium's mountain cars with knobs: force or power, gravity, goal position, false responses."""
