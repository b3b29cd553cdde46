"""The shop as an environment."""
