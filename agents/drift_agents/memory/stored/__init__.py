"""Memories in a file: any memory, with its records in SQLite."""
