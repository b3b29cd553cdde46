"""Research on this project: memories, rule-based message policies, the map of verification. Nothing imports it."""
