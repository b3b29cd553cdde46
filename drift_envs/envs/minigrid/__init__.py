"""Minigrid's environments with knobs; needs the extra `minigrid`, but for the knobs."""
