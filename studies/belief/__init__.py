"""Studies: what becomes of a memory, and how an agent follows what it remembers, beside the runs of experiments."""
