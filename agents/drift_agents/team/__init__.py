"""Who decides: one agent, or several."""
