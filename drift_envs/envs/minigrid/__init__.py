"""Minigrid's environments with knobs: doors, keys, objects, actions, rewards; needs the extra `minigrid`."""
