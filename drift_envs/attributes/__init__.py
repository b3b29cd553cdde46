"""Attributes of any environment as knobs: how they are declared, found by path, set and read back."""
