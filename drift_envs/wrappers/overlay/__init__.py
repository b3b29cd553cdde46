"""The overlay of rendered frames: phase, tick and what changed."""
