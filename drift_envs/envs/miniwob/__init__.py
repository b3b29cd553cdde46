"""MiniWoB++: its task pages in a real browser, with a drifting layer between page and agent."""
