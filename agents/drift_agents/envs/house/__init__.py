"""The planner of the house: the parsed task, the knowledge from records, and a choice."""
