"""The planner of web pages."""
