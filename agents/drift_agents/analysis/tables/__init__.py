"""Reports: what the lines of a run say, in tables, from these lines alone."""
