"""Policies that parse the messages of a language model and nothing else."""
