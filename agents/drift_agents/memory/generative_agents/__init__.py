"""Generative Agents' memory stream with reflection (Park et al.)."""
