"""Verifiers: whether an experience is written, and whether records are still true."""
