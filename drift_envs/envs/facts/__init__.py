"""Facts about people that change: statements over days, and a question a day."""
