"""Voyager's skill library (Wang et al.)."""
