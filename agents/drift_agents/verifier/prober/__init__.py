"""Probers: how a verifier repeats an action in a state that the environment has left."""
