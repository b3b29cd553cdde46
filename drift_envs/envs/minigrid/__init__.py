"""Minigrid's worlds with knobs; `env` needs the extra `minigrid`, the other modules do not."""
