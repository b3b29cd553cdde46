"""Belief studies: memories under declared evidence, without runs over episodes."""
