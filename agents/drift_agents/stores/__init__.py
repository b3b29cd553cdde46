"""Stores of texts: what products for the memory of agents have in common, behind three methods."""
