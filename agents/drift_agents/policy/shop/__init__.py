"""The shop's planner: the instruction, listings, what memory says, and a choice."""
