"""Research on this project: studies of memories, readers and tuning. Not installed; nothing imports it."""
