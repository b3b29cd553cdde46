"""Verifiers: what becomes of an experience, and whether memory is still true."""
