"""Policies: rendered text in, text out; the protocol in `base`, the names in `registry`."""
