"""Research on this project: memories, rule-based message policies and tuning. Not installed; nothing imports it."""
