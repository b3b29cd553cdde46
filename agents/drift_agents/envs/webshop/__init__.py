"""The planner of the shop: the parsed instruction, listings, the knowledge from records, and a choice."""
