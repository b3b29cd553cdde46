"""When two states, and two outcomes, count as the same: one file a rule."""
