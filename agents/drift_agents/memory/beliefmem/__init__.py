"""BeliefMem: conclusions with probabilities."""
