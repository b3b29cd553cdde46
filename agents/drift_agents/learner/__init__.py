"""Reinforcement learning on the same text states: references without memory, verifier or prompt."""
