"""The car's planner: parsed evidence, a fitted model, values and a plan."""
