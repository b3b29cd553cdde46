"""Memories: one file for each architecture, the protocol in `base`, the names in `registry`."""
