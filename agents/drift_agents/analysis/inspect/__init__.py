"""The page to step through the episodes of a run."""
